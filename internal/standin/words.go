package standin

import (
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// Silent ignores what is emitted.
func Silent(model.Delta) {}

// Said returns a text part.
func Said(text string) agent.Part { return agent.Part{Type: agent.PartText, Text: text} }

// Thought returns a thinking part with the provider's signature.
func Thought(text, signature string) agent.Part {
	return agent.Part{Type: agent.PartThinking, Text: text, Signature: signature}
}

// Called returns a call as a conversation has it, with our id; the provider's id is
// another.
func Called(id, tool, arguments string) agent.Part {
	p := model.CallPart("theirs_"+id, tool, arguments)
	p.Call.ID = id
	return p
}

// Result returns a tool's result for one of our calls.
func Result(call, tool string, status agent.CallStatus, text string) agent.Part {
	return agent.Part{Type: agent.PartToolResult, Result: &agent.ToolResult{Call: call, Tool: tool, Status: status, Text: text}}
}

// Assistant returns a message of a model, by its full name.
func Assistant(model string, parts ...agent.Part) agent.Message {
	return agent.Message{Role: agent.RoleAssistant, Model: model, Parts: parts}
}
