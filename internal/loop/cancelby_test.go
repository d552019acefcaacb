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
