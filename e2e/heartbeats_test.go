package e2e

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/grpc"

	sdk "go.temporal.io/sdk/client"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/internal/testenv"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/worker"
)

// dialHearing makes a client each of whose requests is told to hear first, by its method
// and with what is asked; an error refuses it.
func dialHearing(t *testing.T, p place, hear func(method string, in any) error) sdk.Client {
	t.Helper()
	o := connection(slog.DiscardHandler)
	o.ConnectionOptions.DialOptions = append(o.ConnectionOptions.DialOptions, grpc.WithChainUnaryInterceptor(
		func(ctx context.Context, method string, in, out any, conn *grpc.ClientConn, call grpc.UnaryInvoker, o ...grpc.CallOption) error {
			if ctx.Err() != nil { // it is not sent
				return ctx.Err()
			}
			if err := hear(method[strings.LastIndexByte(method, '/')+1:], in); err != nil {
				return err
			}
			return call(ctx, method, in, out, conn, o...)
		}))
	c, err := p.Dial(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// A heartbeat is a write at the server, and an action that is billed: a call that takes
// long sends its first after ten seconds.
func TestACallThatTakesLongSendsFewHeartbeats(t *testing.T) {
	t.Parallel()
	s, g := on(t, shared(t)), newGate()
	beats := make(chan time.Time, 10)
	s.temporal = dialHearing(t, shared(t), func(method string, _ any) error {
		if method == "RecordActivityTaskHeartbeat" {
			beats <- time.Now()
		}
		return nil
	})
	s.bounded(t, g, worker.RateLimit{}, 1)
	run := s.queued(t, "think", temporal.Priority{})
	g.next(t)
	begun := time.Now()
	require.GreaterOrEqual(t, (<-beats).Sub(begun), 10*time.Second)
	g.leave <- struct{}{}
	completed(t, run)
}

// A worker that falls silent in a model call is the run's to count, and not the server's:
// the run hears that it was lost, waits, and begins the call anew.
func TestARunCountsTheWorkersThatItsCallLoses(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	s, g := on(t, shared(t)), newGate()
	var silent atomic.Bool
	s.temporal = dialHearing(t, shared(t), func(method string, _ any) error {
		if silent.Load() && (method == "RecordActivityTaskHeartbeat" || strings.HasPrefix(method, "RespondActivityTask")) {
			return serviceerror.NewUnavailable("the network is gone")
		}
		return nil
	})
	s.bounded(t, g, worker.RateLimit{}, 1)
	silent.Store(true)
	run := s.queued(t, "think", temporal.Priority{})
	g.next(t)
	require.Eventually(t, func() bool {
		return slices.ContainsFunc(s.history(t, run.Session, run.ID), func(e *historypb.HistoryEvent) bool { return e.GetActivityTaskTimedOutEventAttributes() != nil })
	}, patience, 100*time.Millisecond)
	silent.Store(false)
	g.next(t)
	g.leave <- struct{}{}
	g.leave <- struct{}{}
	completed(t, run)
	s.replay(t)
}

// dear is a model whose first call tells what it has cost, and then hangs.
type dear struct{ asked atomic.Int64 }

func (*dear) Info(string) model.Info { return model.Info{} }

func (d *dear) Generate(ctx context.Context, _ *model.Request, emit func(model.Delta)) (*model.Reply, error) {
	if d.asked.Add(1) == 1 {
		emit(model.Delta{Text: "Let me", Usage: agent.Usage{Input: 90_000, Output: 50}})
		<-ctx.Done()
		return nil, ctx.Err()
	}
	r := saysText("done")
	r.Usage = agent.Usage{Input: 40, Output: 1}
	return r, nil
}

// What a call has used is in its heartbeats: a worker that is lost takes the call with it, and not what
// it cost.
func TestALostWorkersCallIsCharged(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	s := on(t, shared(t))
	var silent atomic.Bool
	s.temporal = dialHearing(t, shared(t), func(method string, _ any) error {
		ends := strings.HasPrefix(method, "RespondActivityTask")
		if silent.Load() && (ends || method == "RecordActivityTaskHeartbeat") {
			return serviceerror.NewUnavailable("the network is gone")
		}
		if method == "RecordActivityTaskHeartbeat" {
			silent.Store(true) // this one arrives
		}
		return nil
	})
	m := &dear{}
	s.staff(t, m, nil, agent.Definition{Name: "tester"})
	run := s.begin(t, "think", nil)
	require.Eventually(t, func() bool {
		return slices.ContainsFunc(s.history(t, run.Session, run.ID), func(e *historypb.HistoryEvent) bool { return e.GetActivityTaskTimedOutEventAttributes() != nil })
	}, patience, 100*time.Millisecond)
	silent.Store(false)
	out := s.result(t, run)
	require.Equal(t, agent.StatusCompleted, out.Status, "%+v", out.Error)
	require.Equal(t, []any{int64(90_040), int64(51)}, []any{out.Usage.Input, out.Usage.Output})
	s.replay(t)
}

// lossy is a model whose first call has lost as many workers as it may.
type lossy struct{ asked atomic.Int64 }

func (*lossy) Info(string) model.Info { return model.Info{} }

func (l *lossy) Generate(context.Context, *model.Request, func(model.Delta)) (*model.Reply, error) {
	if l.asked.Add(1) == 1 {
		return nil, agent.Errorf(agent.CodeWorkerLost, "the worker was lost")
	}
	return saysText("done"), nil
}

// A run that is suspended since a step keeps losing its workers stands in the inbox until
// somebody resumes it.
func TestTheInboxHasRunsThatLoseTheirWorkers(t *testing.T) {
	t.Parallel()
	s := on(t, shared(t))
	s.staff(t, &lossy{}, nil, agent.Definition{Name: "tester"})
	run := s.begin(t, "go", nil)
	open := s.suspended(t, run)
	inbox := func(f client.InboxOptions) (list []client.InboxItem) {
		for w, err := range s.Inbox(t.Context(), &f) {
			require.NoError(t, err)
			list = append(list, w)
		}
		return list
	}
	for _, f := range []client.InboxOptions{{Session: run.Session}, {Session: run.Session, WaitsFor: string(client.RequestWorkerLost)}} {
		require.Eventually(t, func() bool { return len(inbox(f)) == 1 }, patience, 20*time.Millisecond)
		w := inbox(f)[0]
		require.Equal(t, []any{client.RequestWorkerLost, run.Session, open.ID, agent.CodeWorkerLost}, []any{w.Type, w.Session, w.Suspension, w.Cause})
	}
	require.Empty(t, inbox(client.InboxOptions{Session: run.Session, WaitsFor: string(agent.RequestQuestion)}))
	s.say(t, run, agent.ResumeCommand{})
	require.Equal(t, agent.StatusCompleted, s.result(t, run).Status)
	require.Eventually(t, func() bool { return len(inbox(client.InboxOptions{Session: run.Session})) == 0 }, patience, 20*time.Millisecond)
}
