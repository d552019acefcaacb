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
	c.set([]agent.ToolCall{{ID: "a", Tool: "x"}, {ID: "b", Tool: "x"}, {ID: "c", Tool: "x"}})
	return c
}

// A turn's calls are done when each has its one result, whatever it waited for before.
func TestCallsAreDone(t *testing.T) {
	c, at := threeCalls(), time.Unix(1, 0)
	result := agent.ToolResult{Status: agent.CallOK, Text: "ok"}
	c.begin(0, at, agent.Estimate{})
	c.awaitRequest(1, "q-1")
	c.awaitChildren(2, []string{"s/a-1"}, at)
	require.Equal(t, []int{1, 0, -1}, []int{c.runningCount(), c.findRunning("a"), c.findRunning("b")})
	c.finish(0, result, 2, maxResults, 100)
	c.approve(1, "ana", json.RawMessage(`{"n":2}`))
	c.begin(1, at, agent.Estimate{})
	c.finish(2, result, 2, maxResults, 100)
	require.False(t, c.done())
	require.Contains(t, c.finish(1, result, 2, maxResults, 100).Text, `{"n":2}`, "the model is told with which arguments")
	require.True(t, c.done())
	require.Panics(t, func() { c.finish(1, result, 2, maxResults, 100) }, "a second result")
}

// A result is told no longer than there is space, and all together fit a message.
func TestAResultIsBounded(t *testing.T) {
	long := strings.Repeat("x", maxResults)
	for space, most := range map[int]int{1 << 10: 1<<10 + 200, 1 << 30: maxResults/3 + 200} {
		c := threeCalls()
		c.begin(0, time.Time{}, agent.Estimate{})
		r := c.finish(0, agent.ToolResult{Text: long}, len(long), maxResults/len(c.List), space)
		require.LessOrEqual(t, len(r.Text), most)
		require.Equal(t, len(long), r.Size, "the whole length is told")
	}
}

// The outcome of a fork tells what the fork itself has done; what its agent has to use may
// have been used before, and its checkpoints count all calls of the conversation.
func TestAForkCountsItsOwn(t *testing.T) {
	p := played(t, `started {"from":{"checkpoint":"cp-12"}}`, "opened-old")
	spec := *p.state.Spec
	spec.Require, spec.Toolset = []agent.OneOf{{"add"}}, []agent.ToolSpec{{Name: "add"}, {Name: "look"}}
	spec.Rules, p.state.Spec = []agent.Rule{{Do: agent.RulingDeny, AfterCalls: 2}}, &spec
	p.lines(`located {"Forked":{"session":"s","run":"r0","checkpoint":"cp-12"},"Turn":2,"Tools":[{"tool":"add","calls":2,"ok":2},{"tool":"see","calls":1,"ok":1}]}`)
	p.lines(`replies {"finish":"tool_calls","parts":[{"type":"tool_call","call":{"tool":"add","arguments":{}}},{"type":"tool_call","call":{"tool":"look","arguments":{}}}],"rule_matches":[[0],[0]]}`)
	require.Equal(t, 2, p.state.Calls.runningCount(), "the rule counts the calls of this run")
	p.lines("result t3.1 failed no")
	p.lines("result t3.2 ok yes")
	require.Equal(t, 3, p.state.Calls.Counts[0].Calls)
	p.lines("says done")
	o := p.state.End.Outcome
	require.Equal(t, agent.StatusCompleted, o.Status)
	require.Equal(t, 2, o.Turns)
	require.Equal(t, []agent.ToolCount{{Tool: "add", Calls: 1, Failed: 1}, {Tool: "look", Calls: 1, OK: 1}}, o.Tools)
}

// The event of a call that ended with a partial result says so.
func TestCallDoneSaysThatItsResultIsPartial(t *testing.T) {
	for _, partial := range []bool{false, true} {
		p := played(t, "begin go", `opened {"toolset":[{"name":"add"}]}`, `calls add {}`, "interrupt {}")
		p.step(ToolReturned{Result: agent.ToolResult{Call: "t1.1", Tool: "add", Status: agent.CallOK, Text: "3", Partial: partial}})
		var done []bool
		for _, e := range p.state.Log.Tail {
			if e.Type == agent.EventCallDone {
				done = append(done, e.Call.Partial)
			}
		}
		require.Equal(t, []bool{partial}, done)
	}
}
