package loop

import (
	"encoding/json"

	"github.com/fermata-agents/fermata/agent"
)

// childResult is a child's outcome as the model that gave the work sees it.
func childResult(call, tool string, o *agent.Outcome) agent.ToolResult {
	r := agent.ToolResult{Call: call, Tool: tool, Status: agent.CallFailed, Partial: o.Status == agent.Stopped}
	if o.Status == agent.Completed {
		r.Status = agent.CallOK
	}
	text, err := json.Marshal(envelopeOf(o))
	if err != nil {
		text = []byte(o.Text)
	}
	r.Text = string(text)
	return r
}

// envelope is what a model is told of a child.
type envelope struct {
	OK         bool                  `json:"ok"`
	Child      string                `json:"child"`
	Status     agent.Status          `json:"status"`
	Text       string                `json:"text,omitempty"`
	Output     json.RawMessage       `json:"output,omitempty"`
	Error      string                `json:"error,omitempty"`
	Suspension *agent.SuspensionNote `json:"suspension,omitempty"`
	Tokens     int64                 `json:"tokens_used,omitempty"`
}

func envelopeOf(o *agent.Outcome) envelope {
	e := envelope{OK: o.OK(), Child: o.Session, Status: o.Status, Text: o.Text, Output: o.Output, Tokens: max(o.Usage.Total(), o.Tree.Usage.Total())}
	if o.Handoff != nil {
		e.Text = o.Handoff.Summary
	}
	if err := o.Err(); err != nil {
		e.Error = err.Error()
	}
	return e
}

// envelope is what the model is told of a child as it stands.
func (c Child) envelope() envelope {
	if c.Outcome == nil {
		return envelope{Child: c.Session, Status: c.Status, Suspension: c.Suspension}
	}
	e := envelopeOf(c.Outcome)
	e.Child = c.Session
	return e
}

// kept is what a run keeps of a child's outcome: the handoff only if one will be made of it.
func (s *step) kept(o *agent.Outcome) *agent.Outcome {
	kept := Brief(o)
	if kept.Handoff != nil && s.End.Stopping == nil {
		kept.Text, kept.Handoff = fit(kept.Handoff.Summary, maxChildText), nil
	}
	return kept
}

// Brief is an outcome as a run above keeps it that has not waited for it.
func Brief(o *agent.Outcome) *agent.Outcome {
	b := *o
	b.Type, b.Status, b.Reason = "outcome", fit(b.Status, postFrame), fit(b.Reason, maxName)
	b.Text, b.Tools, b.Suspension, b.Error = fit(b.Text, maxChildText), nil, nil, coded(b.Error)
	b.Usage, b.Cost, b.Tree = b.Usage.Bounded(), agent.Amount(b.Cost), b.Tree.Bounded()
	if b.Error != nil {
		b.Error.Message = fit(o.Error.Message, maxWhy)
	}
	if rawInJSON(b.Output) > maxChildText {
		b.Output = nil
	}
	return &b
}

// coded is an error without what it says; nil stays nil.
func coded(e *agent.Error) *agent.Error {
	if e == nil {
		return nil
	}
	return &agent.Error{Code: fit(e.Code, postFrame), Status: fit(e.Status, postFrame), Retryable: e.Retryable}
}
