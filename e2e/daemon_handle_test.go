package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/model"
)

// A daemon is started, triggered, looked at, stopped and resumed by its handle. Of 300 triggers at a
// capacity of 256, 256 wait and 44 are refused; those that wait outlive a stop, and are handled in the
// order in which they came (HA-94).
func TestADaemonsHandle(t *testing.T) {
	t.Parallel()
	const triggers, capacity = 300, 256
	s := on(t, shared(t))
	// The first event that the model sees is cut short by a stop.
	first, seen := make(chan struct{}), make(chan struct{}, 1)
	brain := func(ctx context.Context, req *model.Request) *model.Reply {
		select {
		case seen <- struct{}{}:
		default:
		}
		select {
		case <-first:
		case <-ctx.Done():
		}
		return clerk(ctx, req)
	}
	s.startWorker(t, brain, nil, agent.Definition{Name: "clerk", Daemon: &agent.Daemon{Topics: []string{"orders.new"}}})
	d, err := s.StartDaemon(t.Context(), "clerk", "", &client.StartOptions{Session: "orders-" + s.queue})
	require.NoError(t, err)
	run, err := s.Get(t.Context(), d.Session)
	require.NoError(t, err)
	s.idles(t, run)
	at := s.snapshot(t, d)
	require.Equal(t, client.DaemonSnapshot{Run: run.ID, Status: agent.StatusSuspended, QueueCapacity: capacity, Suspension: at.Suspension}, at)
	require.Equal(t, "orders.new", at.Suspension.Conditions.Any[0].Event.Topic)

	trigger := func(n int) error {
		o := order{0, n + 1} // n%10 == 0 would book it
		return d.Trigger(t.Context(), "orders.new", o, &client.TriggerOptions{ID: fmt.Sprintf("shop-0-%d", n)})
	}
	_, err = run.Pause(t.Context(), "the shop closes", nil)
	require.NoError(t, err)
	refused := 0
	for n := range triggers {
		if err := trigger(n); err != nil {
			require.ErrorIs(t, err, agent.CodeQueueFull)
			require.GreaterOrEqual(t, n, capacity)
			refused++
		}
	}
	require.Equal(t, triggers-capacity, refused)
	require.NoError(t, trigger(0), "it is the same event, and waits already")
	require.Equal(t, capacity, s.snapshot(t, d).PendingEvents)

	// A resume removes the hold. Then the daemon works on one event, and the others wait.
	run, err = d.Resume(t.Context(), nil)
	require.NoError(t, err)
	<-seen
	at = s.snapshot(t, d)
	require.Equal(t, client.DaemonSnapshot{
		Run: run.ID, Status: agent.StatusRunning, PendingEvents: capacity - 1, QueueCapacity: capacity, Event: &agent.HandledEvent{ID: "shop-0-0", Topic: "orders.new"},
	}, at)

	out, err := d.Stop(t.Context(), "the shop moves", &client.StopOptions{Deadline: 5 * time.Second})
	require.NoError(t, err)
	require.Equal(t, agent.StatusStopped, out.Status)
	at = s.snapshot(t, d)
	require.Equal(t, agent.StatusStopped, at.Status)
	require.Equal(t, capacity-1, at.PendingEvents)
	require.ErrorIs(t, trigger(capacity), agent.CodeClosed)
	again, err := d.Stop(t.Context(), "again", nil)
	require.NoError(t, err)
	require.Equal(t, out.Run, again.Run)

	close(first)
	next, err := s.Daemon(d.Session).Resume(t.Context(), nil) // of another process, which knows only the session
	require.NoError(t, err)
	require.NotEqual(t, run.ID, next.ID)
	for n := capacity; n < triggers; n++ { // what was refused is triggered again, with the same id
		require.Eventually(t, func() bool { return trigger(n) == nil }, patience, 20*time.Millisecond)
	}
	s.idles(t, next)
	require.Equal(t, triggers, s.inOrder(t, d.Session, 1))
	same, err := d.Resume(t.Context(), nil) // it has no hold and stays idle
	require.NoError(t, err)
	require.Equal(t, next.ID, same.ID)
	require.Equal(t, agent.StatusSuspended, s.snapshot(t, d).Status)
	_, err = d.Stop(t.Context(), "done", nil)
	require.NoError(t, err)
}

func (s *stage) snapshot(t *testing.T, d *client.Daemon) client.DaemonSnapshot {
	t.Helper()
	at, err := d.Snapshot(t.Context())
	require.NoError(t, err)
	return at
}
