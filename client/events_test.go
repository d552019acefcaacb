package client

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"

	"github.com/fermata-agents/fermata/agent"
)

// Whatever happens in a session while somebody reads it, and in whatever moment:
// the reader gets its log.
func TestEventsAreTheLog(t *testing.T) {
	for seed := range uint64(25) {
		inBubble(t, func(t *testing.T) {
			dice, pauses := rand.New(rand.NewPCG(11, seed)), rand.New(rand.NewPCG(12, seed))
			th := newTheatre(t)
			th.begins()
			if seed%3 > 0 {
				th.tells(int(seed % 6))
			}
			act := func() {
				if th.info.GetStatus() != running {
					th.begins()
					return
				}
				switch dice.IntN(12) {
				case 0:
					th.ends()
				case 1, 2:
					th.carries()
				case 3, 4:
					th.seals(dice.IntN(3))
				default:
					th.record(agent.Event{Type: agent.EventTurnStarted, Turn: 1})
				}
			}
			th.asking = func() {
				if dice.IntN(4) == 0 && th.info.GetStatus() == running {
					th.seals(dice.IntN(2)) // between the answer and the look into the store
				}
			}
			for range dice.IntN(30) {
				th.now(act)
			}
			after := dice.IntN(len(th.all) + 1)
			ctx, cancel := context.WithCancel(t.Context())
			got := make(chan []string)
			go func() {
				lines, err := th.reads(ctx, &EventsOptions{After: agent.Cursor(int64(after)), Follow: true})
				if ctx.Err() == nil {
					t.Error(err)
				}
				got <- lines
			}()
			for range 40 {
				th.now(act)
				pass(time.Duration(pauses.IntN(700)) * time.Millisecond)
			}
			pass(2 * pollMost)
			cancel()
			require.Equal(t, th.wires(after), <-got, "seed %d", seed)
		})
	}
}

// The history wakes a reader at once; while nothing happens no run is asked.
func TestEventsAreWokenAndElseQuiet(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		th := newTheatre(t)
		th.begins()
		tasks := make(chan int64)
		th.history = func(ctx context.Context, _ string) (*historypb.HistoryEvent, error) {
			select {
			case id := <-tasks:
				return &historypb.HistoryEvent{EventId: id, EventType: enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		var seen atomic.Int64
		go func() {
			for e := range th.client().Events(ctx, "a", &EventsOptions{Follow: true}) {
				seen.Store(e.Seq)
			}
		}()
		pass(20*pollFor + pollFor/2)
		require.Equal(t, 1, th.asked)
		th.now(func() { th.record(agent.Event{Type: agent.EventTurnStarted, Turn: 1}) })
		tasks <- 99
		synctest.Wait()
		require.EqualValues(t, 2, seen.Load())
		cancel()
	})
}

// However busy a run is and however many read what it does: they ask it together, at
// most ten times a second, and hear of all of it.
func TestReadersAskTogetherAndNotTooOften(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const readers, turns, every = 100, 1000, 10 * time.Millisecond
		th := newTheatre(t)
		th.begins()
		th.tells(0)
		c := th.client()
		ctx, cancel := context.WithCancel(t.Context())
		seen := make([]atomic.Int64, readers)
		for i := range readers {
			go func() {
				for e := range c.Events(ctx, "a", &EventsOptions{Follow: true}) {
					seen[i].Store(e.Seq)
				}
			}()
		}
		synctest.Wait()
		th.asked = 0
		for turn := range turns {
			th.now(func() { th.record(agent.Event{Type: agent.EventTurnStarted, Turn: turn}) })
			pass(every)
		}
		pass(newsGap)
		for i := range readers {
			require.EqualValues(t, turns+1, seen[i].Load())
		}
		require.EqualValues(t, 1, th.polls.Load(), "one long poll for all")
		require.LessOrEqual(t, th.asked, int(turns*every/newsGap)+2, "ten questions a second")
		asked := th.asked
		pass(time.Minute)
		require.Equal(t, asked, th.asked, "and none while nothing happens")
		cancel()
	})
}

// A history that can't be followed is tried again, and not at once: the reader looks.
func TestAReaderWithoutAHistoryLooks(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		th := newTheatre(t)
		th.begins()
		th.notices = func(context.Context, string) func() (*historypb.HistoryEvent, error) {
			return func() (*historypb.HistoryEvent, error) { return nil, serviceerror.NewUnimplemented("no long polls") }
		}
		ctx, cancel := context.WithCancel(t.Context())
		var seen atomic.Int64
		go func() {
			for e := range th.client().Events(ctx, "a", &EventsOptions{Follow: true}) {
				seen.Store(e.Seq)
			}
		}()
		pass(time.Minute)
		require.LessOrEqual(t, th.polls.Load(), int64(time.Minute/pollBlind+3))
		th.now(func() { th.record(agent.Event{Type: agent.EventTurnStarted, Turn: 1}) })
		pass(pollBlind)
		require.EqualValues(t, 2, seen.Load())
		cancel()
	})
}

// A reader of a long run reads each chunk once.
func TestEventsReadEachChunkOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const turns, chunk = 2000, 25
		th := newTheatre(t)
		th.begins()
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan []string)
		go func() {
			lines, _ := th.reads(ctx, &EventsOptions{Follow: true})
			got <- lines
		}()
		for turn := range turns {
			th.now(func() {
				th.record(agent.Event{Type: agent.EventTurnStarted, Turn: turn})
				if turn%chunk == 0 {
					th.seals(0)
				}
			})
			pass(pollFor)
		}
		cancel()
		require.Len(t, <-got, turns+1)
		require.LessOrEqual(t, th.store.read.Load(), int64(2*turns/chunk+2), "a new chunk, and the one before it")
	})
}

// What is stored needs no worker. What is not is waited for, or missed by name.
func TestEventsWithoutAWorker(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		th := newTheatre(t)
		th.begins()
		th.record(agent.Event{Type: agent.EventTurnStarted, Turn: 1})
		th.seals(0)
		th.record(agent.Event{Type: agent.EventTurnEnded, Turn: 1})
		th.away = true
		lines, err := th.reads(t.Context(), nil)
		require.ErrorIs(t, err, agent.CodeNoWorker)
		require.ErrorContains(t, err, "start one")
		require.Equal(t, th.wires(0)[:2], lines)
		var seqs []int64
		for e, err := range (&Run{client: th.client(), Session: "a", ID: "run-1"}).Follow(t.Context(), agent.Cursor(1)) {
			if err != nil {
				require.ErrorIs(t, err, agent.CodeNoWorker, "one run's reader decides itself whether to wait")
				break
			}
			seqs = append(seqs, e.Seq)
		}
		require.Equal(t, []int64{2}, seqs)

		got := make(chan []string)
		go func() {
			lines, err := th.reads(t.Context(), &EventsOptions{Follow: true, UntilEnd: true})
			if err != nil {
				t.Error(err)
			}
			got <- lines
		}()
		pass(30 * time.Second)
		th.now(func() { th.away = false })
		pass(2 * pollBlind)
		th.now(th.ends)
		require.Equal(t, th.wires(0), <-got)
	})
}

// A run that somebody terminated took what it had not stored with it: whoever was
// told of that is told so.
func TestEventsThatWereNeverStored(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		th := newTheatre(t)
		th.begins()
		th.seals(0)
		th.record(agent.Event{Type: agent.EventTurnStarted, Turn: 1})
		th.record(agent.Event{Type: agent.EventTurnEnded, Turn: 1})
		got := make(chan error)
		go func() {
			_, err := th.reads(t.Context(), &EventsOptions{Follow: true})
			got <- err
		}()
		pass(2 * pollFor)
		th.now(func() {
			th.all, th.open = th.all[:1], 0
			th.begins()
		})
		err := <-got
		require.ErrorIs(t, err, agent.CodeStale)
		require.ErrorContains(t, err, `read again after "1"`)
		lines, err := th.reads(t.Context(), &EventsOptions{After: "1"})
		require.NoError(t, err)
		require.Equal(t, th.wires(1), lines)
	})
}

func TestEventsThatCantBeHad(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		th := newTheatre(t)
		_, err := th.reads(t.Context(), nil)
		require.ErrorIs(t, err, agent.CodeNotFound)
		th.begins()
		for _, o := range []EventsOptions{{After: "x"}, {After: "2"}, {After: "2", Follow: true}, {After: "2", Follow: true, UntilEnd: true}} {
			_, err = th.reads(t.Context(), &o)
			var e *agent.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, agent.CodeInvalidInput, e.Code)
			require.Equal(t, "after", e.Path)
		}
		for _, err = range New(th, nil).Events(t.Context(), "a", nil) {
		}
		require.ErrorIs(t, err, agent.CodeNotSetUp)
		_, err = th.reads(t.Context(), &EventsOptions{Follow: true, Live: true})
		require.ErrorIs(t, err, agent.CodeNotSetUp)
		for _, err = range StoredEvents(t.Context(), th.store, "b", "") {
		}
		require.ErrorIs(t, err, agent.CodeNotFound)
		th.ends()
		th.info = nil // it is past its retention
		lines, err := th.reads(t.Context(), &EventsOptions{After: "1", Follow: true, UntilEnd: true})
		require.NoError(t, err)
		require.Equal(t, th.wires(1), lines)
		_, err = th.reads(t.Context(), &EventsOptions{After: "3"})
		require.ErrorIs(t, err, agent.CodeInvalidInput)
		n := 0
		for e, err := range StoredEvents(t.Context(), th.store, "a", "1") {
			require.NoError(t, err)
			require.Equal(t, "2", e.Cursor())
			n++
		}
		require.Equal(t, 1, n)
	})
}
