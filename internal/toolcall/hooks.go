package toolcall

import (
	"context"
	"encoding/json"

	"github.com/fermata-agents/fermata/agent"
)

// Hooks connect a call to the runtime. All fields may be zero.
type Hooks struct {
	// Answers are the answers to earlier attempts' questions, in their order.
	Answers []agent.ToolAnswer
	// Progress receives the tool's notes. It may be called from any goroutine.
	Progress func(string)
	// State returns the session's state as of the turn's beginning.
	State func(context.Context) (map[string]json.RawMessage, error)

	// Question is set by the call: the question that has no answer yet.
	Question *agent.ToolQuestion
	// StateChanges is set by the call: the keys that it has changed. A deleted key is
	// null.
	StateChanges map[string]json.RawMessage
}
