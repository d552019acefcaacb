package loop

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// beganBy begins a run that somebody starts, or a sub-agent, and gives it a Spec.
func beganBy(t *testing.T, by string, above *wire.ChildStart, spec string) *player {
	t.Helper()
	p := &player{t: t}
	start := agent.Start{Agent: "a", By: by, Input: agent.Input{Text: "go"}}
	p.step(Begin{Session: "s", Run: "r", Start: start, ChildStart: above})
	p.line("opened " + spec)
	require.NoError(t, p.wrong)
	return p
}

// passed returns whose memory the run passes on with the next sub-agent that an input starts.
func (p *player) passed(in Input) string {
	next, effects, err := Step(p.state, Moment{At: p.now}, in)
	require.NoError(p.t, err)
	p.state = next
	for _, e := range effects {
		if e, ok := e.(StartChild); ok {
			return e.ChildStart.Principal
		}
	}
	require.Fail(p.t, "no sub-agent was started")
	return ""
}

// Agents that check answers, and sub-agents, have the memory of whoever started the tree, also if the
// agent above them has no memory itself.
func TestThePrincipalReachesAgentsThatRemember(t *testing.T) {
	const verify = `{"toolset":[{"name":"add"}],"verify":{"checks":[{"name":"review","agent":"b","task":"Look.","tools":["mem*"]}]},"judges":[{"model":"j","price":{"input":1,"output":2}}]}`
	p := beganBy(t, "ana", nil, verify)
	require.Equal(t, "ana", p.passed(p.input("says", "one")))
	p = beganBy(t, "", nil, verify)
	require.Equal(t, agent.AnonymousPrincipal, p.passed(p.input("says", "one")))

	const delegates = `{"agents":[{"agent":"b","tools":["memory"]}]}`
	p = beganBy(t, "ana", nil, delegates)
	require.Equal(t, "ana", p.passed(p.input("calls", `subagent__b {"task":"look"}`)))
	p = beganBy(t, "", &wire.ChildStart{Parent: wire.Parent{Session: "top", Run: "x"}, Depth: 1, MaxDepth: 3, Principal: "ana"}, delegates)
	require.Equal(t, "ana", p.passed(p.input("calls", `subagent__b {"task":"look"}`)), "two levels below")

	for _, spec := range []string{`{"toolset":[{"name":"add"}]}`, `{"toolset":[{"name":"add"}],"agents":[{"agent":"b"}]}`} {
		require.Empty(t, beganBy(t, "ana", nil, spec).state.Counters.Principal, "nothing is kept for agents without memory")
	}
}

// A sub-agent whose parent passes no principal does not use the memory of everybody without a name.
func TestASubAgentWithoutAPrincipalHasNoMemory(t *testing.T) {
	p := beganBy(t, "", &wire.ChildStart{Parent: wire.Parent{Session: "top", Run: "x"}, Depth: 1}, `{"toolset":[{"name":"memory"}]}`)
	next, effects, err := Step(p.state, Moment{At: p.now}, p.input("calls", `memory {"command":"view","path":"/memories"}`))
	require.NoError(t, err)
	require.Empty(t, next.Counters.Principal)
	call := CallTool{}
	for _, e := range effects {
		if e, ok := e.(CallTool); ok {
			call = e
		}
	}
	require.Equal(t, agent.MemoryTool, call.Tool)
	require.Empty(t, call.Principal, "the worker refuses the call")
}

// A session keeps a principal as it is: two that begin alike have two memories.
func TestAPrincipalIsNeverCut(t *testing.T) {
	long := ""
	for range 256 {
		long += "\x01" // the longest in JSON
	}
	p := beganBy(t, long, nil, `{"toolset":[{"name":"memory"}]}`)
	require.Equal(t, long, p.state.Counters.Principal)
	raw, err := json.Marshal(p.state.Counters)
	require.NoError(t, err)
	require.Less(t, len(raw), 2<<10)
}
