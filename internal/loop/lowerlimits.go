package loop

import "github.com/fermata-agents/fermata/agent"

// lowerLimits returns the lower of two limits, field by field. A start may only lower the
// limits of the agent's author.
func lowerLimits(l, o agent.Limits) agent.Limits {
	return agent.Limits{
		Turns: tighter(l.Turns, o.Turns), OwnTurns: tighter(l.OwnTurns, o.OwnTurns), Tokens: tighter(l.Tokens, o.Tokens), CostUSD: tighter(l.CostUSD, o.CostUSD),
		WallClock: tighter(l.WallClock, o.WallClock), Agents: tighter(l.Agents, o.Agents), Depth: tighter(l.Depth, o.Depth),
		Adaptive: l.Adaptive,
	}
}

// tighter returns the lower of two limits. Zero means no limit, so the other one counts.
func tighter[T int | int64 | agent.USD | agent.Duration](a, b T) T {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
