package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/flow"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// A cancel, or a stop whose time is over, cuts off a step of a flow. What it returns is half a result, so the
// step is unknown, and a fork does not take the half for the whole (PA-38).
func TestAForkTakesNoHalfResult(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*testing.T, *client.Run){
		"a cancel": func(t *testing.T, run *client.Run) {
			_, err := run.Cancel(t.Context(), "", nil)
			require.NoError(t, err)
		},
		"a stop": func(t *testing.T, run *client.Run) {
			_, err := run.Stop(t.Context(), "", &client.StopOptions{Deadline: 2 * time.Second})
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun := make(chan string, 2)
			f := flow.New("payer", func(c flow.Context, _ string) (string, error) {
				return flow.Do(c, "pay", func(ctx context.Context, k *tool.Call) (string, error) {
					begun <- k.Key
					<-ctx.Done()
					return "half", nil
				}, nil)
			}, nil)
			s := on(t, shared(t))
			t.Cleanup(func() { s.replay(t) })
			s.worker = s.open(t, &worker.Options{TaskQueue: s.queue, Flows: []flow.Flow{f}, Store: s.store, Logger: zap.NewNop(), Temporal: stopsSoon})
			run, err := s.Start(t.Context(), "payer", "go", nil)
			require.NoError(t, err)
			<-begun
			end(t, run)
			s.rest(t, run)
			r := s.results(t, run)
			require.Len(t, r, 1)
			require.Equal(t, []any{agent.CallUnknown, "half"}, []any{r[0].Status, r[0].Text})
			if name == "a stop" {
				return
			}
			next, err := s.Fork(t.Context(), run.Session, nil)
			require.NoError(t, err)
			again, err := next.Start(t.Context())
			require.NoError(t, err)
			out := s.rest(t, again)
			require.NotEqual(t, "half", out.Text, "%+v", out)
			require.Empty(t, begun, "nobody knows whether it was made")
		})
	}
}

// Temporal cancels a whole tree: the child gets its parent's cancel and its own. That is no second cancel, and
// its call has its grace (PA-38).
func TestABatchCancelsATree(t *testing.T) {
	t.Parallel()
	begun, cancelled, back := make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	f := flow.New("inner", func(c flow.Context, _ string) (string, error) {
		return flow.Do(c, "pay", func(ctx context.Context, _ *tool.Call) (string, error) {
			begun <- struct{}{}
			<-ctx.Done()
			close(cancelled)
			<-back
			return "paid", nil
		}, nil)
	}, nil)
	s := on(t, shared(t))
	t.Cleanup(func() { s.replay(t) })
	s.worker = s.open(t, &worker.Options{TaskQueue: s.queue, Flows: []flow.Flow{below("outer", "inner"), f}, Store: s.store, Logger: zap.NewNop(), Temporal: stopsSoon})
	run, err := s.Start(t.Context(), "outer", "go", nil)
	require.NoError(t, err)
	<-begun
	child := s.here(t, run.Session+"/inner-1")
	require.NoError(t, s.temporal.CancelWorkflow(t.Context(), run.Session, ""))
	<-cancelled
	require.NoError(t, s.temporal.CancelWorkflow(t.Context(), child.Session, ""))
	st, err := child.Status(t.Context()) // answered behind the cancellation
	require.NoError(t, err)
	require.Equal(t, agent.ReasonCancelling, st.Reason)
	close(back)
	require.Equal(t, agent.StatusCancelled, s.rest(t, run).Status)
	s.rest(t, child)
	r := s.results(t, child)
	require.Len(t, r, 1)
	require.Equal(t, "paid", r[0].Text)
}
