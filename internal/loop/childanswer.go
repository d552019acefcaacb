package loop

import (
	"encoding/json"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/amount"
)

// childResult is a child's outcome as the model that gave the work sees it.
func childResult(call, tool string, o *agent.Outcome) agent.ToolResult {
	r := agent.ToolResult{Call: call, Tool: tool, Status: agent.CallFailed, Partial: o.Status == agent.StatusStopped}
	if o.Status == agent.StatusCompleted {
		r.Status = agent.CallOK
	}
	text, err := json.Marshal(childAnswerOf(o))
	if err != nil {
		text = []byte(o.Text)
	}
	r.Text = string(text)
	return r
}

// childAnswer is what a model is told of a child.
type childAnswer struct {
	OK         bool                     `json:"ok"`
	Child      string                   `json:"child"`
	Status     agent.Status             `json:"status"`
	Text       string                   `json:"text,omitempty"`
	Output     json.RawMessage          `json:"output,omitempty"`
	Error      string                   `json:"error,omitempty"`
	Suspension *agent.SuspensionSummary `json:"suspension,omitempty"`
	Tokens     int64                    `json:"tokens_used,omitempty"`
}

func childAnswerOf(o *agent.Outcome) childAnswer {
	e := childAnswer{OK: o.OK(), Child: o.Session, Status: o.Status, Text: o.Text, Output: o.Output, Tokens: max(o.Usage.Total(), o.Tree.Usage.Total())}
	if o.Handoff != nil {
		e.Text = o.Handoff.Summary
	}
	if err := o.Err(); err != nil {
		e.Error = err.Error()
	}
	return e
}

// answer is what the model is told of a child as it stands.
func (c Child) answer() childAnswer {
	if c.Outcome == nil {
		return childAnswer{Child: c.Session, Status: c.Status, Suspension: c.Suspension}
	}
	e := childAnswerOf(c.Outcome)
	e.Child = c.Session
	return e
}

// keptOutcome is what a run keeps of a child's outcome: the handoff only if one will be made of it.
func (s *step) keptOutcome(o *agent.Outcome) *agent.Outcome {
	kept := ShortOutcome(o)
	if kept.Handoff != nil && s.End.Stopping == nil {
		kept.Text, kept.Handoff = fit(kept.Handoff.Summary, maxChildText), nil
	}
	return kept
}

// ShortOutcome is an outcome as a run above keeps it that has not waited for it.
func ShortOutcome(o *agent.Outcome) *agent.Outcome {
	b := *o
	b.Type, b.Status, b.Reason = "outcome", fit(b.Status, receiptFrame), fit(b.Reason, maxName)
	b.Text, b.Tools, b.Suspension, b.Error = fit(b.Text, maxChildText), nil, nil, codeOnly(b.Error)
	b.Usage, b.Cost, b.Tree = b.Usage.Bounded(), amount.Clamp(b.Cost), b.Tree.Bounded()
	if b.Error != nil {
		b.Error.Message = fit(o.Error.Message, maxWhy)
	}
	if rawJSONLen(b.Output) > maxChildText {
		b.Output = nil
	}
	return &b
}

// codeOnly is an error without what it says; nil stays nil.
func codeOnly(e *agent.Error) *agent.Error {
	if e == nil {
		return nil
	}
	return &agent.Error{Code: fit(e.Code, receiptFrame), Status: fit(e.Status, receiptFrame), Retryable: e.Retryable}
}
