package loop

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

func threeCalls() (c Calls) {
	c.ask([]agent.ToolCall{{ID: "a", Tool: "x"}, {ID: "b", Tool: "x"}, {ID: "c", Tool: "x"}})
	return c
}

// A turn's calls are done when each has its one result, whatever it waited for before.
func TestCallsAreDone(t *testing.T) {
	c, at := threeCalls(), time.Unix(1, 0)
	result := agent.ToolResult{Status: agent.CallOK, Text: "ok"}
	c.begin(0, at)
	c.await(1, "q-1")
	c.hand(2, []string{"s/a-1"}, at)
	require.Equal(t, []int{1, 0, -1}, []int{c.active(), c.running("a"), c.running("b")})
	c.finish(0, result, 2, 100)
	c.approve(1, "ana", json.RawMessage(`{"n":2}`))
	c.begin(1, at)
	c.finish(2, result, 2, 100)
	require.False(t, c.done())
	require.Contains(t, c.finish(1, result, 2, 100).Text, `{"n":2}`, "the model is told with which arguments")
	require.True(t, c.done())
	require.Panics(t, func() { c.finish(1, result, 2, 100) }, "a second result")
}

// A result is told no longer than there is space, and all together fit a message.
func TestAResultIsBounded(t *testing.T) {
	long := strings.Repeat("x", maxResults)
	for space, most := range map[int]int{1 << 10: 1<<10 + 200, 1 << 30: maxResults/3 + 200} {
		c := threeCalls()
		c.begin(0, time.Time{})
		r := c.finish(0, agent.ToolResult{Text: long}, len(long), space)
		require.LessOrEqual(t, len(r.Text), most)
		require.Equal(t, len(long), r.Size, "the whole length is told")
	}
}
