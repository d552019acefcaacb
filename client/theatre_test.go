package client

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"
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
	// notices makes what a long poll says; nil if it says nothing.
	notices func(ctx context.Context, execution string) func() (*historypb.HistoryEvent, error)
	polls   atomic.Int64
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

// tells makes the server tell of what the session's last execution does, except for one
// notice in a few; zero for all.
func (th *theatre) tells(lost int) {
	th.notices = func(ctx context.Context, execution string) func() (*historypb.HistoryEvent, error) {
		var told int64
		return func() (*historypb.HistoryEvent, error) {
			for {
				th.mu.Lock()
				length, gone := th.info.GetHistoryLength(), execution != th.info.GetExecution().GetRunId() || th.info.GetStatus() != running
				th.mu.Unlock()
				if gone {
					return nil, nil
				}
				if length > told && (lost == 0 || length%int64(lost) > 0) {
					told = length
					return &historypb.HistoryEvent{EventId: length, EventType: enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED}, nil
				}
				select {
				case <-time.After(time.Millisecond): // of fake time
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
		}
	}
}

func (th *theatre) GetWorkflowHistory(ctx context.Context, session, execution string, wait bool, filter enums.HistoryEventFilterType) client.HistoryEventIterator {
	th.polls.Add(1)
	if th.notices == nil {
		return th.fake.GetWorkflowHistory(ctx, session, execution, wait, filter)
	}
	return &events{next: th.notices(ctx, execution)}
}

func (th *theatre) client() *Client { return New(th, &Options{Store: th.store}) }

type tailAnswer struct {
	converter.EncodedValue
	open signals.OpenTail
}

func (a tailAnswer) Get(into any) error { *into.(*signals.OpenTail) = a.open; return nil }

func (th *theatre) QueryWorkflow(_ context.Context, _, execution, name string, args ...any) (converter.EncodedValue, error) {
	th.mu.Lock()
	defer th.mu.Unlock()
	th.asked++
	if th.away {
		return nil, serviceerror.NewFailedPrecondition("no poller")
	}
	require.Equal(th.t, signals.Tail.Name, name)
	a := tailAnswer{open: signals.OpenTail{Head: th.head.Digest}}
	if execution == th.info.GetExecution().GetRunId() {
		a.open = signals.TailOf(th.head.Digest, append(th.all[len(th.all)-th.open:len(th.all):len(th.all)], th.ahead...), args[0].(signals.TailArgs))
	}
	th.asking()
	return a, nil
}

// begins begins a run.
func (th *theatre) begins() {
	th.runs++
	th.info = execution(th.t, "a", fmt.Sprintf("run-%d", th.runs), running, agent.Memo{}, nil)
	th.record(agent.Event{Type: agent.EventRunStarted, Started: &agent.Started{Run: th.run(), Spec: &agent.Spec{}}})
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
	th.head = store.Head{V: 1, Version: th.head.Version + 1, Session: "a", Run: th.run(), Status: agent.StatusRunning, Digest: digest, Seq: int64(n)}
	th.put()
	th.open = but
	th.info.HistoryLength += 3
}

func (th *theatre) put() { require.NoError(th.t, th.store.PutHead(context.Background(), th.head)) }

// carries continues in another execution.
func (th *theatre) carries() {
	th.seals(0)
	next := execution(th.t, "a", fmt.Sprintf("%s-%d", th.run(), len(th.all)), running, agent.Memo{}, nil)
	next.FirstRunId = th.run()
	th.info = next
}

// ends ends the run.
func (th *theatre) ends() {
	th.record(agent.Event{Type: agent.EventRunCompleted, Outcome: &agent.Outcome{Status: agent.StatusCompleted}})
	th.seals(0)
	th.head.Status, th.head.Version = agent.StatusCompleted, th.head.Version+1
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
