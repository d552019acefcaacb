package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.temporal.io/sdk/worker"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/internal/testenv"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// stalled is a store that can be told to hang. If deaf, it does not heed its context
// either.
type stalled struct {
	store.Store
	gate atomic.Pointer[chan struct{}]
	deaf bool
	hung atomic.Int64 // calls that waited, or do
}

// hang makes every later call wait until the returned function is called.
func (s *stalled) hang() (goOn func()) {
	gate := make(chan struct{})
	s.gate.Store(&gate)
	return func() { s.gate.Store(nil); close(gate) }
}

func (s *stalled) wait(ctx context.Context) error {
	gate, done := s.gate.Load(), ctx.Done()
	if gate == nil {
		return nil
	}
	if s.deaf {
		done = nil
	}
	s.hung.Add(1)
	select {
	case <-*gate:
		return nil
	case <-done:
		return ctx.Err()
	}
}

func (s *stalled) Head(ctx context.Context, session string) (store.Head, error) {
	if err := s.wait(ctx); err != nil {
		return store.Head{}, err
	}
	return s.Store.Head(ctx, session)
}

func (s *stalled) PutChunk(ctx context.Context, digest string, data []byte) error {
	if err := s.wait(ctx); err != nil {
		return err
	}
	return s.Store.PutChunk(ctx, digest, data)
}

// obeys is a model that does what its run was begun with, or what its tool returned: to ask, to block, or to
// say something.
func obeys(_ context.Context, req *model.Request) *model.Reply {
	last := lastSaid(req)
	text := last.Text()
	if r := last.Parts[0].Result; r != nil {
		text = r.Text
	}
	for _, do := range []string{agent.AskUserTool, "block"} {
		if strings.HasPrefix(text, do) {
			return asksFor(agent.Part{Type: agent.PartToolCall, Call: &agent.ToolCall{ProviderID: "1", Tool: do, Arguments: []byte(`{"question":"well?"}`)}})
		}
	}
	return saysText("done")
}

// lanes starts a worker whose lanes have so many slots; zero is Temporal's default. Its model obeys.
func (s *stage) lanes(t *testing.T, slots map[worker.Lane]int, tools ...tool.Tool) {
	t.Helper()
	s.lanesOf(t, obeys, slots, tools...)
}

func (s *stage) lanesOf(t *testing.T, m modelFunc, slots map[worker.Lane]int, tools ...tool.Tool) {
	t.Helper()
	def := agent.Definition{Name: "tester", Model: "brain", Tools: []string{agent.AskUserTool}}
	for _, tl := range tools {
		def.Tools = append(def.Tools, tl.Spec().Name)
	}
	w, err := worker.New(s.temporal, &worker.Options{
		TaskQueue: s.queue, Store: s.store, Logger: zap.NewNop(), Agents: []agent.Definition{def}, Tools: tools, Models: map[string]model.Model{"brain": m},
		Temporal: func(l worker.Lane, o *sdk.Options) {
			stopsSoon(l, o)
			if n := slots[l]; l == worker.LaneRuns && n > 0 {
				o.MaxConcurrentWorkflowTaskExecutionSize, o.MaxConcurrentLocalActivityExecutionSize = n, n
			} else if n > 0 {
				o.MaxConcurrentActivityExecutionSize = n
			}
		},
	})
	require.NoError(t, err)
	require.NoError(t, w.Start(t.Context()))
	t.Cleanup(w.Stop)
}

// told starts runs that are told to do the same.
func (s *stage) told(t *testing.T, n int, what string) (runs []*client.Run) {
	t.Helper()
	for i := range n {
		run, err := s.Start(t.Context(), "tester", fmt.Sprint(what, " ", i), nil)
		require.NoError(t, err)
		runs = append(runs, run)
	}
	return runs
}

// waitsIn waits until a run has a step that stands in a task queue.
func (s *stage) waitsIn(t *testing.T, run *client.Run, lane worker.Lane) {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, e := range s.history(t, run.Session, run.ID) {
			if e.GetActivityTaskScheduledEventAttributes().GetTaskQueue().GetName() == lane.Queue(s.queue) {
				return true
			}
		}
		return false
	}, patience, 20*time.Millisecond)
}

// While the store hangs, runs that begin hold their process for two seconds at most: who
// asks another run is answered, and they begin when the store is back.
func TestAStoreThatHangsKeepsNobodyElseWaiting(t *testing.T) {
	t.Parallel()
	for name, deaf := range map[string]bool{"and heeds its context": false, "and does not": true} {
		t.Run(name, func(t *testing.T) {
			const slots, beginning = 4, 24
			s := on(t, shared(t))
			t.Cleanup(func() { s.replay(t) })
			st := &stalled{Store: s.dir, deaf: deaf}
			s.store = st
			s.lanes(t, map[worker.Lane]int{worker.LaneRuns: slots})
			rests := s.told(t, 1, agent.AskUserTool)[0]
			s.suspended(t, rests)
			goOn := st.hang()
			late := s.told(t, beginning, "go")
			require.Eventually(t, func() bool { return st.hung.Load() >= slots }, patience, time.Millisecond)
			ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second)
			defer cancel()
			v, err := rests.Status(ctx)
			require.NoError(t, err)
			require.Equal(t, agent.StatusSuspended, v.Status)
			goOn()
			completed(t, late...)
		})
	}
}

// Tools that are as busy as they may be keep no other run from asking its model and from
// being stored. A call beyond the lane's slots waits on the lane's queue, and is made when
// one is free.
func TestBusyToolsKeepNoRunWaiting(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	const slots = 2
	s := on(t, shared(t))
	t.Cleanup(func() { s.replay(t) })
	begun, leave := make(chan struct{}, 10), make(chan struct{})
	s.lanes(t, map[worker.Lane]int{worker.LaneTools: slots}, tool.New("block", "waits", func(context.Context, *tool.Call, map[string]any) (string, error) {
		begun <- struct{}{}
		<-leave
		return "over", nil
	}, nil))
	busy := s.told(t, slots, "block")
	for range slots {
		<-begun
	}
	waits := s.told(t, 2*slots, "block")
	for _, run := range waits {
		s.waitsIn(t, run, worker.LaneTools)
	}
	completed(t, s.told(t, 3, "go")...)
	asks := s.told(t, 1, agent.AskUserTool)[0]
	require.Equal(t, agent.SuspensionInputRequired, s.suspended(t, asks).Kind)
	require.Empty(t, begun, "the lane has no slot for a call that waits")
	close(leave)
	completed(t, append(busy, waits...)...)
}

// Runs that can't be stored, since the store hangs, keep no other from asking its model
// and calling its tools.
func TestAHangingStoreKeepsNoModelFromBeingAsked(t *testing.T) {
	t.Parallel()
	const slots = 2
	s := on(t, shared(t))
	t.Cleanup(func() { s.replay(t) })
	st := &stalled{Store: s.dir}
	s.store = st
	begun, leave := make(chan struct{}, 10), make(chan string)
	s.lanes(t, map[worker.Lane]int{worker.LaneStores: slots}, tool.New("block", "waits", func(context.Context, *tool.Call, map[string]any) (string, error) {
		begun <- struct{}{}
		return <-leave, nil
	}, nil))
	going := s.told(t, 1, "block")[0]
	<-begun
	asking := s.told(t, 2*slots, agent.AskUserTool)
	goOn := st.hang()
	more := s.told(t, 2*slots, agent.AskUserTool)
	s.waitsIn(t, more[len(more)-1], worker.LaneStores)
	leave <- "block again"
	select {
	case <-begun: // the model was asked, and its tool is called
	case <-time.After(patience):
		require.Fail(t, "the model is not asked")
	}
	goOn()
	for _, run := range append(asking, more...) {
		require.Equal(t, agent.SuspensionInputRequired, s.suspended(t, run).Kind)
	}
	leave <- "over"
	completed(t, going)
}

// Models that are as busy as they may be keep no tool from being called, and no run from being held and
// stored.
func TestBusyModelsKeepNoToolWaiting(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	const slots = 2
	s := on(t, shared(t))
	t.Cleanup(func() { s.replay(t) })
	asked, leave, called := make(chan struct{}, 10), make(chan struct{}), make(chan struct{}, 1)
	s.lanesOf(t, func(ctx context.Context, req *model.Request) *model.Reply {
		if strings.HasPrefix(lastSaid(req).Text(), "think") {
			asked <- struct{}{}
			<-leave
		}
		return obeys(ctx, req)
	}, map[worker.Lane]int{worker.LaneModels: slots}, tool.New("block", "returns", func(context.Context, *tool.Call, map[string]any) (string, error) {
		called <- struct{}{}
		return "over", nil
	}, &tool.Options{Approval: &agent.ToolApproval{}}))
	approved := s.told(t, 1, "block")[0]
	q := s.suspended(t, approved).Requests[0]
	busy := s.told(t, slots, "think")
	for range slots {
		<-asked
	}
	waits := s.told(t, 2*slots, "think")
	for _, run := range waits {
		s.waitsIn(t, run, worker.LaneModels)
	}
	s.say(t, approved, agent.ApproveCommand{Request: q.ID})
	select {
	case <-called:
	case <-time.After(patience):
		require.Fail(t, "the tool is not called")
	}
	s.waitsIn(t, approved, worker.LaneModels)
	_, err := approved.Interrupt(t.Context(), "a break", nil)
	require.NoError(t, err)
	require.Equal(t, agent.SuspensionHeld, s.suspended(t, approved).Kind)
	require.Empty(t, asked, "the lane has no slot for a call that waits")
	close(leave)
	_, err = approved.Resume(t.Context(), nil)
	require.NoError(t, err)
	completed(t, append(append(busy, waits...), approved)...)
}
