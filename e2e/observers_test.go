package e2e

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/observe"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// eventKeeper keeps the events that it receives, by session, in JSON.
type eventKeeper struct {
	mu     sync.Mutex
	events map[string][]string
	gaps   []observe.Gap
}

func (r *eventKeeper) Event(_ context.Context, e observe.RunEvent) {
	raw, err := json.Marshal(e.Event)
	if err != nil {
		panic(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.events == nil {
		r.events = map[string][]string{}
	}
	r.events[e.Session] = append(r.events[e.Session], string(raw))
}

func (r *eventKeeper) Gap(_ context.Context, g observe.Gap) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gaps = append(r.gaps, g)
}

// of returns what it has of a session.
func (r *eventKeeper) of(session string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.events[session]
}

// stuck is an observer that returns from an event only when its context ends.
type stuck struct{ eventKeeper }

func (r *stuck) Event(ctx context.Context, e observe.RunEvent) {
	r.eventKeeper.Event(ctx, e)
	<-ctx.Done()
}

// broken is an observer that panics at every event.
type broken struct{ eventKeeper }

func (r *broken) Event(ctx context.Context, e observe.RunEvent) {
	r.eventKeeper.Event(ctx, e)
	panic("no")
}

// logged is what is stored of a session, event by event.
func (s *stage) logged(t *testing.T, session string) (lines []string) {
	t.Helper()
	head, err := s.dir.Head(t.Context(), session)
	require.NoError(t, err)
	view, err := s.log().View(t.Context(), head.Digest)
	require.NoError(t, err)
	for _, e := range view.Events() {
		raw, err := json.Marshal(e)
		require.NoError(t, err)
		lines = append(lines, string(raw))
	}
	return lines
}

// observed starts a worker of an agent that asks, and otherwise uses the tool echo once. The audit may
// be nil.
func (s *stage) observed(t *testing.T, audit observe.Auditor, list ...observe.Observer) *worker.Worker {
	t.Helper()
	brain := modelFunc(func(_ context.Context, r *model.Request) *model.Reply {
		switch asks := r.Messages[0].Text() == "ask"; {
		case replies(r) > 0:
			return saysText("done")
		case asks:
			return callsTool(agent.AskUserTool, `{"question":"Which one?"}`)
		}
		return callsTool("echo", `{"text":"hello"}`)
	})
	return s.open(t, &worker.Options{
		TaskQueue: s.queue, Agents: []agent.Definition{{Name: "tester", Model: "script", Tools: []string{"echo", agent.AskUserTool}}}, Tools: []tool.Tool{echo(nil)},
		Store: s.store, Logger: zap.NewNop(), Temporal: stopsSoon, Models: map[string]model.Model{"script": brain}, Audit: audit, Observers: list,
	})
}

// An observer that hangs and one that panics delay no run and no other observer, which
// receives the events of two runs each in order and as they are stored. The worker stops all
// the same, and says to the hanging one what it lacks (OA-110).
func TestAHangingObserverDelaysNoRun(t *testing.T) {
	t.Parallel()
	s := on(t, shared(t))
	hanging, panics, other := &stuck{}, &broken{}, &eventKeeper{}
	w := s.observed(t, nil, hanging, panics, other)
	var runs []*client.Run
	for range 2 {
		run, err := s.Start(t.Context(), "tester", "go", nil)
		require.NoError(t, err)
		runs = append(runs, run)
	}
	for _, run := range runs {
		require.Equal(t, agent.StatusCompleted, s.rest(t, run).Status)
		soon, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		err := w.DrainSession(soon, run.Session)
		cancel()
		require.ErrorIs(t, err, agent.CodeTimeout)
		require.ErrorContains(t, err, "*e2e.stuck has ")
		stored := s.logged(t, run.Session)
		require.Eventually(t, func() bool {
			return len(other.of(run.Session)) == len(stored) && len(panics.of(run.Session)) == len(stored)
		}, patience, time.Millisecond)
		require.Equal(t, stored, other.of(run.Session))
		require.Equal(t, stored, panics.of(run.Session))
	}
	w.Stop()
	require.NoError(t, w.Drain(t.Context()))
	got, lost := 0, int64(0)
	for _, run := range runs {
		got += len(hanging.of(run.Session))
	}
	require.Equal(t, 1, got)
	for _, g := range hanging.gaps {
		require.EqualValues(t, len(s.logged(t, g.Session)), g.To)
		require.Equal(t, g.Events, g.To-g.From+1)
		lost += g.Events
	}
	require.EqualValues(t, len(s.logged(t, runs[0].Session))+len(s.logged(t, runs[1].Session))-1, lost)
}

// A worker that continues a run replays its history, and observes none of it: an observer of
// both workers has received each event once, and in order (OA-110).
func TestAReplayIsNotObserved(t *testing.T) {
	t.Parallel()
	s := on(t, shared(t))
	o := &eventKeeper{}
	first := s.observed(t, nil, o)
	run, err := s.Start(t.Context(), "tester", "ask", nil)
	require.NoError(t, err)
	rest := s.suspended(t, run)
	first.Stop() // it delivers what waits
	before := len(o.of(run.Session))
	second := s.observed(t, nil, o)
	_, err = s.Answer(t.Context(), rest.Requests[0], "the red one", nil)
	require.NoError(t, err)
	require.Equal(t, agent.StatusCompleted, s.rest(t, run).Status)
	require.NoError(t, second.DrainSession(t.Context(), run.Session))
	stored := s.logged(t, run.Session)
	require.Equal(t, stored, o.of(run.Session))
	require.Positive(t, before)
	require.Less(t, before, len(stored))
	require.Empty(t, o.gaps)
}

// The users' kit drains the observers of a worker on a real server.
func TestTheKitDrains(t *testing.T) {
	t.Parallel()
	o := &eventKeeper{}
	env := testsuite.New(t, &testsuite.Options{
		Worker: &worker.Options{Agents: []agent.Definition{{Name: "tester", Model: "m"}}, Observers: []observe.Observer{o}},
		Model:  testsuite.NewScript(testsuite.Reply{Text: "done"}), Server: dial(t, shared(t)),
	})
	out := env.Start("tester", "go", nil).Completed()
	env.Drain()
	require.Len(t, o.of(out.Session), int(out.Seq))
}
