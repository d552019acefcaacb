package loop

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// One side has one hold, a resting run begins no call under any, and what was heard of is
// never forgotten for something older.
func TestHoldsOfTwoSides(t *testing.T) {
	own := agent.Hold{ID: "h-1", From: agent.HoldOwn, Session: "s/a-1", Verb: agent.Pause}
	above := agent.Hold{ID: "h-4", From: agent.HoldInherited, Session: "s", Verb: agent.Pause}
	h := Holds{}
	h.add(own, 1)
	h.add(above, 4)
	require.Equal(t, []bool{false, true}, []bool{h.keepCalls(false), h.keepCalls(true)})
	own.Verb = agent.Interrupt
	h.add(own, 2)
	require.Len(t, h.List, 2)
	require.True(t, h.keepCalls(false))
	require.Equal(t, agent.OwnedByParent, h.reasons(agent.ByOperator)[0].owner)
	_, ok := h.remove(agent.HoldInherited)
	require.True(t, ok)
	require.Equal(t, agent.OwnedByOperator, h.reasons(agent.ByOperator).owner())
	h.hear(agent.Heard{Session: "s", N: 2})
	require.True(t, h.knows(agent.Heard{Session: "s", N: 4}))
	require.False(t, h.knows(agent.Heard{Session: "s", N: 5}))
}

// A hold that a step met is remembered until the run is told of it.
func TestAHoldMetEarly(t *testing.T) {
	h := Holds{}
	h.met(agent.Heard{Session: "s", N: 5})
	h.told([]agent.Heard{{Session: "s", N: 4}})
	require.NotNil(t, h.Early)
	h.told([]agent.Heard{{Session: "s", N: 5}})
	require.Nil(t, h.Early)
}
