package gemini_test

import (
	"testing"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
)

// The model is told the schema of its answer in its first request, whatever the
// provider's own format can carry.
func TestOutputReachesTheModel(t *testing.T) {
	for _, name := range []string{"gemini-3.8-flash", "gemini-2.5-flash"} {
		req := *ask("Hello")
		req.Model = name
		standin.OutputReaches(t, at, standin.Drip(whole, 0), req, []agent.ToolSpec{now, weather})
	}
}
