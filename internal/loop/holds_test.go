package loop

import (
	"math"
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
	require.Equal(t, []bool{false, true}, []bool{h.blockCalls(false), h.blockCalls(true)})
	own.Verb = agent.Interrupt
	h.add(own, 2)
	require.Len(t, h.List, 2)
	require.True(t, h.blockCalls(false))
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

// A number of a hold that can't be is not believed, whoever tells of it: interrupts reach
// steps and sub-agents as before.
func TestInventedNumbersOfHolds(t *testing.T) {
	for _, n := range []int{math.MaxInt, 2_000_000, 0, -1} {
		met := agent.Heard{Session: "s", N: n}
		p := played(t, `begin go`, `opened {"agents":[{"agent":"b"}]}`, `calls subagent__b {"task":"one"}`, `child-started s/b-1`)
		p.step(Reported{Report: agent.ChildReport{Run: "r", Session: "s/b-1", Status: agent.Running, Met: &met}})
		require.ErrorIs(t, p.wrong, agent.Stale, n)
		p.lines(`interrupt {}`)
		require.Equal(t, 1, p.state.Numbers.Hold, n)

		p = played(t, `begin go`, `opened {"tools":["add"],"toolset":[{"name":"add"}]}`)
		p.step(Replied{Ask: p.state.Turn.Ask, Reply: agent.Reply{Finish: agent.FinishHeld, Hold: &met}})
		require.NoError(t, p.wrong)
		require.Equal(t, Asking, p.state.Turn.Phase, "the call is made again")
		require.Equal(t, []any{0, 0}, []any{p.state.Numbers.Hold, p.state.Holds.last("s")}, n)

		p = played(t, `born {"parent":{"session":"s","run":"r0"},"depth":1}`, `opened {"tools":["add"],"toolset":[{"name":"add"}]}`)
		p.step(Replied{Ask: p.state.Turn.Ask, Reply: agent.Reply{Finish: agent.FinishHeld, Hold: &met}})
		require.NoError(t, p.wrong)
		require.Empty(t, p.state.Holds.List, n)
	}
}

// Nor is it in an order from above.
func TestInventedNumbersInAnOrder(t *testing.T) {
	for _, o := range []agent.HoldOrder{
		{Verb: agent.Resume, Heard: []agent.Heard{{Session: "s", N: math.MaxInt}}},
		{Verb: agent.Interrupt, Held: []agent.Hold{{ID: agent.HoldID(math.MaxInt), Session: "s", Verb: agent.Interrupt}}},
		{Verb: agent.Resume, Heard: []agent.Heard{{Session: "s", N: -1}}},
	} {
		p := played(t, `born {"parent":{"session":"s","run":"r0"},"depth":1}`, `opened {"tools":["add"],"toolset":[{"name":"add"}]}`)
		o.Run = p.state.Run
		p.step(Ordered{Order: o})
		require.ErrorIs(t, p.wrong, agent.Stale)
	}
}
