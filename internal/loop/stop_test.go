package loop

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What a person approved is not begun in a history that has no room for it: the next
// execution makes it.
func TestWhatIsApprovedIsMadeWhereThereIsRoom(t *testing.T) {
	p := played(t, "begin go", `opened {"parallel_tools":1,"toolset":[{"name":"slow","read_only":true},{"name":"pay"}],"rules":[{"do":"ask","tools":["pay"]}]}`,
		`replies {"finish":"tool_calls","parts":[{"type":"tool_call","call":{"tool":"slow","arguments":{}}},{"type":"tool_call","call":{"tool":"pay","arguments":{"eur":1}}}],"rule_matches":[[],[0]]}`,
		`approve {"request":"q-1"}`)
	p.lines("near-limit", `send {"text":"x"}`, "result t1.1 ok fine")
	require.Equal(t, RunContinuing, p.state.Phase)
	require.True(t, p.state.Calls.List[1].Approved)
}

// A stop waits for no source of tools.
func TestAStopWaitsForNoSource(t *testing.T) {
	p := played(t, "begin go", `opened {"sources":["mcp"]}`)
	require.Equal(t, RunListing, p.state.Phase)
	p.lines(`stop {"deadline":"20s"}`)
	require.Contains(t, p.out.String(), "-> cancel in flight")
	require.Equal(t, RunFolding, p.state.Phase, p.out.String())
}
