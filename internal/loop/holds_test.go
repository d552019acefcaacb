package loop

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// One side has one hold, a resting run begins no call under any, and what was heard of is
// never forgotten for something older.
func TestHoldsOfTwoSides(t *testing.T) {
	own := agent.Hold{ID: "h-1", From: agent.HoldOwn, Session: "s/a-1", Verb: agent.VerbPause}
	above := agent.Hold{ID: "h-4", From: agent.HoldInherited, Session: "s", Verb: agent.VerbPause}
	h := Holds{}
	h.add(own, 1)
	h.add(above, 4)
	require.Equal(t, []bool{false, true}, []bool{h.blockCalls(false), h.blockCalls(true)})
	own.Verb = agent.VerbInterrupt
	h.add(own, 2)
	require.Len(t, h.List, 2)
	require.True(t, h.blockCalls(false))
	require.Equal(t, agent.OwnerParent, h.reasons()[0].owner)
	_, ok := h.remove(agent.HoldInherited)
	require.True(t, ok)
	require.Equal(t, agent.OwnerOperator, h.reasons().owner())
	h.remember(agent.HoldRef{Session: "s", N: 2})
	require.True(t, h.knows(agent.HoldRef{Session: "s", N: 4}))
	require.False(t, h.knows(agent.HoldRef{Session: "s", N: 5}))
}

// A hold that a step met is remembered until the run is told of it.
func TestAHoldMetEarly(t *testing.T) {
	h := Holds{}
	h.met(agent.HoldRef{Session: "s", N: 5})
	h.confirm([]agent.HoldRef{{Session: "s", N: 4}})
	require.NotNil(t, h.Unconfirmed)
	h.confirm([]agent.HoldRef{{Session: "s", N: 5}})
	require.Nil(t, h.Unconfirmed)
}

// A call that is cancelled for a hold from above has the grace that the interrupt named, also if another
// call of the run meets the hold before the order comes. A forged one is bounded.
func TestAMetHoldHasItsGrace(t *testing.T) {
	for said, want := range map[time.Duration]time.Duration{0: 5 * time.Second, 40 * time.Second: 40 * time.Second, time.Hour: time.Minute, -time.Hour: 5 * time.Second} {
		p := played(t, `begin-child {"parent":{"session":"s","run":"r0"},"depth":1}`, `opened {"toolset":[{"name":"add"}]}`, `calls add {"a":1} | add {"a":2}`)
		p.step(ToolReturned{Result: agent.ToolResult{Call: "t1.2", Tool: "add", Status: agent.CallSkipped}, Hold: &agent.HoldRef{Session: "s", N: 1, Verb: agent.VerbInterrupt, Grace: agent.Duration(said)}})
		require.NoError(t, p.wrong)
		require.Equal(t, p.now.Add(want), p.state.End.Grace.Until, said)
		require.Equal(t, []agent.HoldRef{{Session: "s", N: 1}}, p.state.Holds.Known, "a grace is no part of a hold's name")
	}
}

// A number of a hold that can't be is not believed, whoever tells of it: interrupts reach
// steps and sub-agents as before.
func TestInventedNumbersOfHolds(t *testing.T) {
	for _, n := range []int{math.MaxInt, 2_000_000, 0, -1} {
		met := agent.HoldRef{Session: "s", N: n}
		p := played(t, `begin go`, `opened {"agents":[{"agent":"b"}]}`, `calls subagent__b {"task":"one"}`, `child-started s/b-1`)
		p.step(ChildReported{Report: wire.ChildReport{Run: "r", Session: "s/b-1", From: "run of s/b-1", Status: agent.StatusRunning, MetHold: &met}})
		require.ErrorIs(t, p.wrong, agent.CodeStale, n)
		p.lines(`interrupt {}`)
		require.Equal(t, 1, p.state.Counters.Hold, n)

		p = played(t, `begin go`, `opened {"tools":["add"],"toolset":[{"name":"add"}]}`)
		p.step(ModelReplied{AskSeq: p.state.Turn.AskSeq, Reply: wire.Reply{Finish: wire.FinishHeld, Hold: &met}})
		require.NoError(t, p.wrong)
		require.Equal(t, TurnAsking, p.state.Turn.Phase, "the call is made again")
		require.Equal(t, []any{0, 0}, []any{p.state.Counters.Hold, p.state.Holds.lastNumber("s")}, n)

		p = played(t, `begin-child {"parent":{"session":"s","run":"r0"},"depth":1}`, `opened {"tools":["add"],"toolset":[{"name":"add"}]}`)
		p.step(ModelReplied{AskSeq: p.state.Turn.AskSeq, Reply: wire.Reply{Finish: wire.FinishHeld, Hold: &met}})
		require.NoError(t, p.wrong)
		require.Empty(t, p.state.Holds.List, n)
	}
}

// Nor is it in an order from above.
func TestInventedNumbersInAnOrder(t *testing.T) {
	for _, o := range []wire.ParentOrder{
		{Verb: agent.VerbResume, KnownHolds: []agent.HoldRef{{Session: "s", N: math.MaxInt}}},
		{Verb: agent.VerbInterrupt, Holds: []agent.Hold{{ID: holdID(math.MaxInt), Session: "s", Verb: agent.VerbInterrupt}}},
		{Verb: agent.VerbResume, KnownHolds: []agent.HoldRef{{Session: "s", N: -1}}},
	} {
		p := played(t, `begin-child {"parent":{"session":"s","run":"r0"},"depth":1}`, `opened {"tools":["add"],"toolset":[{"name":"add"}]}`)
		o.Run, o.From = p.state.Run, "r0"
		p.step(ParentOrdered{Order: o})
		require.ErrorIs(t, p.wrong, agent.CodeStale)
	}
}

// An order from above lays holds of sessions above this one, from above, and no others: not
// one that nobody could lift, nor ever more of them.
func TestAnOrderLaysHoldsFromAboveAlone(t *testing.T) {
	held := func(from agent.HoldFrom, session string, n int) wire.ParentOrder {
		return wire.ParentOrder{Run: "r", From: "r0", Verb: agent.VerbPause, Holds: []agent.Hold{{ID: holdID(n), From: from, Session: session, Verb: agent.VerbPause}}}
	}
	begin := func() *player {
		return played(t, `begin-child {"parent":{"session":"s","run":"r0"},"depth":1}`, `opened {"tools":["add"],"toolset":[{"name":"add"}]}`)
	}
	for _, from := range []agent.HoldFrom{agent.HoldOwn, "", "elsewhere"} {
		p := begin()
		p.lines(`pause {"reason":"mine"}`)
		for n := range 5 {
			p.step(ParentOrdered{Order: held(from, "s", n+1)})
			require.NoError(t, p.wrong)
		}
		require.Len(t, p.state.Holds.List, 2)
		require.Equal(t, "mine", p.state.Holds.own().Reason)
		p.lines(`ordered {"verb":"resume","known_holds":[{"session":"s","n":5}]}`, `resume {}`)
		require.Empty(t, p.state.Holds.List, "it is lifted as any other")
	}
	p := begin()
	for n := range 5 {
		p.step(ParentOrdered{Order: held(agent.HoldInherited, fmt.Sprintf("other-%d", n), 1)})
		require.ErrorIs(t, p.wrong, agent.CodeStale)
	}
	require.Empty(t, p.state.Holds)
	p.step(ParentOrdered{Order: wire.ParentOrder{Run: "r", From: "r0", Verb: "begin", Own: true}})
	require.ErrorIs(t, p.wrong, agent.CodeStale, "no verb of an order")

	p = played(t, `begin-child {"parent":{"session":"s","run":"r0"},"depth":1,"known_holds":[{"session":"s/a-1","n":9223372036854775807},{"session":"other","n":3},{"session":"s","n":4}],"holds":[{"id":"h-4","session":"s","verb":"pause"}]}`)
	require.Equal(t, []agent.HoldRef{{Session: "s", N: 4}}, p.state.Holds.Known)
	require.NotNil(t, p.state.Holds.inherited())
}

// What steps say to have met is kept of this session and those above it: of others no step
// asks, and there is no end to their names.
func TestOnlyHoldsOfTheTreeAreKept(t *testing.T) {
	p := played(t, `begin go`, `opened {"tools":["add"],"toolset":[{"name":"add"}]}`)
	for n := range 20 {
		p.step(ModelReplied{AskSeq: p.state.Turn.AskSeq, Reply: wire.Reply{Finish: wire.FinishHeld, Hold: &agent.HoldRef{Session: fmt.Sprintf("other-%d", n), N: 1}}})
		require.NoError(t, p.wrong)
		require.Equal(t, TurnAsking, p.state.Turn.Phase)
	}
	require.Empty(t, p.state.Holds.Known)
}

// What an order from above says is kept as short as what an operator says, and takes no
// longer.
func TestAnOrderFromAboveIsBounded(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for _, verb := range []agent.Verb{agent.VerbStop, agent.VerbCancel, agent.VerbPause, agent.VerbInterrupt} {
		p := played(t, `begin-child {"parent":{"session":"s","run":"r0"},"depth":1}`, `opened {"tools":["add"],"toolset":[{"name":"add"}]}`)
		p.step(ParentOrdered{Order: wire.ParentOrder{Run: "r", From: "r0", Verb: verb, Own: verb.Strength() < agent.VerbStop.Strength(), By: long, Reason: long, Grace: math.MaxInt64, Deadline: math.MaxInt64}})
		require.NoError(t, p.wrong)
		tail := p.state.Log
		p.state.Log = Log{}
		require.Less(t, written(p.state)+written(tail), 64<<10, verb)
		if a := p.state.End.Grace; a != nil {
			require.LessOrEqual(t, a.Until.Sub(p.now), time.Minute)
		}
		if s := p.state.End.Stopping; s != nil {
			require.LessOrEqual(t, s.Until.Sub(p.now), time.Hour)
		}
	}
}

// An event of a removed hold that goes along is no longer than is counted (lineJSONLen).
func TestARemovedHoldIsCounted(t *testing.T) {
	p := played(t, "begin go", "opened {}", `pause {}`)
	p.step(CommandReceived{Command: agent.ResumeCommand{CommandHeader: agent.CommandHeader{By: strings.Repeat("\x01", 256)}}, PolicyChecked: true})
	last := p.state.Log.Tail[len(p.state.Log.Tail)-1]
	require.Equal(t, agent.EventHoldRemoved, last.Type)
	n, short := lineJSONLen(last)
	require.True(t, short)
	require.LessOrEqual(t, written(last), n)
}

// Enough such events go along with the state past their share.
func TestATailOfRemovedHoldsKeepsItsShare(t *testing.T) {
	p := played(t, "begin go", "opened {}")
	p.state.Log.Tail = nil // sealed
	by := func(n int) agent.CommandHeader { return agent.CommandHeader{By: strings.Repeat("\x01", n)} }
	for range maxTailAlong / 2 {
		p.step(CommandReceived{Command: agent.PauseCommand{CommandHeader: by(120)}, PolicyChecked: true})
		p.step(CommandReceived{Command: agent.ResumeCommand{CommandHeader: by(256)}, PolicyChecked: true})
		require.NoError(t, p.wrong)
	}
	require.Len(t, p.state.Log.Tail, maxTailAlong)
	if p.state.Log.tailFitsAlong() {
		require.LessOrEqual(t, written(p.state.Log.Tail), alongShare)
	}
}

// A forged order's hold can't bring more than a hold may have, nor does a start's.
func TestAForgedHoldIsBounded(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	begin := `begin-child {"parent":{"session":"s","run":"r0"},"depth":1}`
	p := played(t, begin, `opened {"tools":["add"],"toolset":[{"name":"add"}]}`)
	p.step(ParentOrdered{Order: wire.ParentOrder{Run: "r", From: "r0", Verb: agent.VerbPause, Holds: []agent.Hold{{ID: "h-1", Session: "s", Verb: agent.VerbPause, RemovedBy: long}}}})
	require.NoError(t, p.wrong)
	require.NotNil(t, p.state.Holds.inherited())
	require.Less(t, written(p.state.Holds), fixedShare)
}

// The log of a sub-agent says who removed the hold that it inherited.
func TestTheLogSaysWhoRemovedAnInheritedHold(t *testing.T) {
	parent := played(t, "begin go", `opened {"agents":[{"agent":"b"}],"lifecycle":true}`, `calls subagent__b {"task":"one","background":true}`, `child-started s/b-1`, `pause {"by":"ana"}`)
	_, effects, err := Step(parent.state, Moment{At: parent.now, Revision: Revision}, CommandReceived{Command: agent.ResumeCommand{CommandHeader: agent.CommandHeader{By: "bo"}}, PolicyChecked: true})
	require.NoError(t, err)
	var order wire.ParentOrder
	for _, e := range effects {
		if e, ok := e.(OrderChild); ok {
			order = e.Order
		}
	}
	require.Equal(t, agent.VerbResume, order.Verb)
	child := played(t, `begin-child {"parent":{"session":"s","run":"r0"},"depth":1,"known_holds":[{"session":"s","n":1}],"holds":[{"id":"h-1","session":"s","verb":"pause","by":"ana"}]}`, `opened {}`)
	order.Run, order.From = "r", "r0"
	child.step(ParentOrdered{Order: order})
	require.NoError(t, child.wrong)
	var removed *agent.Hold
	for _, e := range child.state.Log.Tail {
		if e.Type == agent.EventHoldRemoved {
			removed = e.Hold
		}
	}
	require.NotNil(t, removed)
	require.Equal(t, []string{"ana", "bo"}, []string{removed.By, removed.RemovedBy})
}
