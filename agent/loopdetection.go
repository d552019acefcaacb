package agent

// LoopDetection sets thresholds for loops that the runtime does not look for by itself: it
// always finds six equal calls in a row. Zero means that a form is not looked for. What follows is
// in on_loop, or in recovery.loop; after idle it is in recovery.no_progress.
type LoopDetection struct {
	// Scope says which equal calls are counted: those in a row, or with run all of the run, whatever
	// comes in between, as long as 64 other calls do not.
	Scope LoopScope `json:"scope,omitempty"`
	// Exempt names tools, or patterns of tools, that may be called again and again, as one that polls.
	// Of the forms, only idle looks at their calls.
	Exempt []string `json:"exempt,omitempty"`
	// Cycles is how often in a row a model may repeat two or three different calls in the same
	// order: at that number of rounds (A B A B A B is three), a loop is detected; 2 to 10.
	Cycles int `json:"cycles,omitempty"`
	// Results is how often in a row a tool may return the same result to calls with different
	// arguments, whatever other tools return in between; 2 to 100.
	Results int `json:"results,omitempty"`
	// Parallel is how many equal calls one reply may have before a loop is detected; 2 to 100.
	Parallel int `json:"parallel,omitempty"`
	// Idle is how many turns in a row may bring the run no further: no call succeeds, no check
	// refuses an answer, and no message comes. It is looked at before the next turn, after the
	// limits. Unless recovery.no_progress says otherwise, the run then fails with stuck; 2 to 100.
	Idle int `json:"idle,omitempty"`
}

// LoopScope is where equal calls are looked for.
type LoopScope string

// The scopes.
const (
	LoopScopeRow LoopScope = ""    // calls in a row
	LoopScopeRun LoopScope = "run" // all calls of the run
)

// Bounds of loop detection.
const (
	maxCycles  = 10
	maxRepeats = 100
)

// named reports whether a definition sets anything.
func (l LoopDetection) named() bool {
	return l.Scope != LoopScopeRow || len(l.Exempt) > 0 || l.Cycles+l.Results+l.Parallel+l.Idle != 0
}

func (l LoopDetection) check(name string) error {
	if l.Scope != LoopScopeRow && l.Scope != LoopScopeRun {
		return Errorf(CodeInvalidInput, "agent %s: loop_detection.scope is %q; it may be %q, or is left out for calls in a row", name, l.Scope, LoopScopeRun).WithPath("loop_detection.scope")
	}
	for _, f := range []struct {
		path        string
		value, most int
	}{{"cycles", l.Cycles, maxCycles}, {"results", l.Results, maxRepeats}, {"parallel", l.Parallel, maxRepeats}, {"idle", l.Idle, maxRepeats}} {
		if f.value != 0 && (f.value < 2 || f.value > f.most) {
			path := "loop_detection." + f.path
			return Errorf(CodeInvalidInput, "agent %s: %s is %d; it may be 2 to %d", name, path, f.value, f.most).WithPath(path)
		}
	}
	return nil
}
