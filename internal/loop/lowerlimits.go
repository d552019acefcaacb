package loop

import (
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

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

// lacksPrices returns the error of a limit of the cost that can't be held; nil if there is none.
func (s *step) lacksPrices() *agent.Error {
	models := s.unpriced()
	if len(models) == 0 || s.budgetView().remaining(wire.ResourceCost) == unlimited {
		return nil
	}
	return agent.Errorf(agent.CodeInvalidInput, "limits.cost_usd can't be held, since the price of %s is not known", strings.Join(models, ", ")).WithPath("limits.cost_usd")
}

// unpriced returns the models that the run may ask and whose price is not known. A flow has no model of
// its own.
func (s *step) unpriced() []string {
	if !s.isFlow() && s.Spec.Price == (agent.Price{}) {
		return []string{s.Spec.Model}
	}
	return s.Spec.Unpriced
}
