package loop

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// A call met the cancel of the run above in another process, which names nobody. The order that comes while
// another call has its grace says who cancelled.
func TestTheOrderNamesWhoCancelled(t *testing.T) {
	p := played(t, `begin-child {"parent":{"session":"s","run":"r0"},"depth":1}`, `opened {"toolset":[{"name":"add"}]}`, `calls add {"a":1} | add {"a":2}`)
	p.step(ToolReturned{Result: agent.ToolResult{Call: "t1.1", Tool: "add", Status: agent.CallSkipped}, Hold: &agent.HoldRef{Session: "s", N: 1, Verb: agent.VerbCancel}})
	p.step(ParentOrdered{Order: wire.ParentOrder{Run: "r", From: "r0", Verb: agent.VerbCancel, By: "ana", KnownHolds: []agent.HoldRef{{Session: "s", N: 1}}}})
	p.step(ToolReturned{Result: agent.ToolResult{Call: "t1.2", Tool: "add", Status: agent.CallSkipped}})
	require.Equal(t, "ana", p.state.End.Outcome.By)
}

// Who cancelled the run itself is not named after its parent's end.
func TestAnUnnamedCancelStaysUnnamed(t *testing.T) {
	p := played(t, `begin-child {"parent":{"session":"s","run":"r0"},"depth":1}`, `opened {"toolset":[{"name":"add"}]}`, `calls add {"a":1}`)
	p.step(CommandReceived{Command: agent.CancelCommand{Reason: "mine"}, ID: "c1"})
	p.step(ParentOrdered{Order: wire.ParentOrder{Run: "r", From: "r0", Verb: agent.VerbCancel, By: "ana"}})
	p.step(ToolReturned{Result: agent.ToolResult{Call: "t1.1", Tool: "add", Status: agent.CallSkipped}})
	require.Equal(t, []string{"", "mine"}, []string{p.state.End.Outcome.By, p.state.End.Outcome.Reason})
}

// However many holds are forged, each as high as is believed, a sub-agent takes its parent's next order.
func TestForgedHoldsLeaveNumbersForRealOnes(t *testing.T) {
	p := played(t, `begin go`, `opened {"tools":["add"],"toolset":[{"name":"add"}],"agents":[{"agent":"b"}]}`)
	for range 1_100 {
		p.step(ModelReplied{AskSeq: p.state.Turn.AskSeq, Reply: wire.Reply{Finish: wire.FinishHeld, Hold: &agent.HoldRef{Session: "s", N: p.state.Counters.Hold + 1_000_000, Verb: agent.VerbInterrupt}}})
	}
	p.lines(`calls subagent__b {"task":"one"}`, `child-started s/b-1`, `interrupt {}`)
	c := played(t, `begin-child {"parent":{"session":"s","run":"r0"},"depth":1}`, `opened {"toolset":[{"name":"add"}]}`, `calls add {"a":1}`)
	order := func(verb agent.Verb) {
		c.step(ParentOrdered{Order: wire.ParentOrder{Run: "r", From: "r0", Verb: verb, Holds: p.state.Holds.forChildren(), KnownHolds: p.state.Holds.Known}})
		require.NoError(t, c.wrong)
	}
	order(agent.VerbInterrupt)
	require.True(t, c.state.Holds.any())
	p.lines(`resume {}`)
	order(agent.VerbResume)
	require.False(t, c.state.Holds.any())
}
