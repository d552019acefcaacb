package agent

// Limits are how much a run may use together with all runs below it. A child run gets a part of what is
// left, and asks for more when it needs more. Without a number there is no limit, except for
// own_turns, agents and depth. A run that reaches a limit fails with the limit's code, or asks.
type Limits struct {
	// Turns is how many turns the run and all runs below it may take. A turn is one reply of
	// the model with the calls that it asks for. A summary is no turn.
	Turns int `json:"turns,omitempty"`
	// OwnTurns is how many turns the run itself may take; zero means the profile's number, or
	// no limit if turns is set.
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
}

// Bounds and defaults of what agents may start.
const (
	maxAgents    = 10_000
	maxDepth     = 16
	defaultDepth = 8
)

// WithDefaults returns l with every default filled in; turns is the profile's.
func (l Limits) WithDefaults(turns int) Limits {
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
	return nil
}
