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
	r = s.Calls.finish(i, r, bytes, s.resultSpace(i))
	event := agent.Event{Type: agent.EventCallDone, Call: &agent.CallUpdate{Call: c.ID, Tool: c.Tool, Status: r.Status}}
	if r.Status == agent.CallUnknown {
		s.Calls.rememberUnknown(i, s.Run)
		event.Type = agent.EventCallUnknown
	}
	s.record(event)
	_, known := s.Spec.Tool(c.Tool)
	s.Calls.countResult(c.Tool, known, r.Status)
}

// skip gives a call that is not made a result. If its tool was called before and asked
// something, part of its effect may have happened: then it has failed.
func (s *step) skip(i int, why string) {
	if s.Calls.List[i].wasStarted() {
		s.setResult(i, agent.CallFailed, "Not finished: "+why+". It had been made as far as its question.")
		return
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
