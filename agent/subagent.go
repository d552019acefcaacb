package agent

import "encoding/json"

// SubAgent is an agent that another one may give work to: the model is offered
// a tool of the name that [SubAgent.Tool] tells.
type SubAgent struct {
	Agent string `json:"agent"`
	// Description says when to use it; empty means the agent's own.
	Description string `json:"description,omitempty"`
	// Tools is what it may use of its own tools, by names and patterns; empty means
	// those that the agent above it has too. What is given here is given on: no
	// agent below may use what the ones above it may not.
	Tools []string `json:"tools,omitempty"`
	// Limits may lower the agent's own.
	Limits Limits `json:"limits,omitzero"`
	// Output is a JSON Schema for its answer; empty means the agent's own.
	Output json.RawMessage `json:"output,omitempty"`
}

// Tool is the name of the tool that gives work to the agent.
func (a SubAgent) Tool() string { return SubAgentPrefix + a.Agent }

// SubAgentPrefix begins the names of tools that give work to agents.
const SubAgentPrefix = "subagent__"
