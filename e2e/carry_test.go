package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	temporal "go.temporal.io/sdk/client"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/devserver"
	"github.com/fermata-agents/fermata/internal/testenv"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// early is a stage whose server suggests a new execution after so many events.
func early(t *testing.T, events int) *stage {
	t.Helper()
	server, err := devserver.Start(t.Context(), &devserver.Options{InMemory: true, ContinueAsNewAt: events})
	require.NoError(t, err)
	t.Cleanup(server.Stop)
	s := on(t, server)
	t.Cleanup(func() { s.replay(t) })
	return s
}

// modelFunc is a model that is a function of what it is asked.
type modelFunc func(context.Context, *model.Request) *model.Reply

func (modelFunc) Info(string) model.Info { return model.Info{} }

func (b modelFunc) Generate(ctx context.Context, req *model.Request, _ func(model.Delta)) (*model.Reply, error) {
	return b(ctx, req), ctx.Err()
}

// lastSaid returns the last message of a request that is no note of the runtime.
func lastSaid(r *model.Request) agent.Message {
	conversation, _ := model.SplitRecital(r.Messages)
	return conversation[len(conversation)-1]
}

func saysText(text string) *model.Reply {
	return &model.Reply{Finish: model.FinishStop, Parts: []agent.Part{{Type: agent.PartText, Text: text}}}
}

func asksFor(calls ...agent.Part) *model.Reply {
	return &model.Reply{Finish: model.FinishToolCalls, Parts: calls}
}

// startWorker starts a worker of agents that share one brain.
func (s *stage) startWorker(t *testing.T, b modelFunc, tools []tool.Tool, agents ...agent.Definition) {
	t.Helper()
	for i := range agents {
		agents[i].Model, agents[i].Limits = "brain", agent.Limits{Turns: 100_000}
		waits(&agents[i])
	}
	w, err := worker.New(s.temporal, &worker.Options{
		TaskQueue: s.queue, Agents: agents, Tools: tools, Store: s.store, Logger: zap.NewNop(), Temporal: stopsSoon,
		Models: map[string]model.Model{"brain": b},
	})
	require.NoError(t, err)
	require.NoError(t, w.Start(t.Context()))
	t.Cleanup(w.Stop)
}

// waits gives a model that waits for the test all the time that a busy machine may need.
func waits(def *agent.Definition) {
	def.ModelSilence, def.ModelTimeout = cmp.Or(def.ModelSilence, agent.Duration(time.Hour)), cmp.Or(def.ModelTimeout, agent.Duration(time.Hour))
}

// current is a run's execution.
func (s *stage) current(t *testing.T, session string) string {
	t.Helper()
	d, err := s.temporal.DescribeWorkflowExecution(t.Context(), session, "")
	require.NoError(t, err)
	return d.GetWorkflowExecutionInfo().GetExecution().GetRunId()
}

// carried waits until a run that works has gone on in so many more executions.
func (s *stage) carried(t *testing.T, session string, executions int) {
	t.Helper()
	last := s.current(t, session)
	require.Eventually(t, func() bool {
		if now := s.current(t, session); now != last {
			last, executions = now, executions-1
		}
		return executions <= 0
	}, patience, 2*time.Millisecond)
}

// push makes a run that rests go on in so many more executions, by events that it
// does not wait for.
func (s *stage) push(t *testing.T, session string, executions int) {
	t.Helper()
	for last := s.current(t, session); executions > 0; {
		require.NoError(t, signals.Signal(t.Context(), s.temporal, session, agent.EmitCommand{Topic: "nobody.waits"}))
		if now := s.current(t, session); now != last {
			last, executions = now, executions-1
		}
	}
}

// intact checks of a session's log that its events have their numbers, and that
// what can happen once is told once; it returns how often each type is told.
func (s *stage) intact(t *testing.T, session string) (events []agent.Event, count map[agent.EventType]int) {
	t.Helper()
	head, err := s.dir.Head(t.Context(), session)
	require.NoError(t, err)
	view, err := s.log().View(t.Context(), head.Digest)
	require.NoError(t, err)
	run, told, turn := "", map[string]bool{}, 0
	count = map[agent.EventType]int{}
	for i, e := range view.Events() {
		require.EqualValues(t, i+1, e.Seq)
		count[e.Type]++
		if e.Started != nil {
			run, turn = e.Started.Run, 0
		}
		if e.Type == agent.EventTurnStarted {
			turn++
			require.Equal(t, turn, e.Turn)
		}
		if of := subject(e); of != "" {
			key := fmt.Sprintf("%s %s of run %s", e.Type, of, run)
			require.False(t, told[key], "%s is told twice", key)
			told[key] = true
		}
	}
	return view.Events(), count
}

// subject is what an event tells of and can tell once; empty if it may be told
// more often.
func subject(e agent.Event) string {
	switch {
	case e.Type == agent.EventChildSuspended || e.Type == agent.EventChildResumed:
		return ""
	case e.Started != nil, e.Outcome != nil:
		return "itself"
	case e.Type == agent.EventTurnStarted:
		return fmt.Sprint("turn ", e.Turn)
	case e.Call != nil && e.Call.Answers > 0: // it starts again with what it has asked
		return fmt.Sprintf("call %s with %d answers", e.Call.Call, e.Call.Answers)
	case e.Call != nil:
		return "call " + e.Call.Call
	case e.Suspension != nil:
		return e.Suspension.ID
	case e.Resumed != nil:
		return e.Resumed.Suspension
	case e.Hold != nil:
		return e.Hold.ID
	case e.Request != nil:
		return e.Request.ID
	case e.Answer != nil:
		return e.Answer.Request
	case e.Child != nil:
		return e.Child.Session
	}
	return ""
}

// gatherer works on until it has got every message that it waits for.
type gatherer struct {
	mu    sync.Mutex
	left  map[string]chan struct{} // closed when the model has got the message
	asked int
	done  chan struct{} // closed when it says its last word
}

// newGatherer waits for the messages m-0, m-1, …; got tells of each when it has it.
func newGatherer(messages int) (g *gatherer, got map[string]chan struct{}) {
	got = map[string]chan struct{}{}
	for i := range messages {
		got[fmt.Sprint("m-", i)] = make(chan struct{})
	}
	return &gatherer{left: maps.Clone(got), done: make(chan struct{})}, got
}

func (g *gatherer) think(_ context.Context, req *model.Request) *model.Reply {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked++
	for _, m := range req.Messages {
		if got := g.left[m.Text()]; got != nil {
			close(got)
			delete(g.left, m.Text())
		}
	}
	if len(g.left) > 0 {
		return asksFor(model.CallPart("", "note", fmt.Sprintf(`{"text":"%d"}`, g.asked)))
	}
	if g.done != nil {
		close(g.done)
		g.done = nil
	}
	return saysText("that was all")
}

// A run that goes on in one execution after the other gets everything that is said
// to it, by updates and by signals, from many sides, and what is said twice once.
// What comes about its end is in it or in the session's next run.
func TestCarryThroughAStorm(t *testing.T) {
	t.Parallel()
	const speakers, each, late = 20, 10, 8
	s := early(t, 40)
	g, got := newGatherer(speakers * each)
	done, notes := g.done, &tally{calls: map[string]int{}}
	s.startWorker(t, g.think, []tool.Tool{notes.tool("note")}, agent.Definition{Name: "tester", Tools: []string{"note"}})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	run := s.begin(t, "go", nil)
	var all sync.WaitGroup
	errs := make(chan error, speakers+late)
	for i := range speakers {
		all.Go(func() {
			for n := i * each; n < (i+1)*each; n++ {
				text := fmt.Sprint("m-", n)
				if err := s.shout(ctx, run, text, n, got[text]); err != nil {
					errs <- fmt.Errorf("%s: %w", text, err)
					return
				}
			}
		})
	}
	for i := range late {
		all.Go(func() {
			<-done
			text := fmt.Sprint("late-", i)
			next, err := s.Send(ctx, run.Session, text, &client.SendOptions{ID: text})
			if err == nil {
				_, err = next.Result(ctx)
			}
			if err != nil {
				errs <- fmt.Errorf("%s: %w", text, err)
			}
		})
	}
	all.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	s.saidOnce(t, run.Session, 1+speakers*each+late)
	_, count := s.intact(t, run.Session)
	require.Equal(t, count[agent.EventTurnStarted], g.asked, "no turn was made twice")
	require.Zero(t, count[agent.EventVerbRefused])
	notes.once(t, count[agent.EventCallDone])
	executions := s.executions(t, run)
	require.Greater(t, len(executions), speakers*each/40, "it was carried over, for each message is an event at least")
	t.Logf("%d turns, %d executions, %d runs", count[agent.EventTurnStarted], len(executions), count[agent.EventRunStarted])
}

// saidOnce checks that a session has so many messages of users, and each once.
func (s *stage) saidOnce(t *testing.T, session string, want int) {
	t.Helper()
	messages, err := s.Transcript(t.Context(), session)
	require.NoError(t, err)
	times := map[string]int{}
	for _, m := range messages {
		if m.Role == agent.RoleUser {
			times[m.Text()]++
		}
	}
	require.Len(t, times, want)
	for text, n := range times {
		require.Equal(t, 1, n, text)
	}
}

// shout says a message by update or by signal, some twice at once and some again,
// the other way, when the model has got it.
func (s *stage) shout(ctx context.Context, run *client.Run, text string, n int, got <-chan struct{}) error {
	order := agent.SendCommand{CommandHeader: agent.CommandHeader{ID: text}, Text: text}
	update := func() error {
		ack, err := signals.Update(ctx, s.temporal, run.Session, order)
		if err == nil && (ack.Run != run.ID || ack.Effect == agent.EffectRunEnded) {
			err = agent.Errorf(agent.CodeClosed, "the answer is %+v", ack)
		}
		return err
	}
	first, other := update, func() error { return signals.Signal(ctx, s.temporal, run.Session, order) }
	if n%2 == 1 {
		first, other = other, first
	}
	if n%3 == 0 {
		twice := make(chan error)
		go func() { twice <- first() }()
		defer func() { <-twice }()
	}
	if err := first(); err != nil {
		return err
	}
	select {
	case <-got:
	case <-ctx.Done():
		return ctx.Err()
	}
	if n%5 == 0 {
		if err := other(); err != nil && !errors.Is(err, agent.CodeClosed) { // the last may come too late
			return err
		}
	}
	return nil
}

// What a run waits for is the same in every execution: an answer, an approval, a
// time. An answer is taken once, and what has a time comes at that time (HL-81,
// HX-34, HX-54, HX-58, OA-71).
func TestCarryWhatIsWaitedFor(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	const wait = time.Minute // longer than all of it takes on a busy machine
	s := early(t, 40)
	made := &tally{calls: map[string]int{}}
	soon := agent.Duration(wait)
	s.startWorker(t, func(_ context.Context, req *model.Request) *model.Reply {
		switch text := req.Messages[0].Text(); {
		case len(req.Messages) > 1:
			return saysText("done")
		case text == "park":
			return asksFor(model.CallPart("", agent.AwaitResumptionTool, fmt.Sprintf(`{"reason":"later","conditions":{"after":"%s","on_timeout":"resume_with_input","input":"it is time"}}`, wait)))
		case text == "ask":
			return asksFor(model.CallPart("", agent.AskUserTool, `{"question":"Where to?"}`))
		}
		return asksFor(model.CallPart("", "pay", `{"text":"800"}`), model.CallPart("", "book", `{"text":"Rome"}`))
	}, []tool.Tool{made.tool("pay"), made.tool("book")}, agent.Definition{
		Name: "tester", Tools: []string{"pay", "book", agent.AskUserTool, agent.AwaitResumptionTool}, AnswerTimeouts: agent.AnswerTimeouts{Deadline: soon, Default: "nobody"},
		Rules: []agent.Rule{{Do: agent.RulingAsk, Tools: []string{"pay"}}, {Do: agent.RulingAsk, Tools: []string{"book"}, AnswerTimeouts: agent.AnswerTimeouts{Deadline: soon, Default: "approve"}}},
	})
	runs, open := map[string]*client.Run{}, map[string]*agent.Suspension{}
	for _, what := range []string{"ask", "park", "buy"} {
		runs[what] = s.begin(t, what, nil)
	}
	for what, run := range runs {
		open[what] = s.suspended(t, run)
		s.push(t, run.Session, 3)
		require.Equal(t, open[what], s.suspended(t, run))
	}
	require.Len(t, open["buy"].Requests, 2)
	won, lost := s.race(t, 10, func(ctx context.Context, _ int) error {
		_, err := signals.Update(ctx, s.temporal, runs["buy"].Session, agent.ApproveCommand{Request: open["buy"].Requests[0].ID})
		return err
	})
	require.Equal(t, 1, won)
	for _, err := range lost {
		require.ErrorIs(t, err, agent.CodeStale)
	}
	s.push(t, runs["buy"].Session, 2)
	require.Equal(t, open["buy"].Requests[1:], s.suspended(t, runs["buy"]).Requests)
	made.once(t, 0)

	ask, park, buy := open["ask"], open["park"], open["buy"]
	require.Equal(t, told{2, 1, 1, 1, 1}, s.atItsTime(t, runs["buy"], buy.Requests[1].Deadline, agent.EventRequestExpired))
	made.once(t, 2)
	require.Equal(t, told{1, 0, 1, 1, 1}, s.atItsTime(t, runs["ask"], ask.Requests[0].Deadline, agent.EventRequestExpired))
	messages, err := s.Transcript(t.Context(), runs["ask"].Session)
	require.NoError(t, err)
	require.Equal(t, "nobody", messages[2].Parts[0].Result.Text)
	require.Equal(t, told{0, 0, 0, 1, 1}, s.atItsTime(t, runs["park"], park.Conditions.At, agent.EventRunResumed))
	for what, run := range runs {
		require.Greater(t, len(s.executions(t, run)), 3, what)
	}
}

// told is how often a run opened a request, had it answered or expired, was
// suspended and resumed.
type told [5]int

// atItsTime waits for a run's end, and checks that an event came when it was due.
func (s *stage) atItsTime(t *testing.T, run *client.Run, due time.Time, want agent.EventType) told {
	t.Helper()
	out, err := run.Result(t.Context())
	require.NoError(t, err)
	require.Equal(t, agent.StatusCompleted, out.Status, "%+v", out.Error)
	require.Equal(t, 2, out.Turns)
	events, n := s.intact(t, run.Session)
	i := slices.IndexFunc(events, func(e agent.Event) bool { return e.Type == want })
	require.GreaterOrEqual(t, i, 0, "no %s", want)
	require.WithinRange(t, events[i].Time, due, due.Add(2*time.Second))
	return told{n[agent.EventRequestOpened], n[agent.EventRequestAnswered], n[agent.EventRequestExpired], n[agent.EventRunSuspended], n[agent.EventRunResumed]}
}

// A verb that comes with the first task of an execution finds the run, which it
// would not before the execution knows what it goes on with.
func TestCancelWithTheStart(t *testing.T) {
	t.Parallel()
	s := setup(t, agent.Definition{}, testsuite.NewScript(testsuite.Reply{Text: "done", Delay: time.Minute}))
	start := s.temporal.NewWithStartWorkflowOperation(temporal.StartWorkflowOptions{
		ID: "at-once-" + s.queue, TaskQueue: s.queue, WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
	}, signals.WorkflowType, agent.Start{V: agent.Version, Agent: "tester", Input: agent.Input{Text: "go"}})
	h, err := s.temporal.UpdateWithStartWorkflow(t.Context(), temporal.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: start,
		UpdateOptions:          temporal.UpdateWorkflowOptions{UpdateName: string(agent.VerbCancel), Args: []any{agent.CancelCommand{}}, WaitForStage: temporal.WorkflowUpdateStageCompleted},
	})
	require.NoError(t, err)
	ack := agent.Ack{}
	require.NoError(t, h.Get(t.Context(), &ack))
	require.Equal(t, agent.EffectAccepted, ack.Effect)
	require.NotEmpty(t, ack.Run)
	run, err := s.Get(t.Context(), "at-once-"+s.queue)
	require.NoError(t, err)
	require.Equal(t, agent.StatusCancelled, s.rest(t, run).Status)
	for _, e := range s.history(t, run.Session, "") {
		require.NotEqual(t, enums.EVENT_TYPE_WORKFLOW_TASK_FAILED, e.GetEventType())
	}
}
