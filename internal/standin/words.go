package standin

import (
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// Silent hears nothing.
func Silent(model.Delta) {}

// Said is a text.
func Said(text string) agent.Part { return agent.Part{Type: agent.PartText, Text: text} }

// Thought is thinking with the provider's mark on it.
func Thought(text, signature string) agent.Part {
	return agent.Part{Type: agent.PartThinking, Text: text, Signature: signature}
}

// Called is a call as a conversation has it, with an id of ours; the provider's id
// is another one.
func Called(id, tool, arguments string) agent.Part {
	p := model.CallPart("theirs_"+id, tool, arguments)
	p.Call.ID = id
	return p
}

// Result is what a tool gave for a call of ours.
func Result(call, tool string, status agent.CallStatus, text string) agent.Part {
	return agent.Part{Type: agent.PartToolResult, Result: &agent.ToolResult{Call: call, Tool: tool, Status: status, Text: text}}
}

// Assistant is a message of a model, by its full name.
func Assistant(model string, parts ...agent.Part) agent.Message {
	return agent.Message{Role: agent.RoleAssistant, Model: model, Parts: parts}
}
