package model

import (
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
)

// ToolChoice says whether a model must call a tool. The zero value means
// ToolChoiceAuto.
type ToolChoice string

// The choices. With ToolChoiceRequired, the model must answer a user's message with a
// call. After one call it may answer in text, so that a turn can end.
const (
	ToolChoiceAuto     ToolChoice = "auto"
	ToolChoiceRequired ToolChoice = "required"
)

// Check returns an [agent.CodeInvalidInput] error if c is no choice.
func (c ToolChoice) Check() error {
	if !slices.Contains([]ToolChoice{"", ToolChoiceAuto, ToolChoiceRequired}, c) {
		return refused("tool_choice", "must be %s or %s, not %q", ToolChoiceAuto, ToolChoiceRequired, string(c))
	}
	return nil
}

// Requires reports whether the model must answer the request with a call. Adapters call
// it.
func (c ToolChoice) Requires(req *Request) bool {
	if c != ToolChoiceRequired || len(req.Tools) == 0 || req.NoCalls {
		return false
	}
	for _, msg := range slices.Backward(req.Messages) {
		switch {
		case len(msg.ToolCalls()) > 0:
			return false
		case msg.Role == agent.RoleUser && (strings.TrimSpace(msg.Text()) != "" || len(msg.Files()) > 0):
			return true
		}
	}
	return true
}
