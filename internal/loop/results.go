package loop

import (
	"slices"

	"github.com/fermata-agents/fermata/agent"
)

// setResult gives a call a result in the runtime's own words.
func (s *step) setResult(i int, status agent.CallStatus, text string) {
	s.setResultSized(i, status, text, 0)
}

// setResultSized gives a call a result. bytes counts the text in it that a tool, model or
// person wrote.
func (s *step) setResultSized(i int, status agent.CallStatus, text string, bytes int) {
	c := s.Calls.List[i]
	s.setResultAs(i, agent.ToolResult{Call: c.ID, Tool: c.Tool, Status: status, Text: text}, bytes)
}

// setResultAs gives a call its one result, and records it.
func (s *step) setResultAs(i int, r agent.ToolResult, bytes int) {
	c := s.Calls.List[i]
	// Not unknown: a model changes nothing, so there is no effect to look for.
	if r.Status == agent.CallUnknown && s.generates(c) {
		r.Status, r.Text, r.Size, bytes = agent.CallSkipped, "Not finished: the model's reply did not come.", 0, 0
	}
	s.keepAnswers(c, r.Status)
	most := s.mostText(c)
	r.Dropped = c.Dropped
	left := 0
	check := s.Checks.has(c.ID)
	if check { // whoever made it: it has looked, and leaves nothing
		r.Files = nil
		s.checkReturned(r)
	}
	if r, left = s.takeFiles(i, r); s.isFlow() { // a note would spoil a result in JSON
		r.LeftFiles, left = left, 0
	}
	r = s.Calls.finish(i, r, bytes, most, s.resultSpace(i)-partsJSONLen(r.Files))
	s.Calls.leaveFiles(i, left)
	if check {
		return
	}
	event := agent.Event{Type: agent.EventCallDone, Call: s.callUpdate(c, r.Status)}
	event.Call.Partial = r.Partial
	if r.Status == agent.CallUnknown {
		s.Calls.rememberUnknown(i, s.Run, s.stepPath(c))
		event.Type = agent.EventCallUnknown
	}
	s.record(event)
	tool, known := s.countedAs(c)
	s.Calls.countResult(tool, known, r.Status)
}

// mostText returns how long the text of a call's result may be, in bytes.
func (s *step) mostText(c Call) int {
	most := maxResults
	if !s.isFlow() { // the results of a turn become one message; a flow's are recorded as they come
		most /= len(s.Calls.List)
	}
	if s.temporalCall(c) != nil {
		most = min(most, maxOutsideResult)
	}
	return most
}

// resultFits reports whether a call's result would not be cut (Calls.finish). bytes counts what others wrote.
func (s *step) resultFits(i int, text string, bytes int, files []agent.Part) bool {
	most := s.mostText(s.Calls.List[i])
	size := min(s.resultSpace(i)-partsJSONLen(files), resultJSONLen(text, bytes), ownWords+7*most)
	return len(text) <= most && jsonLen(text) <= size
}

// skip gives a call that is not made a result. If its tool was called before and asked
// something, part of its effect may have happened: then it has failed.
func (s *step) skip(i int, why string) {
	if text := s.Calls.List[i].Unknown; text != "" { // nobody has said what to do about it
		s.setResult(i, agent.CallUnknown, text)
		return
	}
	if s.Calls.List[i].wasStarted() && !s.Checks.has(s.Calls.List[i].ID) {
		s.setResult(i, agent.CallFailed, "Not finished: "+why+". It had been made as far as its question.")
		return
	}
	if s.Turn.Interrupted { // the remark of a repeated call is about one that was made
		s.Calls.remark(i, "")
	}
	s.setResult(i, agent.CallSkipped, "Not executed: "+why+".")
}

// skipPending skips all calls that have not started.
func (s *step) skipPending(why string) {
	for i, c := range s.Calls.List {
		if c.State == CallPending {
			s.skip(i, why)
		}
	}
}

// ownCounts returns the counts of the calls that this run has made, without a fork's
// inherited ones.
func (c Calls) ownCounts() (ownCounts []agent.ToolCount) {
	for _, t := range c.Counts {
		if i := slices.IndexFunc(c.InheritedCounts, func(b agent.ToolCount) bool { return b.Tool == t.Tool }); i >= 0 {
			t = countsSince(t, c.InheritedCounts[i])
		}
		if t.Calls > 0 {
			ownCounts = append(ownCounts, t)
		}
	}
	return ownCounts
}

// countsSince returns the counts of t less those of before.
func countsSince(t, before agent.ToolCount) agent.ToolCount {
	t.Calls -= before.Calls
	t.OK -= before.OK
	t.Failed -= before.Failed
	t.Rejected -= before.Rejected
	t.Unknown -= before.Unknown
	t.Skipped -= before.Skipped
	return t
}

// toolReturned handles a call's result. Of a late one, for a call that has a result already, it takes
// the charges alone.
func (s *step) toolReturned(in ToolReturned) error {
	r := in.Result
	if s.SuspensionHooks.has(r.Call) {
		s.hookReturned(in)
		return nil
	}
	i := s.Calls.findRunning(r.Call)
	if i < 0 {
		return s.chargeLateResult(in)
	}
	s.chargeAll(in.Charges, in.Estimate)
	check := s.Checks.has(r.Call)
	for _, c := range in.Charges {
		if check {
			s.Checks.used(c)
		}
	}
	if in.Hold != nil && r.Status == agent.CallSkipped && !s.justified(*in.Hold) {
		s.recordOutdated(*in.Hold)
		// With a nearly full history the call keeps its result `skipped`; the next execution has room.
		if !s.historyForbidsCalls() && !s.Calls.List[i].Dropped {
			// The tool never began, so it can be called again. The call is still running: only
			// its activity is scheduled again.
			s.callTool(i, false)
			return nil
		}
	}
	switch {
	case in.Question != nil && s.Calls.List[i].Dropped:
		s.setResult(i, agent.CallFailed, "Not finished: it asked something, and nobody is asked, since "+reasonDropped+".")
	case in.Question != nil && s.End.Stopping == nil:
		s.askInCall(i, *in.Question)
	case in.Question != nil:
		s.setResult(i, agent.CallFailed, "Not finished: it asked something, and nobody is asked any more, since "+s.End.doing()+".")
	default:
		if r.Status == agent.CallOK && !check {
			s.Calls.keepStateChanges(i, in.StateChanges, s.space()) // the changes of a failed call are dropped
		}
		said := len(r.Text)
		if in.FromRuntime {
			said = 0
		}
		// A hold may have stopped the call although the run knows none: its task was lost.
		s.takeResult(i, r, in, said)
	}
	if in.ToolsChange != nil {
		s.toolsChanged(*in.ToolsChange)
	}
	if in.Missing != nil && s.End.Stopping == nil { // a resume makes the step again
		s.holdForLostWorkers(in.Missing)
	}
	s.takeMetHold(in.Hold) // after the result: the hold may be an ancestor's cancel, which ends this run too
	if s.Calls.runningCount() == 0 {
		s.End.endGrace() // all calls are back: end the grace early, because no call begins during it
	}
	return nil
}

// takeResult takes what a call has returned. said counts the text in it that the tool wrote.
func (s *step) takeResult(i int, r agent.ToolResult, in ToolReturned, said int) {
	check, cut := s.Checks.has(r.Call), s.End.Grace != nil || in.Hold != nil
	if cut {
		r = s.cutOff(i, r)
	}
	if r.Status == agent.CallUnknown && (cut || !check) && s.resolveUnknown(i, r.Text) {
		return
	}
	if u := in.Skill; u != nil && s.keepsSkill(*u) {
		s.setResult(i, agent.CallRejected, "A user has named the skill "+u.Name+" since you loaded it, so you can't end it.")
		return
	}
	if s.setResultAs(i, r, said); !check {
		s.saveArtifacts(i, in.Artifacts)
		s.skillCalled(i, in.Skill)
	}
}

// localToolSlow repeats a call that was too slow for a local activity as a regular activity, unless
// the run is cancelling its calls. During a stop the call has the time of all calls in flight.
func (s *step) localToolSlow(call string) error {
	i := s.Calls.findRunning(call)
	if i < 0 {
		return s.refuse("the result of call %s is not waited for", call)
	}
	why := ""
	switch a := s.End.Grace; {
	case a != nil:
		why = a.Reason
	case s.historyForbidsCalls():
		why = reasonHistoryLimit
	case s.Calls.List[i].Dropped:
		why = reasonDropped
	default:
		s.callTool(i, true)
		return nil
	}
	r := agent.ToolResult{Call: call, Tool: s.Calls.List[i].Tool, Status: agent.CallFailed, Text: "The tool was slow, and was not called again: " + why + "."}
	if s.End.Grace != nil {
		r = s.cutOff(i, r)
	}
	s.setResultAs(i, r, 0)
	if s.Calls.runningCount() == 0 {
		s.End.endGrace()
	}
	return nil
}

// interrupted reports whether an interrupt has kept a call from its result. A tool whose context ends mostly fails.
func (s *step) interrupted(c Call) bool {
	r := c.Result
	return s.Turn.Interrupted && (r.Partial || r.Status == agent.CallFailed || r.Status == agent.CallSkipped || r.Status == agent.CallUnknown)
}

// uncountInterrupted takes back what a turn that an interrupt has cut off counts for, since the model has not seen
// what its calls do: it is not idle, and equal calls before and after it are not in a row.
func (s *step) uncountInterrupted(calls []Call) {
	if slices.ContainsFunc(calls, s.interrupted) {
		s.Turn.endRepeat()
		s.Loops.interrupted()
	}
}
