package activities

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// roots carries holds by hand, and knows who follows what.
type roots struct {
	told []agent.HoldRef
	hear map[string]func(agent.HoldRef)
}

func (r *roots) Publish(h agent.HoldRef) { r.told = append(r.told, h) }

func (r *roots) Follow(root string, hear func(agent.HoldRef)) (leave func()) {
	r.hear[root] = hear
	return func() { delete(r.hear, root) }
}

// A process follows a tree as long as it has steps of it in flight, once for all of them.
func TestAProcessFollowsTheTreesThatItWorksFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &roots{hear: map[string]func(agent.HoldRef){}}
		f := NewInFlight()
		f.Holds = r
		_, leaveRoot := f.enter(t.Context(), "a", nil)
		below, leaveBelow := f.enter(t.Context(), "a/scout-1", nil)
		other, leaveOther := f.enter(t.Context(), "b", nil)
		require.Len(t, r.hear, 2)
		leaveRoot()
		require.Contains(t, r.hear, "a", "a step below is in flight")
		r.hear["a"](agent.HoldRef{Session: "a", N: 1, Verb: agent.VerbInterrupt})
		synctest.Wait()
		require.Equal(t, "a", heldBy(below).Session)
		require.NoError(t, other.Err())
		require.Empty(t, r.told, "what comes from others is not told again")
		leaveBelow()
		require.NotContains(t, r.hear, "a")
		_, leaveHeld := f.enter(t.Context(), "a/scout-1", nil) // held as it begins
		leaveHeld()
		require.NotContains(t, r.hear, "a")
		f.Broadcast(agent.HoldRef{Session: "b", N: 1, Verb: agent.VerbInterrupt})
		require.Len(t, r.told, 1)
		leaveOther()
		require.Empty(t, r.hear)
	})
}

// A process whose clock is ahead, or behind, hears of a hold as any other: a hold names no time, and is compared
// with none.
func TestAHoldNamesNoTime(t *testing.T) {
	for f := range reflect.TypeFor[agent.HoldRef]().Fields() {
		require.Contains(t, []reflect.Kind{reflect.String, reflect.Int, reflect.Int64}, f.Type.Kind(), f.Name)
	}
	synctest.Test(t, func(t *testing.T) {
		<-time.After(365 * 24 * time.Hour) // in skipped time: this process's clock is a year ahead of the one that holds
		r := &roots{hear: map[string]func(agent.HoldRef){}}
		f := NewInFlight()
		f.Holds = r
		ctx, leave := f.enter(t.Context(), "a", nil)
		defer leave()
		r.hear["a"](agent.HoldRef{Session: "a", N: 1, Verb: agent.VerbInterrupt})
		synctest.Wait()
		require.Equal(t, "a", heldBy(ctx).Session)
	})
}

// What comes over a broker may be forged: it stops a step, and ends no run. Its own run
// learns from above whether it is held, or at an end.
func TestABrokerEndsNoRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &roots{hear: map[string]func(agent.HoldRef){}}
		f := NewInFlight()
		f.Holds = r
		below, leave := f.enter(t.Context(), "a/scout-1", nil)
		r.hear["a"](agent.HoldRef{Session: "a", N: 1, Verb: agent.VerbCancel, By: "boss"})
		synctest.Wait()
		require.Equal(t, agent.HoldRef{Session: "a", N: 1, Verb: agent.VerbInterrupt}, *heldBy(below))
		leave()
		late, leave := f.enter(t.Context(), "a/scout-1", nil)
		require.Equal(t, agent.VerbInterrupt, heldBy(late).Verb, "as it begins")
		leave()
		own, leave := f.enter(t.Context(), "b/scout-1", nil)
		f.Broadcast(agent.HoldRef{Session: "b", N: 1, Verb: agent.VerbCancel, By: "ana"})
		require.Equal(t, agent.VerbCancel, heldBy(own).Verb, "a run in this process said so itself")
		leave()
		late, leave = f.enter(t.Context(), "b/scout-1", nil)
		require.Equal(t, agent.HoldRef{Session: "b", N: 1, Verb: agent.VerbInterrupt}, *heldBy(late), "a later session may have this one's id")
		leave()
	})
}

// A hold is remembered for as long as its orders may take. Later it could only meet another run: a session
// that was deleted and began again, in whichever process.
func TestAnOldHoldIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewInFlight()
		f.Told(agent.HoldRef{Session: "a", N: 5})
		held := func() bool {
			ctx, leave := f.enter(t.Context(), "a/scout-1", nil)
			defer leave()
			return heldBy(ctx) != nil
		}
		require.True(t, held())
		time.Sleep(rememberFor + time.Second)
		require.False(t, held())
		f.Told(agent.HoldRef{Session: "a", N: 1})
		require.True(t, held(), "the new session counts from one")
	})
}

// What a process is told is bounded: it stays in memory, and goes into the result of each call that it stops.
func TestWhatIsToldIsBounded(t *testing.T) {
	f := NewInFlight()
	ctx, leave := f.enter(t.Context(), "a/scout-1", nil)
	defer leave()
	long := strings.Repeat("x", 1<<20)
	f.Told(agent.HoldRef{Session: long, N: 1})
	require.Zero(t, f.holds.Len())
	f.Told(agent.HoldRef{Session: "a", N: 1, Verb: agent.Verb(long), By: long})
	require.Equal(t, agent.HoldRef{Session: "a", N: 1, Verb: agent.VerbInterrupt}, *heldBy(ctx))
}

// Forged holds hide no real one: neither their number, which this process remembers, nor that to which they
// have brought the session.
func TestForgedHoldsHideNoRealOne(t *testing.T) {
	f := NewInFlight()
	f.Told(agent.HoldRef{Session: "a", N: 1_000_000})
	f.Told(agent.HoldRef{Session: "a", N: 2_000_000})
	f.Broadcast(agent.HoldRef{Session: "a", N: 4, Verb: agent.VerbInterrupt})
	late, leave := f.enter(t.Context(), "a/scout-1", []agent.HoldRef{{Session: "a", N: 3}})
	require.Equal(t, 4, heldBy(late).N)
	leave()
	const most = 1 << 29 // no forged number is higher
	running, leave := f.enter(t.Context(), "b/scout-1", []agent.HoldRef{{Session: "b", N: most}})
	defer leave()
	f.Told(agent.HoldRef{Session: "b", N: most + 1_000_000})
	require.NoError(t, running.Err())
	f.Broadcast(agent.HoldRef{Session: "b", N: most + 1, Verb: agent.VerbInterrupt})
	require.Equal(t, most+1, heldBy(running).N)
}

// A tree that begins anew meets no hold of before. What other trees were told stays, and so does the bound.
func TestForgettingATree(t *testing.T) {
	f := NewInFlight()
	for _, session := range []string{"a", "a/scout-1", "ab"} {
		f.Cancel(agent.HoldRef{Session: session, N: 1, Verb: agent.VerbInterrupt})
	}
	f.Forget("a")
	for session, held := range map[string]bool{"a/scout-1": false, "a/scout-1/deep-1": false, "ab": true} {
		ctx, leave := f.enter(t.Context(), session, nil)
		require.Equal(t, held, heldBy(ctx) != nil, session)
		leave()
	}
	for i := range maxHolds + 5 {
		f.Cancel(agent.HoldRef{Session: fmt.Sprint(i), N: 1, Verb: agent.VerbInterrupt})
	}
	require.Len(t, f.held, maxHolds)
}
