package loop

import (
	"slices"

	"github.com/fermata-agents/fermata/agent"
)

// The state in an export was made by somebody else. Its signature proves who exported it, not that
// it is right. So an import is rejected if its state contradicts itself, and sizes are computed
// again.

// inconsistency returns how the state of a suspended run contradicts itself; empty if it does not.
func (s *State) inconsistency() string {
	n := s.Counters
	// After a number near the end of its range, no later number would be left.
	for _, one := range []int{n.Suspension, n.Request, n.Hold, n.Child, n.Artifact, n.ArtifactFloor, n.Skill, s.Notebook.Version, s.Turn.N} {
		if one < 0 || one > maxHold {
			return "it has a number that no session comes to"
		}
	}
	switch {
	case s.Budget.ForkTurn < 0 || s.Budget.ForkTurn > s.Turn.N:
		return "it has counted more turns than it has"
	case s.Ledger.FromParent != nil || len(s.Ledger.Accounts) > 0:
		return "it shares limits with runs that it does not have"
	case len(s.Holds.List) > 1 || slices.ContainsFunc(s.Holds.List, func(h agent.Hold) bool { return h.From != agent.HoldOwn || h.Session != s.Session }):
		return "it is held by runs that it does not have"
	case s.idling() && s.daemon() == nil:
		return "it idles and is no daemon"
	case !s.Artifacts.sound(s.Session):
		return "it has an artifact that no run can have saved"
	case !s.skillsSound():
		return "it has a skill that its agent does not have"
	case s.Turn.Phase == TurnAdvancing && !s.isFlow():
		return "it asks a flow and is none"
	case s.Turn.Phase == TurnReady && len(s.Calls.List) > 0 || len(s.Calls.List) > maxAsked:
		return "it has calls of no turn"
	case s.SuspensionHooks.asked():
		return "it rests, and asks a hook"
	case !s.checksConsistent():
		return "it checks what it has not"
	case slices.ContainsFunc(s.Calls.List, func(c Call) bool { return !s.callConsistent(c) }):
		return "it has a call that nothing comes of"
	case slices.ContainsFunc(s.Requests.Open, func(o Request) bool { return !s.requestConsistent(o) }):
		return "it asks about a call that it does not have"
	}
	return ""
}

// checksConsistent reports whether what is checked is there, with the check.
func (s *State) checksConsistent() bool {
	p, c := s.Checks.Proposal, s.Checks.Current
	switch {
	case p != nil && (p.Next < 0 || p.Next >= len(s.Spec.ChecksAt(agent.PointVerify)) || s.isFlow()):
		return false
	case max(len(s.Checks.VetoesBy), len(s.Checks.AskedBy)) > len(s.Spec.ChecksAt(agent.PointVerify)) || len(s.Hooks.VetoesBy) > len(s.Spec.ChecksAt(agent.PointBeforeCalls)):
		return false
	case c != nil && (c.Index < 0 || c.Index >= len(s.Spec.ChecksAt(c.Point))):
		return false
	case s.Hooks.Task < 0 || s.Hooks.Task > len(s.Spec.ChecksAt(agent.PointBeforeRun)):
		return false
	case c != nil && c.Point == agent.PointBeforeRun:
		return s.ownTurns() == 0 && s.Turn.Phase == TurnWorking && len(s.Calls.List) == 1 && s.Calls.List[0].ID == c.Call
	case c != nil && c.Point == agent.PointAfterTurn:
		return s.Hooks.Due && s.Turn.Phase == TurnWorking && len(s.Calls.List) == 1 && s.Calls.List[0].ID == c.Call
	case c != nil && (c.Point == agent.PointBeforeCalls || c.Point == agent.PointStalled):
		return s.Hooks.Calls != nil && s.Turn.Phase == TurnWorking && s.Calls.find(c.Call) >= 0
	case c != nil:
		return p != nil && s.Turn.Phase == TurnWorking && len(s.Calls.List) == 1 && s.Calls.List[0].ID == c.Call
	}
	h := s.Hooks.Calls
	if s.Hooks.Due && (s.Hooks.Next < 0 || s.Hooks.Next >= len(s.Spec.ChecksAt(agent.PointAfterTurn))) {
		return false
	}
	return s.Checks.Made >= 0 && (h == nil || s.Turn.Phase == TurnWorking && h.Next >= 0 && h.Judge >= 0 && h.Next <= len(s.Spec.ChecksAt(agent.PointBeforeCalls)))
}

// callConsistent reports whether a call is the only one with its id, and has what its state needs.
// A suspended run has no call that is running or waits for sub-agents.
func (s *State) callConsistent(c Call) bool {
	same := func(k Call) bool { return k.ID == c.ID }
	if i := slices.IndexFunc(s.Calls.List, same); slices.ContainsFunc(s.Calls.List[i+1:], same) {
		return false
	}
	switch c.State {
	case CallPending:
		return true
	case CallAwaitingAnswer:
		i := s.Requests.find(c.Request)
		return i >= 0 && s.Requests.Open[i].CallID == c.ID
	case CallAwaitingEvent:
		return s.isFlow() && c.Wait != nil && !c.Wait.Idle
	case CallDone:
		return c.Result != nil
	}
	return false
}

// requestConsistent reports whether a request is the only one with its id, and its call waits for it.
func (s *State) requestConsistent(o Request) bool {
	same := func(k Request) bool { return k.ID == o.ID }
	if i := slices.IndexFunc(s.Requests.Open, same); slices.ContainsFunc(s.Requests.Open[i+1:], same) {
		return false
	}
	i := s.Calls.find(o.CallID)
	switch o.Type {
	case agent.RequestLimit:
		return o.CallID == "" && i < 0 && !o.RetryCall
	case agent.RequestApproval, agent.RequestClientTool, agent.RequestQuestion:
		return i >= 0 && s.Calls.List[i].Request == o.ID && s.Calls.List[i].State == CallAwaitingAnswer &&
			(o.Call != nil || o.Type == agent.RequestQuestion && !o.RetryCall)
	}
	return false
}

// recount computes all sizes that the state keeps again.
func (s *step) recount() {
	s.Messages.recount()
	s.Verbs.recount()
	s.Requests.recount()
	s.Late.bound()
	s.Suspensions.boundEnds()
	s.Suspensions.dropOwnerFailed()
	s.Late.keep(func(id string) bool { return requestNumber(id) <= s.Counters.Request && s.Requests.find(id) < 0 })
	s.Calls.recount()
	s.Checks.recount()
	s.Park.recount()
	s.Watch.reset(s.now())
	s.Children.trim()
}
