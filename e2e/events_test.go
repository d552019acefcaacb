package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/devserver"
	"github.com/fermata-agents/fermata/internal/testenv"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// wires is a session's whole log as readers are to get it.
func (s *stage) wires(t *testing.T, session string) (lines []string) {
	t.Helper()
	head, err := s.dir.Head(t.Context(), session)
	require.NoError(t, err)
	view, err := s.log().View(t.Context(), head.Digest)
	require.NoError(t, err)
	run := ""
	for _, e := range view.Events() {
		if e.Started != nil {
			run = e.Started.Run
		}
		w, err := e.Wire(session, run)
		require.NoError(t, err)
		line, err := json.Marshal(w)
		require.NoError(t, err)
		lines = append(lines, string(line))
	}
	return lines
}

// read reads a session's events up to their end.
func read(ctx context.Context, c *client.Client, session string, o client.EventsOptions) (lines []string, err error) {
	for e, err := range c.Events(ctx, session, &o) {
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

// comer is a reader that drops off and comes back, at where it was or before.
type comer struct {
	*client.Client
	session string
	dice    *rand.Rand
	lines   []string
	visits  int
}

// read returns when the run is at its end.
func (c *comer) read(ctx context.Context) error {
	for {
		at := len(c.lines)
		if c.dice.IntN(3) == 0 {
			at = c.dice.IntN(at + 1)
		}
		c.visits++
		if ended, err := c.visit(ctx, at, 1+c.dice.IntN(60)); err != nil || ended {
			return err
		}
	}
}

func (c *comer) visit(ctx context.Context, at, most int) (ended bool, err error) {
	after := ""
	if at > 0 {
		after = agent.Cursor(int64(at))
	}
	for e, err := range c.Events(ctx, c.session, &client.EventsOptions{After: after, Follow: true, UntilEnd: true}) {
		if err != nil {
			return false, err
		}
		line, err := json.Marshal(e)
		if err != nil {
			return false, err
		}
		switch at++; {
		case e.Seq != int64(at):
			return false, fmt.Errorf("event %d came instead of %d", e.Seq, at)
		case at <= len(c.lines) && c.lines[at-1] != string(line):
			return false, fmt.Errorf("event %d was\n%s\nand is\n%s", at, c.lines[at-1], line)
		case at > len(c.lines):
			c.lines = append(c.lines, string(line))
		}
		if most--; most == 0 {
			return false, nil
		}
	}
	return true, nil
}

// team starts a worker whose agent has a helper below it.
func (s *stage) team(t *testing.T, script *testsuite.Script, tools ...tool.Tool) {
	t.Helper()
	w, err := worker.New(s.temporal, &worker.Options{
		TaskQueue: s.queue, Tools: tools, Store: s.dir, Logger: zap.NewNop(), Models: map[string]model.Model{"script": script}, Temporal: stopsSoon,
		Agents: []agent.Definition{
			{Name: "tester", Model: "script", Tools: []string{"echo"}, Agents: []agent.SubAgent{{Agent: "helper"}}, Lifecycle: true, Limits: agent.Limits{Turns: 1000}},
			{Name: "helper", Model: "script", Tools: []string{"echo"}},
		},
	})
	require.NoError(t, err)
	require.NoError(t, w.Start(t.Context()))
	t.Cleanup(w.Stop)
}

// Readers connect, drop off and come back at any place of a run that goes on over
// many executions, with agents that work for it in the background: each has the
// log, the whole log, in its order and once. And so it stays when Temporal has
// forgotten the run (HX-40, HX-72, OA-87, PA-42).
func TestEventsForReadersThatComeAndGo(t *testing.T) {
	t.Parallel()
	testenv.Long(t)
	const turns, readers = 120, 20
	server, err := devserver.Start(t.Context(), &devserver.Options{InMemory: true, ContinueAsNewAt: 150})
	require.NoError(t, err)
	t.Cleanup(server.Stop)
	s := on(t, server)
	var replies []testsuite.Reply
	for i := range turns - 1 {
		calls := call("echo", map[string]any{"text": fmt.Sprint(i)})
		if i%15 == 3 {
			calls = append(calls, testsuite.Call{Tool: "subagent__helper", Arguments: map[string]any{"task": "help me", "background": true}})
		}
		replies = append(replies, testsuite.Reply{TextBytes: 6_000, Calls: calls})
	}
	replies = append(replies, testsuite.Reply{Text: "done"}, testsuite.Reply{Match: `\Ahelp me`, Text: "helped", Delay: 100 * time.Millisecond})
	s.team(t, testsuite.NewScript(replies...), echo(nil))
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	run, err := s.Start(ctx, "tester", "go", nil)
	require.NoError(t, err)

	var all sync.WaitGroup
	comers, errs := make([]*comer, readers), make([]error, readers)
	for i := range readers {
		comers[i] = &comer{Client: client.New(s.temporal, &client.Options{TaskQueue: s.queue, Store: s.dir}), session: run.Session, dice: rand.New(rand.NewPCG(7, uint64(i)))}
		all.Go(func() { errs[i] = comers[i].read(ctx) })
	}
	out, err := run.Result(ctx)
	require.NoError(t, err)
	require.Equal(t, agent.StatusCompleted, out.Status, "%+v", out.Error)
	all.Wait()
	want := s.wires(t, run.Session)
	require.Greater(t, len(want), turns*6)
	for i, c := range comers {
		require.NoError(t, errs[i], "reader %d", i)
		require.Equal(t, want, c.lines, "reader %d", i)
		require.Greater(t, c.visits, 5)
	}
	executions := s.executions(t, run)
	require.Greater(t, len(executions), 6, "it was carried over six times at least")
	t.Logf("%d events, %d executions", len(want), len(executions))
	s.forget(t, run.Session, executions)
	s.forgotten(t, run.Session, want)
}

// executions lists the executions of a run.
func (s *stage) executions(t *testing.T, run *client.Run) (list []string) {
	t.Helper()
	for execution := run.ID; execution != ""; {
		list = append(list, execution)
		events := s.history(t, run.Session, execution)
		execution = events[len(events)-1].GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
	}
	return list
}

// forget lets Temporal forget a run, as retention does.
func (s *stage) forget(t *testing.T, session string, executions []string) {
	t.Helper()
	for _, execution := range executions {
		_, err := s.temporal.WorkflowService().DeleteWorkflowExecution(t.Context(), &workflowservice.DeleteWorkflowExecutionRequest{
			Namespace: "default", WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: session, RunId: execution},
		})
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool {
		_, err := s.temporal.DescribeWorkflowExecution(t.Context(), session, "")
		return err != nil
	}, patience, 20*time.Millisecond)
}

// forgotten reads a session that only the store knows.
func (s *stage) forgotten(t *testing.T, session string, want []string) {
	t.Helper()
	got, err := read(t.Context(), s.Client, session, client.EventsOptions{})
	require.NoError(t, err)
	require.Equal(t, want, got)
	got, err = read(t.Context(), s.Client, session, client.EventsOptions{After: "301", Follow: true, UntilEnd: true})
	require.NoError(t, err)
	require.Equal(t, want[301:], got)
	_, err = read(t.Context(), s.Client, session, client.EventsOptions{After: fmt.Sprint(len(want) + 1)})
	require.ErrorIs(t, err, agent.CodeInvalidInput)
	_, err = read(t.Context(), s.Client, "nobody", client.EventsOptions{})
	require.ErrorIs(t, err, agent.CodeNotFound)
}

// A reader that stays gets the session's next run too. One that does not follow
// gets what there is (HX-04).
func TestEventsOverRuns(t *testing.T) {
	t.Parallel()
	s := setup(t, agent.Definition{}, testsuite.NewScript(testsuite.Reply{Text: "one"}, testsuite.Reply{Text: "two"}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	first, _ := s.run(t, "go", &client.StartOptions{Session: "over-" + s.queue})
	runs, lines := map[string]int{}, []string(nil)
	began := false
	for e, err := range s.Events(ctx, first.Session, &client.EventsOptions{Follow: true}) {
		if err != nil {
			require.ErrorIs(t, err, context.Canceled)
			break
		}
		line, err := json.Marshal(e)
		require.NoError(t, err)
		lines = append(lines, string(line))
		switch runs[e.Run]++; {
		case e.Type == agent.EventRunCompleted && !began:
			began = true
			_, _ = s.run(t, "and?", &client.StartOptions{Session: first.Session})
		case e.Type == agent.EventRunCompleted:
			cancel()
		}
	}
	require.Len(t, runs, 2)
	require.Equal(t, s.wires(t, first.Session), lines)
	got, err := read(t.Context(), s.Client, first.Session, client.EventsOptions{After: "2"})
	require.NoError(t, err)
	require.Equal(t, lines[2:], got)

	var followed []int64
	for e, err := range first.Follow(t.Context(), agent.Cursor(2)) {
		require.NoError(t, err)
		followed = append(followed, e.Seq)
	}
	require.Len(t, followed, runs[first.ID]-2, "the first run's alone")
}

// A reader that follows is not cut off by a suspension, and knows the stream's status from what it
// has read (HX-73).
func TestTheStatusOfAStream(t *testing.T) {
	t.Parallel()
	s := setup(t, agent.Definition{Tools: []string{agent.AskUserTool}, Limits: agent.Limits{OwnTurns: 2}}, testsuite.NewScript(
		testsuite.Reply{Calls: []testsuite.Call{{Tool: agent.AskUserTool, Arguments: map[string]any{"question": "On?"}}}}, testsuite.Reply{Text: "done"},
		testsuite.Reply{Calls: []testsuite.Call{{Tool: "nothing"}}}, testsuite.Reply{Calls: []testsuite.Call{{Tool: "nothing"}}},
	))
	run := s.begin(t, "go", &client.StartOptions{Session: "stream-" + s.queue})
	var status client.StreamStatus
	var statuses []client.StreamStatus
	for e, err := range s.Events(t.Context(), run.Session, &client.EventsOptions{Follow: true}) {
		require.NoError(t, err)
		next := status.After(e)
		if next == status {
			continue
		}
		status, statuses = next, append(statuses, next)
		if status == client.StreamPaused {
			q, err := s.Request(t.Context(), run.Session, e.Suspension.Requests[0].ID)
			require.NoError(t, err)
			_, err = s.Answer(t.Context(), q, "yes", nil)
			require.NoError(t, err)
		}
		if status == client.StreamEnded {
			s.begin(t, "and?", &client.StartOptions{Session: run.Session})
		}
		if status == client.StreamFailed {
			break
		}
	}
	require.Equal(t, []client.StreamStatus{client.StreamActive, client.StreamPaused, client.StreamActive, client.StreamEnded, client.StreamActive, client.StreamFailed}, statuses)
}

// What is stored needs no worker; what is not waits for one.
func TestEventsWithoutAWorker(t *testing.T) {
	t.Parallel()
	asks := agent.Definition{Tools: []string{agent.AskUserTool}}
	script := testsuite.NewScript(testsuite.Reply{Calls: call(agent.AskUserTool, map[string]any{"question": "Where to?"})}, testsuite.Reply{Text: "done"})
	s := setup(t, asks, script)
	run, err := s.Start(t.Context(), "tester", "go", nil)
	require.NoError(t, err)
	out, err := run.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, agent.StatusSuspended, out.Status)
	require.Eventually(t, func() bool { // a rest is stored
		head, err := s.dir.Head(t.Context(), run.Session)
		return err == nil && head.Seq == out.Seq
	}, patience, 10*time.Millisecond)
	s.worker.Stop()
	lines, err := read(t.Context(), s.Client, run.Session, client.EventsOptions{})
	require.ErrorIs(t, err, agent.CodeNoWorker)
	require.Len(t, lines, int(out.Seq), "what is stored came first")

	following := make(chan client.Event)
	go func() {
		defer close(following)
		for e, err := range s.Events(t.Context(), run.Session, &client.EventsOptions{After: agent.Cursor(out.Seq), Follow: true, UntilEnd: true}) {
			if err != nil {
				t.Error(err)
				return
			}
			following <- e
		}
	}()
	s.work(t, asks, script)
	_, err = s.Answer(t.Context(), out.Suspension.Requests[0], "Rome", nil)
	require.NoError(t, err)
	last := client.Event{}
	for last = range following {
	}
	require.Equal(t, agent.EventRunCompleted, last.Type, "%+v", last.Outcome)
}

// Pieces come while the model talks, each in its place: behind the turn that they
// are of, before the message that says all of them, and void ones are called so
// (HX-13, HX-40, HX-41).
func TestEventsLive(t *testing.T) {
	t.Parallel()
	const words = "It was a dark and stormy night and the rain fell in torrents."
	s := setup(t, agent.Definition{ModelAttempts: 2}, testsuite.NewScript(
		testsuite.Reply{Text: words, Stream: time.Millisecond, Calls: call("knock", map[string]any{})},
		testsuite.Reply{Text: words, Stream: time.Millisecond, Fail: []testsuite.Failure{{Kind: "overload"}}}),
		tool.New("knock", "knocks", func(_ context.Context, c *tool.Call, _ struct{}) (string, error) {
			c.Progress("knocking")
			return "nobody is in", nil
		}, nil))
	run, err := s.Start(t.Context(), "tester", "go", nil)
	require.NoError(t, err)
	var pieces strings.Builder
	var order []agent.EventType
	turn := 0
	for e, err := range s.Events(t.Context(), run.Session, &client.EventsOptions{Follow: true, UntilEnd: true, Live: true}) {
		require.NoError(t, err)
		if n := len(order); n == 0 || order[n-1] != e.Type {
			order = append(order, e.Type)
		}
		switch e.Type {
		case agent.EventTurnStarted:
			turn = e.Turn
			pieces.Reset()
		case agent.EventDeltaReset:
			pieces.Reset()
		case agent.EventDeltaText:
			require.Equal(t, turn, e.Turn)
			require.Empty(t, e.Cursor())
			pieces.WriteString(e.Live.Data.Text)
		case agent.EventMessage:
			if e.Message.Role == agent.RoleAssistant {
				require.Equal(t, words, pieces.String())
			}
		}
	}
	text := fmt.Sprint(order)
	require.Contains(t, text, "turn.started delta.text message")
	require.Contains(t, text, "call.started call.progress call.done")
	require.Contains(t, text, "turn.started delta.reset delta.text message")
	_, err = read(t.Context(), client.New(s.temporal, &client.Options{Store: s.dir}), run.Session, client.EventsOptions{Live: true})
	require.ErrorIs(t, err, agent.CodeNotSetUp)
}

// What a model writes for a handoff is no reply, and is not shown while it comes.
func TestASummaryIsNotShownWhileItComes(t *testing.T) {
	t.Parallel()
	s := setup(t, agent.Definition{}, testsuite.NewScript(
		testsuite.Reply{Match: "You are being stopped", Text: `{"summary":"I knocked"}`, Stream: time.Millisecond},
		testsuite.Reply{Calls: call("knock", map[string]any{})},
	), tool.New("knock", "knocks", func(ctx context.Context, _ *tool.Call, _ struct{}) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	}, nil))
	live, err := s.hub.Subscribe(t.Context(), "knocks")
	require.NoError(t, err)
	defer live.Close()
	run, err := s.Start(t.Context(), "tester", "go", &client.StartOptions{Session: "knocks"})
	require.NoError(t, err)
	for e, err := range s.Events(t.Context(), run.Session, &client.EventsOptions{Follow: true, UntilEnd: true}) {
		require.NoError(t, err)
		switch e.Type {
		case agent.EventCallStarted:
			s.say(t, run, agent.StopCommand{Reason: "enough", Deadline: agent.Duration(4 * time.Second)})
		case agent.EventRunStopped:
			require.Equal(t, "I knocked", e.Outcome.Handoff.Summary)
		}
	}
	require.Empty(t, live.Take())
}

// The plain query tells events of the open part, and where the others are.
func TestEventsByQuery(t *testing.T) {
	t.Parallel()
	s := setup(t, agent.Definition{}, testsuite.NewScript(testsuite.Reply{Text: "done"}))
	run, out := s.run(t, "go", nil)
	ask := func(arg any) (page map[string]any, err error) {
		v, err := s.temporal.QueryWorkflow(t.Context(), run.Session, "", "events", arg)
		if err != nil {
			return nil, err
		}
		return page, v.Get(&page)
	}
	page, err := ask(map[string]any{"after": "2", "limit": 5})
	require.NoError(t, err)
	last := agent.Cursor(out.Seq)
	require.Equal(t, map[string]any{"v": 1.0, "events": []any{}, "cursor": last, "sealed": last}, page, "an ended run has stored all")
	for _, bad := range []any{map[string]any{"after": "x"}, map[string]any{"after": "900"}, map[string]any{"from": 3}, map[string]any{"limit": -1}} {
		_, err := ask(bad)
		require.Error(t, err, "%v", bad)
	}
}
