package toolcall

import (
	"context"
	"encoding/json"

	"github.com/fermata-agents/fermata/agent"
)

// Hooks are a call's connection to the runtime. All fields may be zero.
type Hooks struct {
	// Answers are those to the questions of earlier attempts, in their order.
	Answers []agent.ToolAnswer
	// Progress takes the notes of the tool. It may be called from any goroutine.
	Progress func(string)
	// State reads the session's state as of the turn's beginning.
	State func(context.Context) (map[string]json.RawMessage, error)

	// Question is set by the call: what it has asked and has no answer to.
	Question *agent.ToolQuestion
	// StateChanges are set by the call: the keys that it has set. A deleted one is null.
	StateChanges map[string]json.RawMessage
}
