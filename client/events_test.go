package client

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/converter"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/store"
)

// theatre is a session as the server, a worker and the store have it. All that
// happens in it happens in now.
type theatre struct {
	*fake
	t     *testing.T
	store countingStore
	all   []agent.Event // the log
	open  int           // how many of them are not sealed
	head  store.Head
	runs  int
	info  *workflowpb.WorkflowExecutionInfo // of the last execution
	away  bool                              // no worker answers
	asked int                               // queries
	// asking is called with each answer that is on its way, and ahead is what the
	// worker makes of what is behind the run's last task.
	asking func()
	ahead  []agent.Event
}

// inBubble runs a test in fake time. The packers of chunks, of which a process
// has one, are made before: they have channels.
func inBubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	dir, err := store.OpenDir(t.TempDir(), nil)
	require.NoError(t, err)
	digest, err := store.NewLog(dir).Seal(t.Context(), "", "a", "r", false, nil)
	require.NoError(t, err)
	_, err = store.NewLog(dir).Since(t.Context(), digest, 0)
	require.NoError(t, err)
	synctest.Test(t, test)
}

// countingStore counts the chunks that are read.
type countingStore struct {
	store.Store
	read *atomic.Int64
}

func (s countingStore) Chunk(ctx context.Context, digest string) ([]byte, error) {
	s.read.Add(1)
	return s.Store.Chunk(ctx, digest)
}

func newTheatre(t *testing.T) *theatre {
	dir, err := store.OpenDir(t.TempDir(), nil)
	require.NoError(t, err)
	th := &theatre{fake: &fake{history: silent}, t: t, store: countingStore{dir, &atomic.Int64{}}, asking: func() {}}
	th.describe = func(session, _ string) (*workflowpb.WorkflowExecutionInfo, error) {
		if th.info == nil || session != "a" {
			return nil, serviceerror.NewNotFound("none")
		}
		return th.info, nil
	}
	return th
}

func (th *theatre) client() *Client { return New(th, &Options{Store: th.store}) }

type tailAnswer struct {
	converter.EncodedValue
	open signals.Open
}

func (a tailAnswer) Get(into any) error { *into.(*signals.Open) = a.open; return nil }

func (th *theatre) QueryWorkflow(_ context.Context, _, execution, name string, args ...any) (converter.EncodedValue, error) {
	th.mu.Lock()
	defer th.mu.Unlock()
	th.asked++
	if th.away {
		return nil, serviceerror.NewFailedPrecondition("no poller")
	}
	require.Equal(th.t, signals.Tail.Name, name)
	a := tailAnswer{open: signals.Open{Head: th.head.Digest}}
	if execution == th.info.GetExecution().GetRunId() {
		a.open = signals.OpenOf(th.head.Digest, append(th.all[len(th.all)-th.open:len(th.all):len(th.all)], th.ahead...), args[0].(signals.After))
	}
	th.asking()
	return a, nil
}

// begins begins a run.
func (th *theatre) begins() {
	th.runs++
	th.info = execution(th.t, "a", fmt.Sprintf("run-%d", th.runs), running, agent.Memo{}, nil)
	th.record(agent.Event{Type: agent.RunStarted, Started: &agent.Started{Run: th.run(), Spec: &agent.Spec{}}})
}

func (th *theatre) run() string { return fmt.Sprintf("run-%d", th.runs) }

func (th *theatre) record(e agent.Event) {
	e.Seq, e.Time = int64(len(th.all)+1), start
	th.all, th.open = append(th.all, e), th.open+1
	th.info.HistoryLength += 3
}

// seals seals all but the last events of the tail.
func (th *theatre) seals(but int) {
	n := len(th.all) - but
	if th.open <= but {
		return
	}
	digest, err := store.NewLog(th.store).Seal(context.Background(), th.head.Digest, "a", th.run(), false, th.all[len(th.all)-th.open:n])
	require.NoError(th.t, err)
	th.head = store.Head{V: 1, Version: th.head.Version + 1, Session: "a", Run: th.run(), Status: agent.Running, Digest: digest, Seq: int64(n)}
	th.put()
	th.open = but
	th.info.HistoryLength += 3
}

func (th *theatre) put() { require.NoError(th.t, th.store.PutHead(context.Background(), th.head)) }

// carries goes on in another execution.
func (th *theatre) carries() {
	th.seals(0)
	next := execution(th.t, "a", fmt.Sprintf("%s-%d", th.run(), len(th.all)), running, agent.Memo{}, nil)
	next.FirstRunId = th.run()
	th.info = next
}

// ends ends the run.
func (th *theatre) ends() {
	th.record(agent.Event{Type: agent.RunCompleted, Outcome: &agent.Outcome{Status: agent.Completed}})
	th.seals(0)
	th.head.Status, th.head.Version = agent.Completed, th.head.Version+1
	th.put()
	th.info.Status = completed
}

// wires is what a reader is to get.
func (th *theatre) wires(after int) (lines []string) {
	run := ""
	for i, e := range th.all {
		if e.Started != nil {
			run = e.Started.Run
		}
		if i >= after {
			w, err := e.Wire("a", run)
			require.NoError(th.t, err)
			line, err := json.Marshal(w)
			require.NoError(th.t, err)
			lines = append(lines, string(line))
		}
	}
	return lines
}

// reads reads until the context ends, or the events; an hour at most, of fake time.
func (th *theatre) reads(ctx context.Context, o *EventsOptions) (lines []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	for e, err := range th.client().Events(ctx, "a", o) {
		if err != nil {
			return lines, err
		}
		line, err := json.Marshal(e)
		if err != nil {
			return lines, err
		}
		lines = append(lines, string(line))
	}
	return lines, nil
}

// Whatever happens in a session while somebody reads it, and in whatever moment:
// the reader gets its log.
func TestEventsAreTheLog(t *testing.T) {
	for seed := range uint64(25) {
		inBubble(t, func(t *testing.T) {
			dice, pauses := rand.New(rand.NewPCG(11, seed)), rand.New(rand.NewPCG(12, seed))
			th := newTheatre(t)
			th.begins()
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
					th.record(agent.Event{Type: agent.TurnStarted, Turn: 1})
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
			pass(2 * pollFor)
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
		th.now(func() { th.record(agent.Event{Type: agent.TurnStarted, Turn: 1}) })
		tasks <- 99
		synctest.Wait()
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
				th.record(agent.Event{Type: agent.TurnStarted, Turn: turn})
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
		th.record(agent.Event{Type: agent.TurnStarted, Turn: 1})
		th.seals(0)
		th.record(agent.Event{Type: agent.TurnEnded, Turn: 1})
		th.away = true
		lines, err := th.reads(t.Context(), nil)
		require.ErrorIs(t, err, agent.NoWorker)
		require.Equal(t, th.wires(0)[:2], lines)
		var seqs []int64
		for e, err := range (&Run{client: th.client(), Session: "a", ID: "run-1"}).Follow(t.Context(), 1) {
			if err != nil {
				require.ErrorIs(t, err, agent.NoWorker, "one run's reader decides itself whether to wait")
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
		pass(2 * pollFor)
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
		th.record(agent.Event{Type: agent.TurnStarted, Turn: 1})
		th.record(agent.Event{Type: agent.TurnEnded, Turn: 1})
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
		require.ErrorIs(t, err, agent.Stale)
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
		require.ErrorIs(t, err, agent.NotFound)
		th.begins()
		for _, o := range []EventsOptions{{After: "x"}, {After: "2"}, {After: "2", Follow: true}, {After: "2", Follow: true, UntilEnd: true}} {
			_, err = th.reads(t.Context(), &o)
			var e *agent.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, agent.InvalidInput, e.Code)
			require.Equal(t, "after", e.Path)
		}
		for _, err = range New(th, nil).Events(t.Context(), "a", nil) {
		}
		require.ErrorIs(t, err, agent.NotSetUp)
		_, err = th.reads(t.Context(), &EventsOptions{Follow: true, Live: true})
		require.ErrorIs(t, err, agent.NotSetUp)
		for _, err = range StoredEvents(t.Context(), th.store, "b", "") {
		}
		require.ErrorIs(t, err, agent.NotFound)
		th.ends()
		th.info = nil // it is past its retention
		lines, err := th.reads(t.Context(), &EventsOptions{After: "1", Follow: true, UntilEnd: true})
		require.NoError(t, err)
		require.Equal(t, th.wires(1), lines)
		_, err = th.reads(t.Context(), &EventsOptions{After: "3"})
		require.ErrorIs(t, err, agent.InvalidInput)
		n := 0
		for e, err := range StoredEvents(t.Context(), th.store, "a", "1") {
			require.NoError(t, err)
			require.Equal(t, "2", e.Cursor())
			n++
		}
		require.Equal(t, 1, n)
	})
}
