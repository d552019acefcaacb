package agent

// LoopDetection sets thresholds for loops that the runtime does not look for by itself: it
// always finds six equal calls in a row. Zero means that a form is not looked for. What follows is
// in on_loop, or in recovery.loop; after idle it is in recovery.no_progress.
type LoopDetection struct {
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

// Bounds of loop detection.
const (
	maxCycles  = 10
	maxRepeats = 100
)

func (l LoopDetection) check(name string) error {
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
