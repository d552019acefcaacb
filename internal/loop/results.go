package loop

import (
	"slices"

	"github.com/fermata-agents/fermata/agent"
)

// settle gives a call a result in the runtime's own words.
func (s *step) settle(i int, status agent.CallStatus, text string) {
	s.settleSaid(i, status, text, 0)
}

// settleSaid gives a call a result of which so many bytes are somebody's.
func (s *step) settleSaid(i int, status agent.CallStatus, text string, bytes int) {
	c := s.Calls.List[i]
	s.settleAs(i, agent.ToolResult{Call: c.ID, Tool: c.Tool, Status: status, Text: text}, bytes)
}

// settleAs gives a call its one result.
func (s *step) settleAs(i int, r agent.ToolResult, bytes int) {
	c := s.Calls.List[i]
	r = s.Calls.finish(i, r, bytes, s.resultSpace(i))
	event := agent.Event{Type: agent.CallDone, Call: &agent.CallNote{Call: c.ID, Tool: c.Tool, Status: r.Status}}
	if r.Status == agent.CallUnknown {
		s.Calls.lost(i, s.Run)
		event.Type = agent.CallLost
	}
	s.record(event)
	_, known := s.Spec.Tool(c.Tool)
	s.Calls.tally(c.Tool, known, r.Status)
}

// skip answers a call that is not made any more. One that was made, and asked something,
// may have had a part of its effect.
func (s *step) skip(i int, why string) {
	if s.Calls.List[i].begun() {
		s.settle(i, agent.CallFailed, "Not finished: "+why+". It had been made as far as its question.")
		return
	}
	s.settle(i, agent.CallSkipped, "Not executed: "+why+".")
}

func (s *step) skipWaiting(why string) {
	for i, c := range s.Calls.List {
		if c.State == Waiting {
			s.skip(i, why)
		}
	}
}

// own counts the calls that the run itself has made.
func (c Calls) own() (own []agent.ToolCount) {
	for _, t := range c.Counts {
		if i := slices.IndexFunc(c.Before, func(b agent.ToolCount) bool { return b.Tool == t.Tool }); i >= 0 {
			t = t.Without(c.Before[i])
		}
		if t.Calls > 0 {
			own = append(own, t)
		}
	}
	return own
}
