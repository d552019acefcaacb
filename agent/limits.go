package agent

// Limits bound a run. A zero limit is none, but for Turns. Reaching one fails
// the run with the limit's code.
type Limits struct {
	// Turns is how many model calls a run makes, exactly (catalogue X-18).
	Turns int `json:"turns,omitempty"`
	// Tokens counts input and output over all turns.
	Tokens  int64 `json:"tokens,omitempty"`
	CostUSD USD   `json:"cost_usd,omitempty"`
	// WallClock is working time: what a run spends suspended does not count.
	WallClock Duration `json:"wall_clock,omitempty"`
}

// Check refuses negative limits with [InvalidInput].
func (l Limits) Check() error {
	switch {
	case l.Turns < 0:
		return Errorf(InvalidInput, "limits.turns: %d is not a positive number", l.Turns).At("limits.turns")
	case l.Tokens < 0:
		return Errorf(InvalidInput, "limits.tokens: %d is not a positive number", l.Tokens).At("limits.tokens")
	case l.CostUSD < 0:
		return Errorf(InvalidInput, "limits.cost_usd: %s is not a positive amount", l.CostUSD).At("limits.cost_usd")
	case l.WallClock < 0:
		return Errorf(InvalidInput, "limits.wall_clock: %s is not a positive duration", l.WallClock).At("limits.wall_clock")
	}
	return nil
}

// Lower returns the tighter of two limits, field by field: what a start says
// may only lower what the agent's author said.
func (l Limits) Lower(o Limits) Limits {
	return Limits{tighter(l.Turns, o.Turns), tighter(l.Tokens, o.Tokens), tighter(l.CostUSD, o.CostUSD), tighter(l.WallClock, o.WallClock)}
}

func tighter[T int | int64 | USD | Duration](a, b T) T {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
