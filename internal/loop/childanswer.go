package loop

import (
	"encoding/json"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/amount"
)

// childResult returns a child's outcome as the result of the call that waits for it.
func childResult(call, tool string, o *agent.Outcome, forFlow bool) agent.ToolResult {
	r := agent.ToolResult{Call: call, Tool: tool, Status: agent.CallFailed, Partial: o.Status == agent.StatusStopped}
	if o.Status == agent.StatusCompleted {
		r.Status = agent.CallOK
	}
	answer := childAnswerOf(o)
	if forFlow && !o.OK() {
		answer.Reason = o.Reason
	}
	text, err := json.Marshal(answer)
	if err != nil { // the output is no JSON
		text = []byte(o.Text)
	}
	r.Text = string(text)
	return r
}

// childAnswer is what the model sees of a child, as JSON.
type childAnswer struct {
	OK         bool                     `json:"ok"`
	Child      string                   `json:"child"`
	Status     agent.Status             `json:"status"`
	Text       string                   `json:"text,omitempty"`
	Output     json.RawMessage          `json:"output,omitempty"`
	Error      string                   `json:"error,omitempty"`
	Reason     string                   `json:"reason,omitempty"` // for a flow
	Suspension *agent.SuspensionSummary `json:"suspension,omitempty"`
	Tokens     int64                    `json:"tokens_used,omitempty"`
}

func childAnswerOf(o *agent.Outcome) childAnswer {
	e := childAnswer{OK: o.OK(), Child: o.Session, Status: o.Status, Text: o.Text, Output: o.Output, Tokens: max(o.Usage.Total(), o.Tree.Usage.Total())}
	if o.Handoff != nil { // a stopped child: its summary says more than its last text
		e.Text = o.Handoff.Summary
	}
	if err := o.Err(); err != nil {
		e.Error = err.Error()
	}
	return e
}

// answer returns what the model sees of a child's present state.
func (c Child) answer() childAnswer {
	if c.Outcome == nil {
		return childAnswer{Child: c.Session, Status: c.Status, Suspension: c.Suspension}
	}
	e := childAnswerOf(c.Outcome)
	e.Child = c.Session
	return e
}

// keptOutcome returns what a run keeps of a child's outcome. It keeps the handoff only during a stop,
// because the run's own handoff is made from it.
func (s *step) keptOutcome(o *agent.Outcome) *agent.Outcome {
	kept := ShortOutcome(o)
	if kept.Handoff != nil && s.End.Stopping == nil {
		kept.Text, kept.Handoff = fit(kept.Handoff.Summary, maxChildText), nil
	}
	return kept
}

// ShortOutcome returns an outcome as a parent keeps it: with short texts and bounded numbers. It does
// not change o.
func ShortOutcome(o *agent.Outcome) *agent.Outcome {
	b := *o
	b.Type, b.Status, b.Reason = "outcome", fit(b.Status, receiptFrame), fit(b.Reason, maxName)
	b.Text, b.Citations, b.Tools, b.Suspension, b.Error = fit(b.Text, maxChildText), nil, nil, nil, codeOnly(b.Error)
	b.Usage, b.Cost, b.Tree = b.Usage.Bounded(), amount.Clamp(b.Cost), b.Tree.Bounded()
	if b.Error != nil {
		b.Error.Message = fit(o.Error.Message, maxWhy)
	}
	if rawJSONLen(b.Output) > maxChildText {
		b.Output = nil
	}
	return &b
}

// codeOnly returns an error without its texts; nil for nil.
func codeOnly(e *agent.Error) *agent.Error {
	if e == nil {
		return nil
	}
	return &agent.Error{Code: fit(e.Code, receiptFrame), Status: fit(e.Status, receiptFrame), Retryable: e.Retryable}
}

// recordChild writes an event about a child to the log, unless the run's end is there already.
func (s *step) recordChild(t agent.EventType, i int, reason string) {
	if s.outcomeDecided() {
		return
	}
	c := s.Children.List[i]
	s.resumed.Cause = agent.Initiator(firstOf(string(s.resumed.Cause), string(agent.InitiatorTriggered)))
	u := &agent.ChildUpdate{Session: c.Session, Run: c.Run, Agent: c.Agent, Call: c.StartedBy, Status: c.Status, Reason: fit(reason, maxName)}
	if k := s.Calls.find(c.StartedBy); k >= 0 {
		u.Step = s.stepPath(s.Calls.List[k])
	}
	if c.Outcome != nil {
		u.Tokens, u.Cost = c.Outcome.Tree.Usage.Total(), c.Outcome.Tree.Cost
	}
	s.recordIfBegun(agent.Event{Type: t, Child: u})
}
