package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/internal/testenv"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

// order is an event of the tests: the n-th of a shop.
type order struct {
	Shop int `json:"shop"`
	N    int `json:"n"`
}

func (o order) id() string { return fmt.Sprintf("shop-%d-%d", o.Shop, o.N) }

// orderBook are what a clerk has written down, and how often.
type orderBook struct {
	mu      sync.Mutex
	written map[order]int
}

func (b *orderBook) tool() tool.Tool {
	return tool.New("book", "books an order", func(_ context.Context, _ *tool.Call, o order) (string, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.written[o]++
		return "booked", nil
	}, &tool.Options{Local: true})
}

// clerk books every tenth order that it is told of, and looks at the others.
func clerk(_ context.Context, req *model.Request) *model.Reply {
	if strings.Contains(req.Messages[len(req.Messages)-1].Text(), "You are being stopped") {
		return saysText(`{"summary":"so far"}`)
	}
	for i := len(req.Messages) - 1; i >= 0; i-- {
		m := req.Messages[i]
		if m.Role == agent.RoleTool && m.Parts[0].Result.Status == agent.CallSkipped {
			continue // it asks again
		}
		if m.Role == agent.RoleTool {
			return saysText("booked")
		}
		if m.Note != agent.NoteEvent {
			continue
		}
		_, payload, _ := strings.Cut(m.Text(), ": ")
		var o order
		if err := json.Unmarshal([]byte(payload), &o); err != nil {
			return saysText(err.Error())
		}
		if o.N%10 != 0 {
			return saysText("seen " + o.id())
		}
		return asksFor(agent.Part{Type: agent.PartToolCall, Call: &agent.ToolCall{Tool: "book", Arguments: json.RawMessage(payload)}})
	}
	return saysText("nothing has come")
}

// sell emits the orders of a shop one after the other, each until it is taken.
func (s *stage) sell(ctx context.Context, session string, shop, orders int, taken chan<- order) error {
	for n := range orders {
		o := order{shop, n}
		for {
			_, err := s.Emit(ctx, "orders.new", o, &client.EmitOptions{Session: session, ID: o.id()})
			if err == nil {
				break
			}
			if !errors.Is(err, agent.CodeClosed) && !errors.Is(err, agent.CodeStale) && !errors.Is(err, agent.CodeQueueFull) {
				return err
			}
			select { // what was refused is the shop's to keep, and to try again
			case <-time.After(200 * time.Millisecond):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		taken <- o
	}
	return nil
}

// A daemon that is stopped and started 20 times while 1,000 events arrive handles
// each once, in the order of its sender (HA-89, HA-94, HA-95, HL-110, HL-112).
func TestADaemonHandlesEachEventOnce(t *testing.T) {
	t.Parallel()
	testenv.Long(t)
	const shops, orders, stops = 4, 250, 20
	s := early(t, 1500)
	b := &orderBook{written: map[order]int{}}
	s.startWorker(t, clerk, []tool.Tool{b.tool()}, agent.Definition{Name: "clerk", Tools: []string{"book"}, Daemon: &agent.Daemon{Topics: []string{"orders.new"}, Queue: 200}})
	session := "orders-" + s.queue
	run, err := s.Start(t.Context(), "clerk", "", &client.StartOptions{Session: session})
	require.NoError(t, err)

	taken, failed := make(chan order, shops*orders), make(chan error, shops)
	var selling sync.WaitGroup
	for shop := range shops {
		selling.Go(func() {
			if err := s.sell(t.Context(), session, shop, orders, taken); err != nil {
				failed <- err
			}
		})
	}
	for stop := range stops {
		for range shops * orders / (stops + 1) {
			select {
			case <-taken:
			case err := <-failed:
				require.NoError(t, err)
			}
		}
		_, err := run.Stop(t.Context(), fmt.Sprintf("stop %d", stop), &client.StopOptions{Deadline: 5 * time.Second})
		require.NoError(t, err)
		require.Equal(t, agent.StatusStopped, s.result(t, run).Status)
		run, err = s.Start(t.Context(), "clerk", "", &client.StartOptions{Session: session})
		require.NoError(t, err)
	}
	selling.Wait()
	close(failed)
	require.NoError(t, <-failed)
	s.idles(t, run)
	require.Equal(t, orders, s.inOrder(t, session, shops))
	require.Len(t, b.written, shops*orders/10)
	for o, n := range b.written {
		require.Equal(t, 1, n, "%+v was booked", o)
	}
	_, count := s.intact(t, session)
	require.Equal(t, stops+1, count[agent.EventRunStarted])
}

// idles waits until a daemon has nothing to do any more.
func (s *stage) idles(t *testing.T, run *client.Run) (st agent.RunStatus) {
	t.Helper()
	require.Eventually(t, func() bool {
		var err error
		st, err = run.Status(t.Context())
		require.NoError(t, err)
		return st.Status == agent.StatusSuspended && st.Suspension.Cause == "idle" && st.QueuedEvents.Used == 0
	}, patience, 5*time.Millisecond)
	return st
}

// inOrder checks that the model was told of the orders of each shop in their order,
// each once, and returns how many there are of each.
func (s *stage) inOrder(t *testing.T, session string, shops int) (each int) {
	t.Helper()
	messages, err := s.Transcript(t.Context(), session)
	require.NoError(t, err)
	next := make([]int, shops)
	for _, m := range messages {
		if m.Note != agent.NoteEvent {
			continue
		}
		var shop, n int
		_, err := fmt.Sscanf(m.ID, "shop-%d-%d", &shop, &n)
		require.NoError(t, err)
		require.Equal(t, next[shop], n, "of shop %d", shop)
		next[shop]++
	}
	for _, n := range next {
		require.Equal(t, next[0], n)
	}
	return next[0]
}

// What a daemon had taken when it was terminated is dealt with by its next run, and
// what it was in the middle of goes on.
func TestATerminatedDaemonLosesNothing(t *testing.T) {
	t.Parallel()
	s := on(t, shared(t))
	hangs := make(chan struct{})
	brain := func(ctx context.Context, req *model.Request) *model.Reply {
		select {
		case <-hangs:
		case <-ctx.Done():
		}
		return clerk(ctx, req)
	}
	s.startWorker(t, brain, nil, agent.Definition{Name: "clerk", Daemon: &agent.Daemon{}})
	session := "orders-" + s.queue
	run, err := s.Start(t.Context(), "clerk", "", &client.StartOptions{Session: session})
	require.NoError(t, err)
	for n := range 3 {
		_, err := s.Emit(t.Context(), "orders.new", order{0, n + 1}, &client.EmitOptions{Session: session, ID: fmt.Sprintf("shop-0-%d", n)})
		require.NoError(t, err)
	}
	require.NoError(t, s.temporal.TerminateWorkflow(t.Context(), session, run.ID, "a test"))
	close(hangs)
	for range 25 { // starts that come to nothing don't hide it
		run, err = s.Start(t.Context(), "nobody", "go", &client.StartOptions{Session: session})
		require.NoError(t, err)
		require.Equal(t, agent.StatusFailed, s.result(t, run).Status)
	}
	run, err = s.Start(t.Context(), "clerk", "", &client.StartOptions{Session: session})
	require.NoError(t, err)
	for n := range 3 { // its sender has not heard that they were taken
		_, err := s.Emit(t.Context(), "orders.new", order{0, n + 1}, &client.EmitOptions{Session: session, ID: fmt.Sprintf("shop-0-%d", n)})
		require.NoError(t, err)
	}
	s.idles(t, run)
	require.Equal(t, 3, s.inOrder(t, session, 1))
	s.say(t, run, agent.CancelCommand{}) // it would hear what others emit
	s.result(t, run)
}

// What waits for a paused daemon outlives all that Temporal knows of it; the next run
// says that what else there was is lost.
func TestWhatWaitsOutlivesTheHistory(t *testing.T) {
	t.Parallel()
	def := agent.Definition{Daemon: &agent.Daemon{Topics: []string{"orders.new"}}}
	s := setup(t, def, testsuite.NewScript(testsuite.Reply{Text: "seen", Repeat: 9}))
	run := s.begin(t, "", nil)
	s.suspended(t, run)
	s.say(t, run, agent.PauseCommand{})
	for n := range 2 {
		s.say(t, run, agent.EmitCommand{CommandHeader: agent.CommandHeader{ID: fmt.Sprintf("shop-0-%d", n)}, Topic: "orders.new"})
	}
	require.Eventually(t, func() bool {
		head, err := s.store.Head(t.Context(), run.Session)
		require.NoError(t, err)
		inbox, err := store.NewLog(s.store).Backlog(t.Context(), head)
		return err == nil && len(inbox.Events) == 2
	}, patience, 10*time.Millisecond)
	require.NoError(t, s.temporal.TerminateWorkflow(t.Context(), run.Session, run.ID, "a test"))
	s.forget(t, run.Session, []string{run.ID})
	next := s.begin(t, "", &client.StartOptions{Session: run.Session})
	s.idles(t, next)
	require.Equal(t, 2, s.inOrder(t, run.Session, 1))
	head, err := s.store.Head(t.Context(), run.Session)
	require.NoError(t, err)
	view, err := store.NewLog(s.store).View(t.Context(), head.Digest)
	require.NoError(t, err)
	lost := ""
	for _, e := range view.Events() {
		if e.Started != nil {
			lost = e.Started.Unrecovered
		}
	}
	require.Contains(t, lost, run.ID)
	s.say(t, next, agent.CancelCommand{})
	s.result(t, next)
}

// A daemon is found by what it hears, idle or not, and by every topic where it hears
// all; its history is kept. It tells every daemon of the server, and so goes alone.
func TestEmitFindsDaemons(t *testing.T) {
	s := setup(t, agent.Definition{Daemon: &agent.Daemon{Every: agent.Duration(time.Hour)}}, testsuite.NewScript(testsuite.Reply{Text: "seen", Repeat: 3}))
	run := s.begin(t, "", nil)
	idle := s.suspended(t, run)
	require.Equal(t, agent.SuspensionParked, idle.Kind)
	require.Equal(t, agent.InitiatorSelf, idle.Initiator)
	require.Equal(t, "idle", idle.Cause)
	require.Equal(t, agent.OwnerRuntime, idle.Owner)
	require.Len(t, idle.Conditions.Any, 2)
	topic := "found." + s.queue
	require.Eventually(t, func() bool { // the listing is behind by a moment
		sent, err := s.Emit(t.Context(), topic, nil, &client.EmitOptions{ID: "once"})
		require.NoError(t, err)
		return sent.Accepted > 0
	}, patience, time.Second/2)
	s.idles(t, run)
	s.say(t, run, agent.SendCommand{Text: "and now?"})
	s.idles(t, run)
	s.say(t, run, agent.StopCommand{})
	require.Equal(t, agent.StatusStopped, s.result(t, run).Status)
	s.keep(t, "daemon", run.Session, run.ID)
	_, err := s.Emit(t.Context(), topic, nil, &client.EmitOptions{Session: run.Session})
	require.ErrorIs(t, err, agent.CodeClosed)
	require.ErrorContains(t, err, "start the next one and emit again, with the same id")
}

// Without an input nothing but a daemon begins.
func TestOnlyADaemonBeginsWithoutAnInput(t *testing.T) {
	t.Parallel()
	s := setup(t, agent.Definition{}, testsuite.NewScript())
	_, out := s.run(t, "", nil)
	require.Equal(t, agent.StatusFailed, out.Status)
	require.ErrorIs(t, out.Error, agent.CodeInvalidInput)
	require.Equal(t, "input", out.Error.Path)
}
