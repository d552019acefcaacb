package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	temporal "go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/worker"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/live"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// patience is how long a test waits for what should come at once: on a machine that builds
// something else beside many tests, that may be late.
const patience = 6 * time.Minute

// stage is a real server with one worker of one agent, "tester".
type stage struct {
	*client.Client
	temporal temporal.Client
	addr     string
	queue    string
	dir      store.Store
	store    store.Store // what workers are given: dir, or something around it
	said     chan string // what models say, as they say it
	hub      *live.Hub
	worker   *worker.Worker
	// begun tells of runs, where somebody listens.
	begun chan struct{}
	// migrations are given to workers that start from now on.
	migrations []activities.Migration
}

func setup(t *testing.T, def agent.Definition, script *testsuite.Script, tools ...tool.Tool) *stage {
	t.Helper()
	st := on(t, shared(t))
	t.Cleanup(func() { st.replay(t) })
	st.work(t, def, script, tools...)
	return st
}

// on is a stage without a worker.
func on(t *testing.T, s place) *stage {
	t.Helper()
	c := dial(t, s)
	dir := stored(t, t.TempDir())
	st := &stage{temporal: c, addr: s.Addr(), queue: strings.ReplaceAll(t.Name(), "/", "-") + "-" + uuid.NewString()[:8], dir: dir, store: dir, said: make(chan string, 10_000), hub: live.NewHub()}
	st.Client = client.New(c, &client.Options{TaskQueue: st.queue, Store: dir, Live: st.hub})
	return st
}

// work starts a worker, which stops with the test at the latest.
func (s *stage) work(t *testing.T, def agent.Definition, script *testsuite.Script, tools ...tool.Tool) *worker.Worker {
	t.Helper()
	def.Name, def.Model = "tester", "script"
	for _, tl := range tools {
		def.Tools = append(def.Tools, tl.Spec().Name)
	}
	w, err := worker.New(s.temporal, &worker.Options{
		TaskQueue: s.queue, Agents: []agent.Definition{def}, Tools: tools, Store: s.store, Migrations: s.migrations, Logger: zap.NewNop(),
		Models: map[string]model.Model{"script": script}, Temporal: stopsSoon, Live: s, ExportKeys: exportKeys,
	})
	require.NoError(t, err)
	require.NoError(t, w.Start(t.Context()))
	t.Cleanup(w.Stop)
	s.worker = w
	return w
}

// stopsSoon makes a worker stop without waiting long for what it is doing.
func stopsSoon(_ worker.Lane, o *sdk.Options) { o.WorkerStopTimeout = time.Second }

// Publish keeps what a model says for whoever waits for it.
func (s *stage) Publish(e live.Event) {
	s.hub.Publish(e)
	if e.Type != agent.EventDeltaText {
		return
	}
	select {
	case s.said <- e.Data.Text:
	default:
	}
}

// run runs the agent to its end.
func (s *stage) run(t *testing.T, text string, o *client.StartOptions) (*client.Run, *agent.Outcome) {
	t.Helper()
	return s.runFor(t, patience, text, o)
}

func (s *stage) runFor(t *testing.T, most time.Duration, text string, o *client.StartOptions) (*client.Run, *agent.Outcome) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), most)
	defer cancel()
	run, err := s.Start(ctx, "tester", text, o)
	require.NoError(t, err)
	out, err := run.Result(ctx)
	require.NoError(t, err)
	return run, out
}

// history lists the events of an execution; the first of a run where none is named.
func (s *stage) history(t *testing.T, session, execution string) []*historypb.HistoryEvent {
	t.Helper()
	var out []*historypb.HistoryEvent
	events := s.temporal.GetWorkflowHistory(t.Context(), session, execution, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		require.NoError(t, err)
		out = append(out, e)
	}
	return out
}

// log reads what is stored.
func (s *stage) log() *store.Log { return store.NewLog(s.dir) }

func echo(o *tool.Options) tool.Tool {
	type in struct {
		Text string `json:"text"`
	}
	return tool.New("echo", "says it again", func(_ context.Context, _ *tool.Call, in in) (string, error) { return in.Text, nil }, o)
}

func call(tool string, arguments map[string]any) []testsuite.Call {
	return []testsuite.Call{{Tool: tool, Arguments: arguments}}
}
