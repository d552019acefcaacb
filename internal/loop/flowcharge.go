package loop

import (
	"encoding/json"
	"slices"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/amount"
	"github.com/fermata-agents/fermata/internal/wire"
)

// A flow can have several model calls in flight, as tool calls. What each has used comes with its
// result.

// generates reports whether a call is a flow's call of a model.
func (s *State) generates(c Call) bool {
	return s.isFlow() && c.Tool == agent.GenerateTool || s.judgeOf(c) != ""
}

// modelPrice returns the price of a model that a flow's function may call; zero if it is unknown.
func (s *State) modelPrice(name string) agent.Price {
	if j := slices.IndexFunc(s.Spec.Judges, func(m agent.ModelPrice) bool { return m.Model == name }); j >= 0 {
		return s.Spec.Judges[j].Price
	}
	i := slices.Index(s.Spec.Fallbacks, name)
	if i < 0 || i >= len(s.Spec.Prices) {
		return agent.Price{}
	}
	return s.Spec.Prices[i]
}

// estimatedCharge returns the estimated charge of a flow's model call whose usage is not known: its
// prompt. most is what the call may use, as far as the prompt bounds its reply. Both are zero for other
// calls.
func (s *State) estimatedCharge(c Call) (charge agent.Charge, most agent.Estimate) {
	if !s.generates(c) {
		return charge, most
	}
	if m := s.judgeOf(c); m != "" { // its prompt is made where the log is read
		u := agent.Usage{Input: s.Budget.estimatedCharge().Usage.Input}
		return agent.Charge{Model: m, Usage: u, Cost: s.modelPrice(m).Of(u), Estimated: true}, most
	}
	var p wire.Prompt
	if json.Unmarshal(c.Arguments, &p) != nil { // the activity refuses it
		return charge, most
	}
	if p.Model == "" && len(s.Spec.Fallbacks) > 0 {
		p.Model = s.Spec.Fallbacks[0]
	}
	price := s.modelPrice(p.Model)
	u := agent.Usage{Input: int64(len(c.Arguments)+bytesPerToken-1) / bytesPerToken}
	charge = agent.Charge{Model: p.Model, Usage: u, Cost: price.Of(u), Estimated: true}
	u.Output = amount.Clamp(int64(p.MaxOutputTokens))
	return charge, agent.Estimate{Tokens: u.Total(), Cost: price.Of(u)}
}

// chargeLostCall charges an estimate for a flow's model call in flight that the run no longer waits
// for. If its result comes late, chargeLateResult charges the rest.
func (s *step) chargeLostCall(c Call) {
	if e, _ := s.estimatedCharge(c); e.Estimated {
		s.Budget.charge(e, s.Spec.Price)
	}
}

// chargeLateResult charges what a call that the run no longer waits for has used beyond the estimate.
// A result that charges nothing is refused.
func (s *step) chargeLateResult(in ToolReturned) error {
	dropped := s.SuspensionHooks.returned(in.Result.Call)
	if s.Phase == RunEnded || len(in.Charges) == 0 && !dropped {
		return s.refuse("the result of call %s is not waited for", in.Result.Call)
	}
	s.chargeBeyond(in.Estimate, in.Charges)
	return nil
}

// mayGenerate reports whether something is left of the run's limits if each model call in flight uses
// what it may. So many calls at once exceed a limit by as much as one call does. If none is in flight,
// the limits themselves decide.
func (s *step) mayGenerate() bool {
	sum := s.Calls.reserved()
	k := s.budgetView()
	return (sum.Tokens == 0 || k.remaining(wire.ResourceTokens) > sum.Tokens) && (sum.Cost == 0 || k.remaining(wire.ResourceCost) > int64(sum.Cost))
}

// reserved returns what the model calls in flight may use.
func (c Calls) reserved() (sum agent.Estimate) {
	for _, k := range c.List {
		if k.State == CallRunning {
			sum = sum.Add(k.Reserved)
		}
	}
	return sum
}

// grantExhausted reports whether all that the parent has granted of a resource is used.
func (s *State) grantExhausted() bool { return s.exceededGrant() != wire.Amounts{} }

// exceededGrant returns what a flow with open steps needs for its next ones, of each resource of which
// all that the parent has granted is used; zero for others. What the flow has granted to its own
// sub-agents does not count: to be asked for its next steps, a flow needs none of it.
func (s *State) exceededGrant() (short wire.Amounts) {
	k := s.budgetView()
	for _, r := range limitOrder {
		if a := k.FromParent; a != nil && a.Granted[r] != wire.Unlimited && k.used(r) >= a.Granted[r]-a.Returned[r] {
			short[r] = max(1, s.Budget.LastTurn[r])
		}
	}
	return short
}
