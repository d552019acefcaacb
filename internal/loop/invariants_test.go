package loop

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// checkInvariants checks what holds after every step, whatever the input was.
func checkInvariants(t require.TestingT, before, after State, effects []Effect) {
	if h, ok := t.(*testing.T); ok {
		h.Helper()
	}
	require.False(t, before.Phase == Ended, "nothing leaves an end")
	require.GreaterOrEqual(t, after.Log.Seq, before.Log.Seq)
	last := after.Log.Seq
	for i, e := range slices.Backward(after.Log.Tail) {
		require.Equal(t, last-int64(len(after.Log.Tail)-1-i), e.Seq, "events are numbered without a gap")
	}
	for _, c := range before.Calls {
		if c.State != Done {
			continue
		}
		kept := slices.ContainsFunc(after.Calls, func(k Call) bool { return k.ID == c.ID && k.Result != nil }) || told(after, c)
		require.True(t, kept, "the result of %s was dropped", c.ID)
	}
	checkPairs(t, after)
	completes := slices.ContainsFunc(effects, func(e Effect) bool { _, ok := e.(Complete); return ok })
	require.Equal(t, after.Phase == Ended, completes, "an end is told when it is reached")
	if after.Phase == Ended {
		require.NotNil(t, after.Outcome)
		require.Empty(t, after.Calls, "nothing is left open at an end")
	}
	if carries := slices.ContainsFunc(effects, func(e Effect) bool { _, ok := e.(CarryOver); return ok }); carries {
		require.Empty(t, after.Log.Tail, "nothing unsealed is carried over")
	}
}

func told(s State, c Call) bool {
	for _, e := range s.Log.Tail {
		if e.Message == nil {
			continue
		}
		for _, p := range e.Message.Parts {
			if p.Result != nil && p.Result.Call == c.ID {
				return true
			}
		}
	}
	return false
}

// checkPairs wants every message with tool calls to be followed by one with
// their results, in order, unless the calls are still open.
func checkPairs(t require.TestingT, s State) {
	var asked []agent.ToolCall
	for _, e := range s.Log.Tail {
		if e.Message == nil {
			continue
		}
		if e.Message.Role == agent.RoleTool {
			var results []string
			for _, p := range e.Message.Parts {
				results = append(results, p.Result.Call)
			}
			if asked != nil { // else the calls are sealed already
				require.Equal(t, ids(asked), results, "every call has its result, in order")
			}
			asked = nil
			continue
		}
		require.Empty(t, asked, "calls were left without results before event %d", e.Seq)
		if e.Message.Role == agent.RoleAssistant {
			asked = e.Message.ToolCalls()
		}
	}
	if s.Phase != Working {
		require.Empty(t, asked, "calls were left without results in phase %s", s.Phase)
	}
}

func ids(calls []agent.ToolCall) (out []string) {
	for _, c := range calls {
		out = append(out, c.ID)
	}
	return out
}
