package loop

import (
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// The parent is the safety net of a suspended child. A parent whose call waits for a child does not work,
// so it could not resume the child. If the child's owner fails, the child says so in its report, and the
// parent releases it: the call gets its result, and the child goes on as one in the background. Its end
// comes then as that of any child in the background: Temporal delivers it once, and subagent_wait shows it.

// waits reports whether a call of the parent's model waits for this run. The call may have returned
// since: the run does not learn that.
func (p Parent) waits() bool {
	return p.Start != nil && !p.Start.Background && !p.Start.Outlives
}

// needsOwner reports whether the run is at rest until an event comes or a person resumes or answers it: no
// time or deadline ends that. A held run does not count: its parent's model could not remove the hold.
func (s *State) needsOwner() bool {
	why := s.reasons()
	return s.Suspensions.atRest() && len(why) > 0 && !s.idling() && !slices.ContainsFunc(why, func(r reason) bool {
		return !r.expires.IsZero() || r.kind != agent.SuspensionParked && r.kind != agent.SuspensionInputRequired
	})
}

// ownerFailsAt returns when people may not resume or answer the run any more, if its parent waits for
// it and has to know; else zero. A resume that waits for hooks came in time.
func (s *State) ownerFailsAt() time.Time {
	if !s.Parent.waits() || !s.needsOwner() || s.Suspensions.Open.OwnerFailed != nil || s.SuspensionHooks.asked() {
		return time.Time{}
	}
	return s.answerBy()
}

// ownerFails records why the owner does not let the run continue, and lets the parent know.
func (s *step) ownerFails(code agent.Code, why string) {
	if !s.Parent.waits() || !s.needsOwner() || s.Suspensions.Open.OwnerFailed != nil {
		return
	}
	f := agent.OwnerFailure{Suspension: s.Suspensions.Open.ID, Owner: s.reasons().owner(), Code: code, Reason: fit(why, maxWhy)}
	s.Suspensions.ownerFails(f)
	s.record(agent.Event{Type: agent.EventOwnerFailed, OwnerFailed: &f}) // also gives the report a higher number
	s.changed = true
}

// releaseNote is what the model reads beside a suspended child that was released.
const releaseNote = "This call does not wait any longer: the agent is in the background now. In this run, use subagent_resume, subagent_wait or subagent_stop."

// releaseChild answers the call that waits for a child, if the child's owner has failed, or if the agent
// has on_child_suspend: return. A flow's step and a check wait on: no model reads their result.
func (s *step) releaseChild(i int) {
	c := s.Children.List[i]
	k := s.Calls.find(c.Call)
	if c.Call == "" || k < 0 || s.Calls.List[k].State != CallAwaitingChildren || s.isFlow() || s.Checks.has(c.Call) {
		return
	}
	if !s.mayRelease(c) || !s.offerLifecycleTools() {
		return
	}
	s.Children.release(i)
	s.Children.shown(i, s.Turn.N)
	answer := c.answer()
	answer.Note = releaseNote
	if s.resumed.Cause == "" {
		s.resumed.Cause = agent.InitiatorTriggered
	}
	status := agent.CallFailed // there is no result of the child, as require and stop_after need one
	if !s.waitsForNews() {
		status = agent.CallOK
	}
	size := s.answersSize([]Child{c})
	s.setResultSized(k, status, s.answerText(k, answer, size), size)
}

// mayRelease reports whether a suspended child is one that the parent's model should know of. What only
// needs a grant, or is held from above, goes on by the runtime.
func (s *step) mayRelease(c Child) bool {
	w := c.Suspension
	if c.Status != agent.StatusSuspended || w == nil {
		return false
	}
	returns := s.Spec.OnChildSuspend == agent.ChildSuspendReturn && w.Kind != agent.SuspensionAwaitingBudget && w.Owner != agent.OwnerParent
	return returns || w.OwnerFailed != nil && (ownerFailedFits(*w) || !s.waitsForNews())
}

// ownerFailedFits reports whether what a report says of its owner is about the suspension that it reports,
// as a child would say it. Anybody who may signal this workflow could send a report (decision 0035).
func ownerFailedFits(w agent.SuspensionSummary) bool {
	f := w.OwnerFailed
	code := f.Code == agent.CodeDenied || f.Code == agent.CodeExpired
	kind := w.Kind == agent.SuspensionParked || w.Kind == agent.SuspensionInputRequired
	return code && kind && f.Suspension == w.ID && w.Expires.IsZero() && w.Owner != agent.OwnerParent
}

// offerLifecycleTools gives the model the tools that manage sub-agents, from the next turn to the run's
// end, if the agent has none. It reports whether the model has them: they may not fit in the state.
func (s *step) offerLifecycleTools() bool {
	if slices.ContainsFunc(s.Spec.Toolset, func(t agent.ToolSpec) bool { return slices.Contains(lifecycleNames, t.Name) }) {
		return s.hasOwnTool(resumeTool) // else a worker or a client has a tool of that name
	}
	change := agent.ToolsChange{Tools: lifecycleTools()}
	spec := withoutTexts(change.ApplyTo(*s.Spec))
	if specJSONLen(spec)+s.Parent.jsonLen() > specShare {
		return false
	}
	s.record(agent.Event{Type: agent.EventToolsChanged, ToolsChange: &change})
	s.Spec = &spec
	return true
}
