package observers

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/observe"
)

// stuck is a Set whose observer has an event of the session z, and waits.
func stuck(t *testing.T) (*Set, *keeper) {
	k := &keeper{gate: make(chan struct{})}
	s := New([]observe.Observer{k}, quiet)
	s.Event(of("z", 1))
	k.mustHave(t, 1) // it has left the queue
	return s, k
}

// One session with its sub-agents can't fill a queue for the others: while half of the queue waits, it gets
// no more than a quarter. It takes the session's events again when few wait, so its gaps are few (OA-110).
func TestOneSessionLeavesRoomForTheOthers(t *testing.T) {
	s, k := stuck(t)
	next := int64(0)
	flood := func(n int) {
		for range n {
			next++
			s.Event(of("a", next))
			s.Event(of("a/clerk-1", next))
		}
	}
	flood(maxEvents)
	const others, each = 30, 128
	for i := range each {
		for o := range others {
			s.Event(of(fmt.Sprint("o", o), int64(i+1)))
		}
	}
	flood(10)
	for range 4 * maxEvents / 8 { // so many are the session's
		k.gate <- struct{}{}
		s.Event(of("a", next+1))
		next++
	}
	close(k.gate)
	require.NoError(t, s.Drain(patiently(t), ""))
	for o := range others {
		require.Zero(t, whole(t, k, fmt.Sprint("o", o), each))
	}
	gaps := whole(t, k, "a", next)
	require.Positive(t, gaps)
	require.Less(t, gaps, 4)
	mustBeEmpty(t, s)
}

// The same holds for bytes.
func TestLargeEventsLeaveRoomForTheOthers(t *testing.T) {
	s, k := stuck(t)
	for i := range 64 {
		s.Event(large("a", int64(i+1), maxBytes/16))
	}
	for i := range 64 {
		s.Event(large("b", int64(i+1), maxBytes/64/8))
		s.Event(of("c", int64(i+1)))
	}
	close(k.gate)
	require.NoError(t, s.Drain(patiently(t), ""))
	require.Equal(t, 1, whole(t, k, "a", 64))
	require.Zero(t, whole(t, k, "b", 64))
	require.Zero(t, whole(t, k, "c", 64))
}

// fill fills the queue with events of sessions that have few each.
func fill(s *Set) {
	for i := range maxEvents {
		s.Event(of(fmt.Sprint("f", i%64), int64(i/64+1)))
	}
}

// One session with very many runs leaves the others their gaps: it has a quarter of them, and one for all its
// other runs. A Drain of one of these runs waits for that.
func TestOneSessionLeavesGapsForTheOthers(t *testing.T) {
	s, k := stuck(t)
	fill(s)
	const children = 2 * maxGaps
	for i := range children {
		s.Event(of(fmt.Sprint("a/clerk-", i), 1))
	}
	s.Event(of("b", 1))
	require.ErrorIs(t, s.Drain(soon(t), fmt.Sprint("a/clerk-", children-1)), agent.CodeTimeout)
	require.NoError(t, s.Drain(soon(t), "ab"))
	close(k.gate)
	require.NoError(t, s.Drain(patiently(t), ""))
	require.Equal(t, maxGaps/4+2, len(k.gaps)) // and not Len, which prints them
	require.Equal(t, observe.Gap{Session: "a", Events: children - maxGaps/4}, k.gaps[maxGaps/4])
	require.Equal(t, observe.Gap{Session: "b", Run: "b", Agent: "tester", From: 1, To: 1, Events: 1}, k.gaps[maxGaps/4+1])
	mustBeEmpty(t, s)
}

// If very many sessions lose events, the queue stays bounded: further gaps are those of a session, and the
// events of the last ones are only counted. The same holds for gaps that a stop makes.
func TestGapsAreBounded(t *testing.T) {
	for name, stop := range map[string]bool{"full": false, "stopped": true} {
		t.Run(name, func(t *testing.T) {
			s, k := stuck(t)
			fill(s)
			const more = 77
			for i := range 2*maxGaps + more {
				s.Event(of(fmt.Sprint("r", i), 1))
				s.Event(of(fmt.Sprint("r", i), 2))
			}
			q := s.queues[0]
			q.mu.Lock()
			require.Equal(t, maxEvents+2*maxGaps+1, len(q.items)-q.head)
			q.mu.Unlock()
			taken := maxEvents
			if stop {
				taken = 0
				require.EqualValues(t, 1+maxEvents+2*(2*maxGaps+more), q.close(), "with the event that the observer has")
				require.LessOrEqual(t, len(q.items), 2*maxGaps+1)
			}
			close(k.gate)
			require.NoError(t, s.Drain(patiently(t), "r3"))
			require.NoError(t, s.Drain(patiently(t), ""))
			lost, runs, sessions := int64(0), 0, 0
			for _, g := range k.gaps {
				lost += g.Events
				switch {
				case g.Run != "":
					runs++
				case g.Session != "":
					sessions++
					fallthrough
				default:
					require.Zero(t, g.From+g.To)
				}
			}
			require.Equal(t, maxGaps, runs)
			require.Equal(t, maxGaps, sessions)
			require.Len(t, k.events, taken+1)
			require.EqualValues(t, maxEvents-taken+2*(2*maxGaps+more), lost)
			mustBeEmpty(t, s)
		})
	}
}
