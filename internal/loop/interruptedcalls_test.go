package loop

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// What an interrupt cuts off in a turn counts neither as an idle turn nor as a part of a cycle, also if the
// interrupt is taken back before the turn's end; nor is it a failure of the tool. A pause takes nothing back, nor
// does an interrupt of a turn whose calls all came to their ends.
func TestInterruptedCallsAreNotCounted(t *testing.T) {
	cycles := []string{`opened {"loop_detection":{"cycles":3},"toolset":[{"name":"add"}]}`}
	for i := range 6 {
		cycles = append(cycles, `interrupt {}`, fmt.Sprintf(`calls add {"a":%d}`, i%2), `sealed`, `resume {}`)
	}
	cutOff := cycles[:1:1]
	for i := range 6 {
		cutOff = append(cutOff, fmt.Sprintf(`calls add {"a":%d}`, i%2), `interrupt {}`, fmt.Sprintf(`result t%d.1 unknown gone`, i+1), `sealed`, `resume {}`)
	}
	whole := []string{`opened {"toolset":[{"name":"add"}]}`}
	for i := range 5 {
		whole = append(whole, `calls add {"a":1}`, `interrupt {}`, fmt.Sprintf(`result t%d.1 ok 1`, i+1), `sealed`, `resume {}`)
	}
	whole = append(whole, `calls add {"a":1}`)
	lessons := played(t, `begin go`, `opened {"lessons":true,"toolset":[{"name":"add"}]}`, `calls add {"a":1}`, `interrupt {}`, `result t1.1 failed interrupted`)
	require.Empty(t, lessons.state.Lessons)
	const idle = `opened {"loop_detection":{"idle":2},"toolset":[{"name":"add"}]}`
	for name, c := range map[string]struct {
		lines []string
		stuck bool
	}{
		"cycles":     {cycles, false},
		"cut off":    {cutOff, false},
		"taken back": {[]string{idle, `calls add {"a":1}`, `interrupt {}`, `resume {}`, `result t1.1 unknown gone`, `calls add {"a":2}`, `interrupt {}`, `resume {}`, `result t2.1 unknown gone`}, false},
		"a pause":    {[]string{idle, `calls add {"a":1}`, `pause {}`, `result t1.1 unknown gone`, `sealed`, `resume {}`, `calls add {"a":2}`, `pause {}`, `result t2.1 unknown gone`, `sealed`, `resume {}`}, true},
		"failed":     {[]string{idle, `calls add {"a":1}`, `interrupt {}`, `result t1.1 failed interrupted`, `sealed`, `resume {}`, `calls add {"a":2}`, `interrupt {}`, `result t2.1 failed interrupted`, `sealed`, `resume {}`}, false},
		"results":    {[]string{`opened {"loop_detection":{"results":2},"toolset":[{"name":"add"}]}`, `calls add {"a":1}`, `interrupt {}`, `result t1.1 failed interrupted`, `sealed`, `resume {}`, `calls add {"a":2}`, `interrupt {}`, `result t2.1 failed interrupted`, `sealed`, `resume {}`}, false},
		"recovery":   {[]string{`opened {"recovery":{"tool_error":{"do":"fail"}},"toolset":[{"name":"add"}]}`, `calls add {"a":1}`, `interrupt {}`, `result t1.1 failed interrupted`}, false},
		"a failure":  {[]string{`opened {"recovery":{"tool_error":{"do":"fail"}},"toolset":[{"name":"add"}]}`, `calls add {"a":1}`, `result t1.1 failed no`}, true},
		"not cut":    {whole, true},
	} {
		p := played(t, append([]string{`begin go`}, c.lines...)...)
		require.Equal(t, c.stuck, p.state.outcomeDecided(), name)
		require.GreaterOrEqual(t, p.state.Loops.Idle, 0, name)
	}
}

// So it is if the interrupt comes from above, by an order or by a step that meets it; and for its own turn
// alone.
func TestInterruptsFromAboveCutCalls(t *testing.T) {
	above := wire.ParentOrder{Run: "r", From: "r0", Verb: agent.VerbInterrupt, Holds: []agent.Hold{{ID: "h-1", From: agent.HoldInherited, Session: "s", Verb: agent.VerbInterrupt}}}
	for name, interrupt := range map[string]func(*player){
		"ordered": func(p *player) { p.step(ParentOrdered{Order: above}) },
		"met": func(p *player) {
			p.step(ToolReturned{Result: agent.ToolResult{Call: "t1.2", Tool: "add", Status: agent.CallSkipped}, Hold: &agent.HoldRef{Session: "s", N: 1, Verb: agent.VerbInterrupt}})
		},
	} {
		p := played(t, `begin-child {"parent":{"session":"s","run":"r0"},"depth":1}`, `opened {"loop_detection":{"idle":2},"toolset":[{"name":"add"}]}`, `calls add {"a":1} | add {"a":2}`)
		interrupt(p)
		require.NoError(t, p.wrong, name)
		require.NotEmpty(t, p.state.Holds.List, name)
		p.lines(`result t1.1 unknown gone`)
		if name == "ordered" {
			p.lines(`result t1.2 unknown gone`)
		}
		p.lines(`sealed`)
		require.Zero(t, p.state.Loops.Idle, name)
		p.lines(`ordered {"verb":"resume","known_holds":[{"session":"s","n":1}]}`, `calls add {"a":3}`, `result t2.1 unknown gone`)
		require.Equal(t, 1, p.state.Loops.Idle, name)
	}
}

// A ceiling of client tools lets no agent below have a worker's tool of that name.
func TestAClientToolIsNoWorkersTool(t *testing.T) {
	top := played(t, `begin go`, `opened {"agents":[{"agent":"m"}],"client_tools":[{"name":"shell"}]}`)
	middle := played(t, `begin-child `+childStart(t, top, `subagent__m {"task":"one"}`), `opened {"agents":[{"agent":"l","tools":["shell"]}],"client_tools":[{"name":"shell"}]}`)
	require.Equal(t, []string{"shell"}, toolsOf(middle.state, agent.ExecutorClient))
	low := played(t, `begin-child `+childStart(t, middle, `subagent__l {"task":"two"}`), `opened {"toolset":[{"name":"shell"}]}`)
	require.Empty(t, toolsOf(low.state, ""))

	// Nor does an author's pattern for other tools let a client tool through.
	bounded := played(t, `begin-child {"parent":{"session":"s","run":"r0"},"depth":1,"ceilings":[["c*"]]}`, `opened {"client_tools":[{"name":"pay"}]}`)
	require.Empty(t, toolsOf(bounded.state, agent.ExecutorClient))
}
