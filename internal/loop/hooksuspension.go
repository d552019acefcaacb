package loop

import (
	"encoding/json"
	"fmt"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/excerpt"
)

// This file asks hooks before a suspension, and tells hooks of suspensions and resumes. hookresume.go
// has what a hook before a resume decides.

// hooksAt returns the hooks at a point; nil before the run has its Spec.
func (s *State) hooksAt(p agent.CheckPoint) []agent.Check {
	if s.Spec == nil {
		return nil
	}
	return s.Spec.ChecksAt(p)
}

// deniable reports whether the open suspension is one that a hook may deny: a person's pause or a park
// that has not come to rest, and nothing else that the run would wait for anyway. An interrupt, the
// holds of a parent and those of the runtime always work.
func (s *step) deniable() bool {
	w := s.Suspensions.Open
	if w == nil || w.AtRest || w.Settled || s.End.Stopping != nil || s.outcomeDecided() || s.Holds.inherited() != nil || len(s.Requests.Open) > 0 {
		return false
	}
	h := s.Holds.own()
	if h != nil && (h.Verb != agent.VerbPause || h.Code != "") || s.idling() {
		return false
	}
	return h != nil || s.Park != nil
}

// mustAsk reports whether a hook has to allow the suspension before the run may rest.
func (s *step) mustAsk() bool {
	return s.deniable() && s.Suspensions.Open.Allowed < len(s.hooksAt(agent.PointBeforeSuspension))
}

// nextHook returns the hook around a suspension or a resume that works next.
func (s *step) nextHook() (p agent.CheckPoint, index int, ok bool) {
	h, w := s.SuspensionHooks, s.Suspensions.Open
	active := s.Phase == RunActive
	switch {
	case h.Current != nil || s.End.Stopping != nil || s.End.Grace != nil || s.outcomeDecided():
	case active && h.Resumed != nil:
		return agent.PointAfterResume, h.Resumed.Next, true
	case active && s.mustAsk() && s.canRest():
		return agent.PointBeforeSuspension, w.Allowed, true
	case active && s.mustTellSuspension() && s.stored():
		return agent.PointAfterSuspension, w.Told, true
	case h.Resume != nil && s.isAtRest() && h.Resume.Next < len(s.hooksAt(agent.PointBeforeResume)):
		return agent.PointBeforeResume, h.Resume.Next, true
	}
	return "", 0, false
}

// mustTellSuspension reports whether a hook has to be told of the suspension before the run reports
// itself suspended: a run that says so has nothing in flight.
func (s *step) mustTellSuspension() bool {
	w := s.Suspensions.Open
	return s.isAtRest() && !w.Published && w.Cause != causeIdle && w.Told < len(s.hooksAt(agent.PointAfterSuspension))
}

// callNextHook calls the next hook.
func (s *step) callNextHook() {
	point, index, _ := s.nextHook()
	k := s.hooksAt(point)[index]
	s.SuspensionHooks.begin(CurrentCheck{Call: checkID(s.Turn.N, s.Checks.next()), Point: point, Index: index, Since: s.At})
	u := s.hookUpdate()
	s.record(agent.Event{Type: agent.EventCheckStarted, Check: u})
	s.do(CallTool{ToolArgs: ToolArgs{
		Caller: s.caller(), Agent: s.agent(), Call: u.Call, Tool: k.ToolName(), Timeout: k.Timeout, Attempts: checkTries,
		Check: &CheckArgs{Point: point, Name: k.Name, Subject: s.hookSubject(point)},
	}})
}

// currentHook returns the hook that works.
func (s *State) currentHook() agent.Check {
	at := s.SuspensionHooks.Current
	return s.hooksAt(at.Point)[at.Index]
}

// hookUpdate returns what an event says of the hook that works.
func (s *State) hookUpdate() *agent.CheckUpdate {
	at, k := s.SuspensionHooks.Current, s.currentHook()
	return &agent.CheckUpdate{Name: k.Name, Point: at.Point, Kind: k.Kind(), Call: at.Call, Tool: k.ToolName()}
}

// maxHookText bounds the message of a resume that a hook gets, in bytes, and the words that a hook says
// instead, in bytes of JSON.
const maxHookText = 16 << 10

// hookSubject returns what the tool of a hook is called with. The log does not have all of it: a
// resume is in the log when it is carried out.
func (s *step) hookSubject(p agent.CheckPoint) json.RawMessage {
	sub := agent.SuspensionHook{Point: p}
	switch told, c := s.SuspensionHooks.Resumed, s.SuspensionHooks.Resume; {
	case p == agent.PointAfterResume:
		resumed := told.Resumed
		sub.Suspension, sub.Resumed = told.Suspension, &resumed
	case p == agent.PointBeforeResume:
		o := c.Command
		sub.Suspension = s.hookSuspension()
		sub.Resume = &agent.HookResume{By: o.By, Message: excerpt.Of(o.Message, maxHookText, len(o.Message)), Files: len(o.Parts), FromSummary: o.FromSummary, Refresh: o.Refresh, Cut: len(o.Message) > maxHookText}
	default:
		sub.Suspension = s.hookSuspension()
	}
	raw, err := json.Marshal(sub)
	if err != nil { // texts are JSON
		return nil
	}
	return raw
}

// hookSuspension returns the open suspension as hooks are told of it.
func (s *State) hookSuspension() agent.HookSuspension {
	w := s.Suspensions.Open
	sub := agent.HookSuspension{ID: w.ID, Kind: s.reasons().kind(), Initiator: w.By, Cause: w.Cause, Reason: w.Reason, Turn: w.Turn, Since: w.At.UTC()}
	if h := s.Holds.own(); h != nil {
		sub.By = h.By
	}
	return sub
}

// hookReturned takes what a hook has said.
func (s *step) hookReturned(in ToolReturned) {
	at, k, r := *s.SuspensionHooks.Current, s.currentHook(), in.Result
	if in.Question != nil {
		r.Status, r.Text = agent.CallFailed, "it asked something, and a hook asks nobody"
	}
	v, wrong := s.verdictOf(k, r)
	if v == nil {
		v = failedVerdict(k, wrong)
	}
	if at.Point.Tells() && r.Status == agent.CallOK { // whatever it says decides nothing
		if k.Kind() == agent.CheckByCommand && v.Decision == agent.DecisionVeto {
			wrong = v.Reasoning
		}
		v = &agent.Verdict{Decision: agent.DecisionAccept}
	}
	v.ToParent = v.ToParent && at.Point == agent.PointBeforeResume && v.Decision == agent.DecisionVeto
	u := s.hookUpdate()
	u.Status, u.Duration, u.Verdict, u.Error = r.Status, at.runsFor(s.At), v, wrong
	s.record(agent.Event{Type: agent.EventCheckDone, Check: u})
	s.SuspensionHooks.end()
	s.takeMetHold(in.Hold) // it may be an ancestor's cancel
	if s.outcomeDecided() {
		return
	}
	switch at.Point {
	case agent.PointBeforeSuspension:
		s.suspensionJudged(k, *v)
	case agent.PointAfterSuspension:
		if s.Suspensions.atRest() { // else it is over
			s.Suspensions.told()
		}
	case agent.PointBeforeResume:
		s.resumeJudged(k, *v, wrong != "")
	case agent.PointAfterResume:
		s.SuspensionHooks.told(len(s.hooksAt(at.Point)))
	}
}

// suspensionJudged takes what a hook says of the suspension that is about to begin.
func (s *step) suspensionJudged(k agent.Check, v agent.Verdict) {
	switch {
	case !s.deniable(): // a stronger verb came with the hook's answer
	case v.Decision == agent.DecisionAccept:
		s.Suspensions.allow(fit(v.Text, maxReason))
	default:
		s.denySuspension(k, v)
	}
}

// denySuspension lets the run go on: the pause and the park that would have suspended it are gone.
func (s *step) denySuspension(k agent.Check, v agent.Verdict) {
	w := s.Suspensions.Open
	s.SuspensionHooks.denied(agent.SuspensionDenied{Suspension: w.ID, Kind: s.reasons().kind(), Hook: k.Name, Reason: hookReason(k, v), At: s.now()})
	if s.Holds.own() != nil {
		s.removeHold(agent.HoldOwn)
		s.orderChildren(s.passHolds(agent.VerbResume, 0))
	}
	if s.Park == nil {
		return
	}
	s.endPark()
	if !s.isFlow() {
		s.Turn.setNote(fmt.Sprintf("You asked to be suspended, and were not: the hook %s denied it: %s", k.Name, hookReason(k, v)))
	}
}

// hookIsMoot reports whether nobody needs the hook that works any more, or the suspension is over that
// a resume would end.
func (s *step) hookIsMoot() bool {
	h := s.SuspensionHooks
	over := s.End.Stopping != nil || s.outcomeDecided()
	switch {
	case h.Resume != nil && (over || !s.isAtRest()), h.busy() && over, h.Resumed != nil && s.Holds.blockCalls(false):
		return true
	case h.Current == nil:
		return false
	}
	switch h.Current.Point {
	case agent.PointBeforeSuspension:
		return !s.deniable()
	case agent.PointBeforeResume:
		return h.Resume == nil
	}
	return false // it only gets to know, and may end
}

// dropHook gives up the hook that nobody needs, and refuses the resume that waited for it.
func (s *step) dropHook() {
	if s.SuspensionHooks.Resume != nil {
		s.withdrawResume()
	}
	s.SuspensionHooks.dropResumed()
	s.giveUpHook()
}

// giveUpHook waits no longer for the hook that works.
func (s *step) giveUpHook() {
	if s.SuspensionHooks.Current == nil {
		return
	}
	u := s.hookUpdate()
	u.Status = agent.CallSkipped
	s.record(agent.Event{Type: agent.EventCheckDone, Check: u})
	s.do(CancelCall{Call: s.SuspensionHooks.drop()})
}

// awaitsDroppedHook reports whether a hook that was cancelled has not returned.
func (s *step) awaitsDroppedHook() bool {
	return s.SuspensionHooks.Dropped != "" && s.Revision >= droppedHookSince
}

// tellResume lets the hooks after a resume be told of it, unless it is an idle daemon that works again,
// or a stop.
func (s *step) tellResume(was agent.HookSuspension, r agent.Resumed) {
	if len(s.hooksAt(agent.PointAfterResume)) == 0 || was.Cause == causeIdle || s.End.Stopping != nil {
		return
	}
	was.Kind = "" // what the run waited for is gone
	s.SuspensionHooks.resumed(ToldResume{Suspension: was, Resumed: r})
}

// hookReason returns why a hook has said no.
func hookReason(k agent.Check, v agent.Verdict) string {
	return fit(firstOf(v.Reasoning, k.FeedbackFallback, "it gave no reason"), maxReasoning)
}

// AsksHook reports whether a hook around a suspension works, or a resume waits for one. The run does not
// continue as new meanwhile.
func (s *State) AsksHook() bool { return s.SuspensionHooks.asked() }
