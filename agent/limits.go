package agent

// Limits are how much a run may use together with all runs below it. A child run gets a part of what is
// left, and asks for more when it needs more. Without a number there is no limit, except for
// own_turns, agents and depth. A run that reaches a limit fails with the limit's code, or asks.
type Limits struct {
	// Turns is how many turns the run and all runs below it may take. A turn is one reply of
	// the model with the calls that it asks for. A summary is no turn.
	Turns int `json:"turns,omitempty"`
	// OwnTurns is how many turns the run itself may take; zero means the profile's number, or
	// no limit if turns is set. The max of adaptive wins over it.
	OwnTurns int `json:"own_turns,omitempty"`
	// Tokens is how many input and output tokens all turns may use. A call that has started
	// ends, so each working agent may exceed the limit by one reply.
	Tokens int64 `json:"tokens,omitempty"`
	// CostUSD is what all model calls may cost, in US dollars. The price of each model must be
	// known.
	CostUSD USD `json:"cost_usd,omitempty"`
	// WallClock is how long the run may work. Time that it spends suspended does not count,
	// unless a run below it works meanwhile.
	WallClock Duration `json:"wall_clock,omitempty"`
	// Agents is how many runs may be started below, at most 10,000; zero means 10,000. The
	// call that would start one more is refused, and the run continues.
	Agents int `json:"agents,omitempty"`
	// Depth is how many levels of runs may be below one another, at most 16; zero means 8. The
	// call that would start a deeper run is refused.
	Depth int `json:"depth,omitempty"`
	// Adaptive is a limit of the run's own turns that moves with what the run does; nil for none.
	// Only an agent's own limits have it: a start or a parent can't set it.
	Adaptive *AdaptiveLimit `json:"adaptive,omitempty"`
}

// Bounds and defaults of what agents may start.
const (
	maxAgents    = 10_000
	maxDepth     = 16
	defaultDepth = 8
)

// WithDefaults returns l with every default filled in; turns is the profile's.
func (l Limits) WithDefaults(turns int) Limits {
	if l.Adaptive != nil { // its max wins over own_turns
		l.Adaptive = l.Adaptive.withDefaults(l.OwnTurns)
		l.OwnTurns = l.Adaptive.Max
	}
	if l.Turns == 0 {
		l.OwnTurns = or(l.OwnTurns, turns)
	}
	l.Agents, l.Depth = or(l.Agents, maxAgents), or(l.Depth, defaultDepth)
	return l
}

// Check refuses invalid limits with [CodeInvalidInput].
func (l Limits) Check() error {
	switch {
	case l.Turns < 0:
		return Errorf(CodeInvalidInput, "limits.turns: %d is not a positive number", l.Turns).WithPath("limits.turns")
	case l.OwnTurns < 0:
		return Errorf(CodeInvalidInput, "limits.own_turns: %d is not a positive number", l.OwnTurns).WithPath("limits.own_turns")
	case l.Tokens < 0:
		return Errorf(CodeInvalidInput, "limits.tokens: %d is not a positive number", l.Tokens).WithPath("limits.tokens")
	case l.CostUSD < 0:
		return Errorf(CodeInvalidInput, "limits.cost_usd: %s is not a positive amount", l.CostUSD).WithPath("limits.cost_usd")
	case l.WallClock < 0:
		return Errorf(CodeInvalidInput, "limits.wall_clock: %s is not a positive duration", l.WallClock).WithPath("limits.wall_clock")
	case l.Agents < 0 || l.Agents > maxAgents:
		return Errorf(CodeInvalidInput, "limits.agents is %d; it may be 1 to %d", l.Agents, maxAgents).WithPath("limits.agents")
	case l.Depth < 0 || l.Depth > maxDepth:
		return Errorf(CodeInvalidInput, "limits.depth is %d; it may be 1 to %d", l.Depth, maxDepth).WithPath("limits.depth")
	}
	return l.Adaptive.check(l.OwnTurns)
}

// AdaptiveLimit is a limit of the run's own turns that begins low and moves with what the run does.
// Its Max wins over own_turns; the other limits hold beside it.
type AdaptiveLimit struct {
	// Initial is how many turns the run may take at first; zero means a quarter of Max, at least 1.
	Initial int `json:"initial,omitempty"`
	// Max is the most that the limit may become; zero means limits.own_turns, or 16 without it. It
	// is the run's own_turns.
	Max int `json:"max,omitempty"`
	// ExtendBy is by how many turns the limit grows when it is reached, if the last turn had a
	// tool call, if a tool of require was not used yet, or if a check refused the answer; zero
	// means 2.
	ExtendBy int `json:"extend_by,omitempty"`
	// ShrinkBy is by how many turns the limit shrinks when two turns in a row brought nothing: no
	// call succeeded, no check refused an answer, and no tool of require is missing; zero means
	// that it does not shrink. One turn always stays.
	ShrinkBy int `json:"shrink_by,omitempty"`
}

// defaultAdaptiveMax and defaultExtendBy are the defaults of an adaptive limit.
const (
	defaultAdaptiveMax = 16
	defaultExtendBy    = 2
)

// withDefaults returns a with every default filled in; own is limits.own_turns.
func (a AdaptiveLimit) withDefaults(own int) *AdaptiveLimit {
	a.Max = or(or(a.Max, own), defaultAdaptiveMax)
	a.Initial, a.ExtendBy = or(a.Initial, max(1, a.Max/4)), or(a.ExtendBy, defaultExtendBy)
	return &a
}

// check refuses invalid numbers; own is limits.own_turns.
func (a *AdaptiveLimit) check(own int) error {
	if a == nil {
		return nil
	}
	for _, f := range []struct {
		path  string
		value int
	}{{"initial", a.Initial}, {"max", a.Max}, {"extend_by", a.ExtendBy}, {"shrink_by", a.ShrinkBy}} {
		if f.value < 0 || f.value > maxAgents {
			path := "limits.adaptive." + f.path
			return Errorf(CodeInvalidInput, "%s is %d; it may be 1 to %d", path, f.value, maxAgents).WithPath(path)
		}
	}
	if most := a.withDefaults(own).Max; a.Initial > most {
		return Errorf(CodeInvalidInput, "limits.adaptive.initial is %d, more than limits.adaptive.max, which is %d", a.Initial, most).WithPath("limits.adaptive.initial")
	}
	return nil
}

// LimitMove is one move of an adaptive limit.
type LimitMove struct {
	Limit  string     `json:"limit"` // always "own_turns"
	From   int        `json:"from"`
	To     int        `json:"to"`
	Reason MoveReason `json:"reason"`
	Turn   int        `json:"turn"`
	// Why is what a hook says; empty for other moves.
	Why string `json:"why,omitempty"`
}

// MoveReason is why an adaptive limit moved.
type MoveReason string

// The reasons. All but the last extend a limit.
const (
	MovedByToolCall MoveReason = "tool_call"     // the last turn had a tool call
	MovedByVeto     MoveReason = "veto"          // a check refused the model's answer
	MovedByMissing  MoveReason = "tool_required" // a tool of require was not used yet
	MovedByHook     MoveReason = "hook"          // a tool of hooks.after_turn said so
	MovedByStall    MoveReason = "stalled"       // two turns in a row brought nothing
)

// AdaptiveBudget says how an adaptive limit moved.
type AdaptiveBudget struct {
	// Decisions are the last moves, at most 32.
	Decisions      []LimitMove `json:"decisions"`
	ExtensionsUsed int         `json:"extensions_used"`
	FinalLimit     int         `json:"final_limit"`
}
