package activities

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/toolcall"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/tool"
)

// failedWith returns the result of a call that has failed. It keeps the code of the tool's error, if that
// is a known one.
func failedWith(ctx context.Context, err error, in ToolInput, r agent.ToolResult) agent.ToolResult {
	r.Status, r.Text = callStatus(ctx, err, in)
	var e *agent.Error
	if errors.As(err, &e) && e.Code.Known() {
		r.Code = e.Code
	}
	if r.Status == agent.CallRejected { // the tool refuses; another code would look like a refusal of the run
		r.Code = agent.CodeDenied
	}
	return r
}

// asksNow reports whether a call asks instead of returning a result. Code of a flow's own asks
// whatever it returns after its question: it can't swallow the wait by accident. The error is the
// call's own, or says why the call can't wait for what it asks for.
func asksNow(in ToolInput, h *toolcall.Hooks, err error) (asks bool, _ error) {
	if h.Question == nil || in.Tool != agent.DoTool && !errors.Is(err, tool.ErrAsked) {
		return false, err
	}
	if h.Question.Until == nil {
		return true, nil
	}
	raw, err := json.Marshal(map[string]any{"reason": cmp.Or(h.Question.Text, "wait"), "conditions": h.Question.Until})
	if err != nil {
		return false, err
	}
	_, until, bad := signals.DecodeParkRequest(raw)
	if bad != nil {
		return false, bad
	}
	q := *h.Question // the tool may still hold its question
	q.Until = &until
	h.Question = &q
	return true, nil
}
