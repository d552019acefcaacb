package observers

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/observe"
)

// quiet is a logger that drops everything.
var quiet = slog.New(slog.DiscardHandler)

// keeper keeps what it receives. Before each event it waits for a value of gate, if there is
// one, or for the context's end if obeys is set.
type keeper struct {
	gate  chan struct{}
	obeys bool

	mu     sync.Mutex
	events []observe.RunEvent
	gaps   []observe.Gap
	order  []string // both, as "run:seq" or "run:from-to"
}

func (k *keeper) Event(ctx context.Context, e observe.RunEvent) {
	k.mu.Lock()
	k.events = append(k.events, e)
	k.order = append(k.order, fmt.Sprintf("%s:%d", e.Run, e.Event.Seq))
	k.mu.Unlock()
	switch {
	case k.obeys:
		select {
		case <-k.gate:
		case <-ctx.Done():
		}
	case k.gate != nil:
		<-k.gate
	}
}

func (k *keeper) Gap(_ context.Context, g observe.Gap) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.gaps = append(k.gaps, g)
	k.order = append(k.order, fmt.Sprintf("%s:%d-%d", g.Run, g.From, g.To))
}

// of is an event of a session whose run has the session's name.
func of(session string, seq int64) *observe.RunEvent {
	return &observe.RunEvent{Session: session, Run: session, Agent: "tester", Event: agent.Event{Seq: seq, Type: agent.EventMessage}}
}

// soon is a context that ends at once in terms of a person, and late enough for goroutines.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

// patiently is a context that ends before the test run does.
func patiently(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// The events of each run come in order and whole, while several runs go on at once (OA-110).
func TestTheEventsOfARunComeInOrder(t *testing.T) {
	const runs, events = 8, 500
	one, other := &keeper{}, &keeper{}
	s := New([]observe.Observer{one, other}, quiet)
	var going sync.WaitGroup
	for r := range runs {
		going.Go(func() {
			for i := range events {
				s.Event(of(fmt.Sprint(r), int64(i+1)))
			}
		})
	}
	going.Wait()
	require.NoError(t, s.Drain(patiently(t), ""))
	for _, k := range []*keeper{one, other} {
		last := map[string]int64{}
		for _, e := range k.events {
			require.Equal(t, last[e.Run]+1, e.Event.Seq, e.Run)
			last[e.Run] = e.Event.Seq
		}
		require.Len(t, k.events, runs*events)
		require.Empty(t, k.gaps)
	}
}

// A hanging observer delays neither who adds events nor another observer, and Drain names it
// and what it has to receive (OA-110).
func TestAHangingObserverDelaysNobody(t *testing.T) {
	hanging, other := &keeper{gate: make(chan struct{})}, &keeper{}
	s := New([]observe.Observer{hanging, other}, quiet)
	for i := range 3 {
		s.Event(of("a", int64(i+1)))
	}
	err := s.Drain(soon(t), "")
	require.ErrorIs(t, err, agent.CodeTimeout)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.EqualError(t, err, "draining observers: *observers.keeper has 3 to receive: context deadline exceeded")
	other.mu.Lock()
	require.Len(t, other.events, 3)
	other.mu.Unlock()
	require.Empty(t, s.queues[0].waiters, "a Drain that gave up leaves nothing behind")
	close(hanging.gate)
	require.NoError(t, s.Drain(patiently(t), ""))
	require.Len(t, hanging.events, 3)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, s.Drain(ended, ""), "nothing is left")
}

// Drain waits for what came before it, and not for what comes meanwhile.
func TestDrainEndsWhileEventsCome(t *testing.T) {
	k := &keeper{gate: make(chan struct{})}
	s := New([]observe.Observer{k}, quiet)
	s.Event(of("a", 1))
	w := s.queues[0].mark("")
	s.Event(of("a", 2))
	k.gate <- struct{}{}
	require.Zero(t, s.queues[0].await(patiently(t), w))
	require.ErrorIs(t, s.Drain(soon(t), ""), agent.CodeTimeout)
	close(k.gate)
}

// A session is drained with the sessions below it, and without those that only begin with its
// name.
func TestASessionIsDrained(t *testing.T) {
	k := &keeper{gate: make(chan struct{})}
	s := New([]observe.Observer{k}, quiet)
	for _, session := range []string{"a", "a/clerk-1", "ab", "c"} {
		s.Event(of(session, 1))
	}
	require.NoError(t, s.Drain(soon(t), "b"))
	require.ErrorIs(t, s.Drain(soon(t), "a"), agent.CodeTimeout)
	k.gate <- struct{}{}
	require.ErrorIs(t, s.Drain(soon(t), "a"), agent.CodeTimeout, "the child's event is not delivered")
	k.gate <- struct{}{}
	require.NoError(t, s.Drain(patiently(t), "a"))
	require.ErrorIs(t, s.Drain(soon(t), "ab"), agent.CodeTimeout)
	close(k.gate)
	require.NoError(t, s.Drain(patiently(t), ""))
}

// bad panics at everything, or ends its goroutine.
type bad struct {
	keeper
	exits bool
}

func (b *bad) Event(ctx context.Context, e observe.RunEvent) {
	b.keeper.Event(ctx, e)
	if b.exits {
		runtime.Goexit()
	}
	panic("it can't be drawn")
}

func (b *bad) Gap(ctx context.Context, g observe.Gap) {
	b.keeper.Gap(ctx, g)
	panic("nor can this")
}

// An observer that panics, or ends its goroutine, receives the next event all the same. The
// log has some of the panics (OA-110).
func TestAnObserverThatFails(t *testing.T) {
	for name, exits := range map[string]bool{"panic": false, "exit": true} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			b, other := &bad{exits: exits}, &keeper{}
			s := New([]observe.Observer{b, other}, slog.New(slog.NewTextHandler(&out, nil)))
			for i := range 100 {
				s.Event(of("a", int64(i+1)))
			}
			require.NoError(t, s.Drain(patiently(t), ""))
			s.queues[0].close()
			s.Event(of("a", 101))
			require.NoError(t, s.Drain(patiently(t), ""))
			require.Len(t, b.events, 100)
			require.Equal(t, []observe.Gap{{Session: "a", Run: "a", Agent: "tester", From: 101, To: 101, Events: 1}}, b.gaps)
			require.Len(t, other.events, 101)
			require.Equal(t, 7, strings.Count(out.String(), "an observer panicked"), out.String()) // 1, 2, 4 … 64
		})
	}
}

// whole checks that events and gaps of a run are 1 to n, in order and without holes.
func whole(t *testing.T, k *keeper, run string, n int64) (gaps int) {
	t.Helper()
	next := int64(1)
	for _, line := range k.order {
		numbers, mine := strings.CutPrefix(line, run+":")
		if !mine {
			continue
		}
		var from, to int64
		if _, err := fmt.Sscanf(numbers, "%d-%d", &from, &to); err == nil {
			gaps++
		} else {
			_, err := fmt.Sscan(numbers, &from)
			require.NoError(t, err)
			to = from
		}
		require.Equal(t, next, from, "%s: %s", run, line)
		next = to + 1
	}
	require.Equal(t, n+1, next, run)
	return gaps
}

// What finds no room becomes a gap of its run, in its place. The queue takes events again
// when it is half empty, so a slow observer has few gaps. (OA-110)
func TestAnOverflowIsAGap(t *testing.T) {
	var out strings.Builder
	k := &keeper{gate: make(chan struct{})}
	s := New([]observe.Observer{k}, slog.New(slog.NewTextHandler(&out, nil)))
	const each = maxEvents / 4
	runs := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	s.Event(of("z", 1))
	k.mustHave(t, 1) // it has left the queue
	for i := range each {
		for _, run := range runs {
			s.Event(of(run, int64(i+1)))
		}
	}
	for range maxEvents / 2 {
		k.gate <- struct{}{}
	}
	k.mustHave(t, 1+maxEvents/2)
	s.Event(of("a", each+1)) // it is lost: more than half of the queue waits
	k.gate <- struct{}{}
	k.mustHave(t, 2+maxEvents/2)
	s.Event(of("a", each+2))
	s.Event(of("b", each+1))
	close(k.gate)
	require.NoError(t, s.Drain(patiently(t), ""))
	want := []observe.Gap{{Session: "a", Run: "a", Agent: "tester", From: each/2 + 1, To: each + 1, Events: each/2 + 1}}
	for _, run := range runs[1:] {
		want = append(want, observe.Gap{Session: run, Run: run, Agent: "tester", From: each/2 + 1, To: each, Events: each / 2})
	}
	require.Equal(t, want, k.gaps)
	require.Equal(t, 1, whole(t, k, "a", each+2))
	require.Equal(t, 1, whole(t, k, "b", each+1))
	require.Equal(t, "b:2049", k.order[len(k.order)-1])
	require.Equal(t, 1, strings.Count(out.String(), "an observer is too slow"), out.String())
	mustBeEmpty(t, s)
}

// mustBeEmpty waits until nothing waits: then a queue has no goroutine, and holds no memory.
func mustBeEmpty(t *testing.T, s *Set) {
	t.Helper()
	q := s.queues[0]
	require.Eventually(t, func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return !q.delivering && q.items == nil && q.bytes+q.events+q.gaps+q.wide+len(q.open)+len(q.shares) == 0
	}, time.Minute, time.Millisecond)
}

// Large events fill a queue by their bytes. One is taken however large it is.
func TestAQueueIsBoundedInBytes(t *testing.T) {
	k := &keeper{gate: make(chan struct{})}
	s := New([]observe.Observer{k}, quiet)
	large := func(seq int64, bytes int) *observe.RunEvent { return large("a", seq, bytes) }
	s.Event(of("a", 1))
	k.mustHave(t, 1) // it has left the queue
	s.Event(large(2, 2*maxBytes))
	s.Event(large(3, 100))
	s.Event(large(4, 100))
	close(k.gate)
	require.NoError(t, s.Drain(patiently(t), ""))
	require.Equal(t, []string{"a:1", "a:2", "a:3-4"}, k.order)
	s.Event(large(5, maxBytes/5))
	s.Event(large(6, maxBytes/5))
	require.NoError(t, s.Drain(patiently(t), ""))
	require.Equal(t, 1, whole(t, k, "a", 6))
}

// large is an event of a session with a text.
func large(session string, seq int64, bytes int) *observe.RunEvent {
	e := of(session, seq)
	e.Event.Message = &agent.Message{Parts: []agent.Part{{Type: agent.PartText, Text: strings.Repeat("x", bytes)}}}
	return e
}

// mustHave waits until so many events have come.
func (k *keeper) mustHave(t *testing.T, events int) {
	t.Helper()
	require.Eventually(t, func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		return len(k.events) >= events
	}, time.Minute, time.Millisecond)
}

// A gap has only what this worker lost: events that another worker observed between are not
// in it. A repeated event is counted.
func TestAGapHasNoHoles(t *testing.T) {
	k := &keeper{gate: make(chan struct{})}
	s := New([]observe.Observer{k}, quiet)
	s.Event(of("z", 1))
	k.mustHave(t, 1)
	s.queues[0].close()
	for _, seq := range []int64{5, 6, 6, 5, 7, 20, 21, 3} {
		s.Event(of("a", seq))
	}
	close(k.gate)
	require.NoError(t, s.Drain(patiently(t), ""))
	require.Equal(t, []string{"z:1", "a:5-7", "a:20-21", "a:3-3"}, k.order)
	require.EqualValues(t, 5, k.gaps[0].Events)
}

// A set that stops waits for a slow observer, and then says what it will not receive.
func TestStop(t *testing.T) {
	s := New([]observe.Observer{&keeper{}}, quiet)
	s.Event(of("a", 1))
	s.Stop()
	s.Stop()
	require.Len(t, s.queues[0].to.(*keeper).events, 1)

	var out strings.Builder
	slow := &keeper{gate: make(chan struct{}), obeys: true}
	s = New([]observe.Observer{slow}, slog.New(slog.NewTextHandler(&out, nil)))
	s.patience = time.Millisecond
	for i := range 5 {
		s.Event(of("a", int64(i+1)))
		s.Event(of("b", int64(i+1)))
	}
	slow.mustHave(t, 1)
	s.Stop()
	require.Equal(t, []string{"a:1", "b:1-5", "a:2-5"}, slow.order)
	require.Contains(t, out.String(), "events=10")
	s.Event(of("a", 6)) // by a task that outlives its worker
	require.NoError(t, s.Drain(patiently(t), ""))
	require.Equal(t, "a:6-6", slow.order[len(slow.order)-1])
}

// An observer that hangs and heeds no context does not keep a worker from stopping.
func TestStopWithAHangingObserver(t *testing.T) {
	var out strings.Builder
	hanging := &keeper{gate: make(chan struct{})}
	s := New([]observe.Observer{hanging}, slog.New(slog.NewTextHandler(&out, nil)))
	s.patience, s.gapPatience = time.Millisecond, time.Millisecond
	s.Event(of("a", 1))
	s.Event(of("a", 2))
	hanging.mustHave(t, 1)
	s.Stop()
	require.Contains(t, out.String(), "an observer hangs")
	require.ErrorIs(t, s.queues[0].ctx.Err(), context.Canceled)
	close(hanging.gate)
	require.NoError(t, s.Drain(patiently(t), ""))
	require.Equal(t, []string{"a:1", "a:2-2"}, hanging.order)
}

// A worker without observers does nothing for an event.
func TestNoObservers(t *testing.T) {
	s := New(nil, quiet)
	require.Nil(t, s)
	e := of("a", 1)
	require.Zero(t, testing.AllocsPerRun(100, func() { s.Event(e) }))
	require.NoError(t, s.Drain(t.Context(), ""))
	s.Stop()
}
