package activities

import (
	"encoding/json"
	"strings"

	"github.com/fermata-agents/fermata/agent"
)

// The marks around a call that a model writes as text, as many open models are trained to.
const (
	textCallBegin = "<tool_call>"
	textCallEnd   = "</tool_call>"
)

// textCalls returns the parts of a reply with the calls that it has as text, and whether it has any.
// Only calls at the end of a reply without other calls count, and only of tools that the agent has:
// what stands before other text is more likely a quotation. Fences around them are text like other.
func textCalls(spec *agent.Spec, parts []agent.Part) ([]agent.Part, bool) {
	m := agent.Message{Parts: parts}
	if spec.TextCalls == "" || len(m.ToolCalls()) > 0 {
		return parts, false
	}
	text, calls := splitTextCalls(spec, m.Text())
	if len(calls) == 0 {
		return parts, false
	}
	var out []agent.Part
	for _, p := range parts {
		if p.Type != agent.PartText { // thoughts, and steps of the provider's own tools
			out = append(out, p)
		}
	}
	if text != "" {
		out = append(out, agent.Part{Type: agent.PartText, Text: text})
	}
	for _, c := range calls {
		out = append(out, agent.Part{Type: agent.PartToolCall, Call: &c})
	}
	return out, true
}

// splitTextCalls returns a text without the calls at its end, and the calls in order.
func splitTextCalls(spec *agent.Spec, text string) (before string, calls []agent.ToolCall) {
	text = strings.TrimSpace(text)
	for {
		rest, ended := strings.CutSuffix(text, textCallEnd)
		at := strings.LastIndex(rest, textCallBegin)
		if !ended || at < 0 {
			return text, calls
		}
		var c struct {
			Name       string          `json:"name"`
			Arguments  json.RawMessage `json:"arguments"`
			Parameters json.RawMessage `json:"parameters"`
		}
		if json.Unmarshal([]byte(rest[at+len(textCallBegin):]), &c) != nil {
			return text, calls
		}
		if _, known := spec.Tool(c.Name); !known {
			return text, calls
		}
		if len(c.Arguments) == 0 {
			c.Arguments = c.Parameters
		}
		if len(c.Arguments) == 0 {
			c.Arguments = json.RawMessage("{}")
		}
		calls = append([]agent.ToolCall{{Tool: c.Name, Arguments: c.Arguments}}, calls...)
		text = strings.TrimSpace(rest[:at])
	}
}
