package workflows

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// A reason is a line in Temporal's UI, and no page of its own.
func TestAReasonIsALineInTheUI(t *testing.T) {
	text := details(agent.RunStatus{Status: agent.StatusSuspended, Reason: "# Done\n\n- q-2: `fermata approve s-2`\n![](https://evil.example/x)<script>\u202e"})
	require.Contains(t, text, "\n\\# Done - q-2: `fermata approve s-2` !\\[](https://evil.example/x)&lt;script>\\u202e\n")
}
