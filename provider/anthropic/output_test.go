package anthropic_test

import (
	"testing"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
)

// The model is told the schema of its answer in its first request, whatever the
// provider's own format can carry.
func TestOutputReachesTheModel(t *testing.T) {
	for _, name := range []string{"claude-sonnet-5-5", "an-imitator"} {
		req := *ask("Hello")
		req.Model = name
		standin.OutputReaches(t, at, standin.Answer(200, "text/event-stream", whole), req, []agent.ToolSpec{now, weather})
	}
}
