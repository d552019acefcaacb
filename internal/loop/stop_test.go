package loop

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
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
	require.Equal(t, RunHandingOff, p.state.Phase, p.out.String())
}

// A flow has no model that sums up, so its handoff says itself what the agents of its steps did. The
// handoffs of these have the rest.
func TestAFlowsHandoffNamesWhatItsAgentsDid(t *testing.T) {
	p := played(t, "begin go", `opened {"flow":true,"toolset":[{"name":"add"}],"agents":[{"agent":"b"}]}`,
		`steps x.1/b subagent__b {"task":"one"} | x.2/b subagent__b {"task":"two"} | x.3/b subagent__b {"task":"three"} | add add`,
		"child-started s/b-1", "child-started s/b-2", "child-started s/b-3", "result t1.4 ok 1", "flow {}",
		"child-ended s/b-1 completed Three flights:\nAZ 1", "flow {}", "child-ended s/b-2 failed I give up.", "flow {}", "stop {}", "child-ended s/b-3 stopped half")
	h := (&step{State: p.state}).knownHandoff()
	require.Equal(t, []agent.WorkItem{{What: "add: 1 of 1 calls succeeded", By: "s"}, {What: "b completed: Three flights: AZ 1", Ref: "session:s/b-1", By: "s"}}, h.Done)
	require.Equal(t, []agent.WorkItem{{What: "b failed: done", Ref: "session:s/b-2", By: "s"}}, h.Failed)
	require.Equal(t, []agent.WorkItem{{What: "b was not finished: three", Ref: "session:s/b-3", By: "s"}}, h.InFlight)
}
