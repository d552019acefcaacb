package e2e

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	temporal "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/devserver"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// exportKeys are what the workers of these tests take exports by: one signs, the
// other did.
var (
	signsNow, signedBefore = newSigner("now"), newSigner("before")
	exportKeys             = signals.Keys{"now": signsNow.Keys()["now"], "before": signedBefore.Keys()["before"]}
)

// elsewhere is another cluster: a server and a store of its own, and no worker yet.
func elsewhere(t *testing.T) *stage {
	t.Helper()
	server, err := devserver.Start(t.Context(), &devserver.Options{InMemory: true})
	require.NoError(t, err)
	t.Cleanup(server.Stop)
	there := on(t, server)
	t.Cleanup(func() { there.replay(t) })
	return there
}

// export writes a session to memory.
func (s *stage) export(t *testing.T, session string, o client.ExportOptions) []byte {
	t.Helper()
	if o.Key.ID() == "" {
		o.Key = signsNow
	}
	var file bytes.Buffer
	e, err := s.Export(t.Context(), session, &file, &o)
	require.NoError(t, err)
	require.Equal(t, session, e.Session)
	return file.Bytes()
}

func (s *stage) bring(t *testing.T, file []byte) (client.ExportInfo, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return s.Import(ctx, bytes.NewReader(file), &client.ImportOptions{Keys: exportKeys, By: "bo"})
}

// here is the session's run.
func (s *stage) here(t *testing.T, session string) *client.Run {
	t.Helper()
	run, err := s.Get(t.Context(), session)
	require.NoError(t, err)
	return run
}

// payer pays after an approval, and tells the key of each payment.
func payer(paid chan<- string) (agent.Definition, *testsuite.Script, tool.Tool) {
	pay := tool.New("pay", "pays", func(_ context.Context, c *tool.Call, _ struct{ Eur int }) (string, error) {
		paid <- c.Key
		return "paid", nil
	}, nil)
	script := testsuite.NewScript(
		testsuite.Reply{Text: "I pay.", Calls: append(call("pay", map[string]any{"Eur": 800}), call("echo", map[string]any{"text": "beside it"})...)},
		testsuite.Reply{Text: "done"}, testsuite.Reply{Text: "and on"})
	return agent.Definition{Rules: []agent.Rule{{Do: agent.RulingAsk, Tools: []string{"pay"}, AnswerTimeouts: agent.AnswerTimeouts{Deadline: agent.Duration(72 * time.Hour)}}}}, script, pay
}

// A run with an open approval goes on in another cluster: what was shown before
// the move is still what is decided, and no model is asked before that (PA-09,
// PA-21).
func TestExportAnApproval(t *testing.T) {
	t.Parallel()
	paid := make(chan string, 9)
	def, script, pay := payer(paid)
	s := setup(t, def, script, pay, echo(nil))
	run := s.begin(t, "Pay invoice 118", &client.StartOptions{Labels: map[string]string{"team": "pay"}})
	was := s.suspended(t, run)
	s.say(t, run, agent.SendCommand{Text: "hurry"})
	s.say(t, run, agent.PauseCommand{Reason: "we move"}) // which no chunk has yet
	file := s.export(t, run.Session, client.ExportOptions{})
	st, err := run.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, agent.StatusSuspended, st.Status, "it stays as it is")

	there := elsewhere(t)
	def, script, pay = payer(paid)
	there.work(t, def, script, pay, echo(nil))
	got, err := there.bring(t, file)
	require.NoError(t, err)
	require.Equal(t, run.ID, got.Run)
	moved := there.here(t, run.Session)
	require.NotEqual(t, run.ID, moved.ID)
	is := there.suspended(t, moved)
	require.Equal(t, was.ID, is.ID)
	require.Equal(t, was.Requests[0].Deadline, is.Requests[0].Deadline)
	require.Equal(t, "we move", is.Holds[0].Reason)
	require.Equal(t, agent.OwnerOperator, is.Owner)
	require.Empty(t, script.Requests(), "no model is asked")

	_, err = there.bring(t, file)
	require.ErrorIs(t, err, agent.CodeUsed)
	_, err = there.Approve(t.Context(), was.Requests[0], &client.ApproveOptions{By: "ana"}) // as it was shown there
	require.NoError(t, err)
	_, err = moved.Resume(t.Context(), nil)
	require.NoError(t, err)
	o := there.rest(t, moved)
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	require.Equal(t, "done", o.Text)
	require.Equal(t, 2, o.Turns)
	require.Equal(t, agent.IdempotencyKey(run.ID, "t1.1"), <-paid, "paid here and there, it would have one key")
	require.Empty(t, paid, "it is paid once")
	messages, err := there.Transcript(t.Context(), run.Session)
	require.NoError(t, err)
	text := messagesText(messages)
	require.Contains(t, text, "Pay invoice 118")
	require.Contains(t, text, "hurry")
	require.Equal(t, 2, there.events(t, moved, agent.EventRunStarted), "one log: the run there, and the one here")
	require.Equal(t, 1, there.events(t, moved, agent.EventRequestOpened), "nobody is asked twice")

	_, err = there.bring(t, file)
	require.ErrorIs(t, err, agent.CodeUsed, "also when the session has gone on since")
	_, o = there.run(t, "go on", &client.StartOptions{Session: run.Session})
	require.Equal(t, "and on", o.Text)
	_, err = there.bring(t, file)
	require.ErrorIs(t, err, agent.CodeUsed, "also after its next run")
	_, err = s.bring(t, file)
	require.ErrorIs(t, err, agent.CodeBusy, "it lives where it came from")
	_, err = run.Cancel(t.Context(), "exported", nil)
	require.NoError(t, err)
	s.rest(t, run)
	_, err = s.bring(t, file)
	require.ErrorIs(t, err, agent.CodeStale, "it has a log there")
}

// A question is answered where the run is now; one whose deadline passes on the
// way is decided by it, without another model call for the same turn (PA-79).
func TestExportAQuestionWithADeadline(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		deadline time.Duration
		answer   string
		want     string
	}{"answered": {72 * time.Hour, "Rome", "Rome"}, "decided by its deadline": {2 * time.Second, "", "nobody"}} {
		t.Run(name, func(t *testing.T) {
			def := agent.Definition{Tools: []string{agent.AskUserTool}, AnswerTimeouts: agent.AnswerTimeouts{Deadline: agent.Duration(c.deadline), Default: "nobody"}}
			ask := func() *testsuite.Script {
				return testsuite.NewScript(testsuite.Reply{Calls: call(agent.AskUserTool, map[string]any{"question": "Where to?"})}, testsuite.Reply{Text: "done"})
			}
			s := setup(t, def, ask())
			run := s.begin(t, "go", nil)
			was := s.suspended(t, run)
			file := s.export(t, run.Session, client.ExportOptions{Key: signedBefore, NoExpiry: true})
			if c.answer == "" {
				require.Equal(t, agent.StatusCompleted, s.rest(t, s.ended(t, run)).Status) // the deadline has passed
			}

			there, script := elsewhere(t), ask()
			there.work(t, def, script)
			_, err := there.bring(t, file)
			require.NoError(t, err)
			moved := there.here(t, run.Session)
			if c.answer != "" {
				require.Equal(t, was.Requests[0].Deadline, there.suspended(t, moved).Requests[0].Deadline)
				there.say(t, moved, agent.AnswerCommand{Request: "q-1", Text: c.answer})
			}
			o := there.rest(t, there.ended(t, moved))
			require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
			require.Len(t, script.Requests(), 1, "the turn before is not made again")
			messages := script.Requests()[0].Messages
			results := 0
			for _, m := range messages {
				for _, p := range m.Parts {
					if p.Result != nil {
						results++
						require.Equal(t, c.want, p.Result.Text)
					}
				}
			}
			require.Equal(t, 1, results)
		})
	}
}

// An import brings the answer to what the run waits for: the run goes on with it at once, and once,
// also if its deadline has passed on the way. An answer that does not fit is refused before anything
// changes (PA-17).
func TestImportWithAnAnswer(t *testing.T) {
	t.Parallel()
	def := agent.Definition{Tools: []string{agent.AskUserTool}, AnswerTimeouts: agent.AnswerTimeouts{Deadline: agent.Duration(2 * time.Second), Default: "nobody"}}
	script := func() *testsuite.Script {
		ask := call(agent.AskUserTool, map[string]any{"question": "Where to?", "choices": []string{"Rome", "Oslo"}})
		return testsuite.NewScript(testsuite.Reply{Calls: ask}, testsuite.Reply{Text: "done"})
	}
	s := setup(t, def, script())
	run := s.begin(t, "go", nil)
	s.suspended(t, run)
	file := s.export(t, run.Session, client.ExportOptions{})
	s.ended(t, run) // the deadline has passed

	there, asked := elsewhere(t), script()
	there.work(t, def, asked)
	bring := func(request string, choice int) error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		_, err := there.Import(ctx, bytes.NewReader(file), &client.ImportOptions{
			Keys: exportKeys, By: "bo", Answers: []agent.AnswerTo{{Request: request, Answer: &agent.AnswerCommand{Choice: &choice}}},
		})
		return err
	}
	require.ErrorIs(t, bring("q-1", 7), agent.CodeInvalidInput)
	require.ErrorIs(t, bring("q-9", 1), agent.CodeNotFound)
	_, err := there.log().Store().Head(t.Context(), run.Session)
	require.ErrorIs(t, err, agent.CodeNotFound, "nothing has changed")
	require.NoError(t, bring("q-1", 1))
	require.ErrorIs(t, bring("q-1", 0), agent.CodeUsed)

	moved := there.here(t, run.Session)
	o := there.rest(t, there.ended(t, moved))
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	require.ErrorIs(t, bring("q-1", 1), agent.CodeUsed)
	require.Len(t, asked.Requests(), 1, "the turn before is not made again")
	var answers []agent.Answered
	for e, err := range there.Events(t.Context(), run.Session, nil) {
		require.NoError(t, err)
		require.NotEqual(t, agent.EventVerbRefused, e.Type)
		require.NotEqual(t, agent.EventRequestExpired, e.Type)
		if e.Type == agent.EventRequestAnswered {
			answers = append(answers, *e.Answer)
		}
	}
	require.Len(t, answers, 1)
	require.Equal(t, []string{"q-1", "bo"}, []string{answers[0].Request, answers[0].By})
	messages := asked.Requests()[0].Messages
	result := messages[slices.IndexFunc(messages, func(m agent.Message) bool { return m.Role == agent.RoleTool })].Parts[0].Result
	require.Equal(t, "Oslo", result.Text)
}

// An answer that comes with an import proves nobody: a request that names approvers refuses it, and is
// decided after the import, with a token (PA-17).
func TestAnImportProvesNobody(t *testing.T) {
	t.Parallel()
	paid := make(chan string, 9)
	def, script, pay := payer(paid)
	def.Rules[0].Approvers = []string{"ana"}
	s := setup(t, def, script, pay, echo(nil))
	run := s.begin(t, "Pay invoice 118", nil)
	s.suspended(t, run)
	file := s.export(t, run.Session, client.ExportOptions{})

	there := elsewhere(t)
	def, script, pay = payer(paid)
	there.work(t, def, script, pay, echo(nil))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := there.Import(ctx, bytes.NewReader(file), &client.ImportOptions{Keys: exportKeys, By: "ana", Answers: []agent.AnswerTo{{Request: "q-1", Approve: &agent.ApproveCommand{}}}})
	require.ErrorIs(t, err, agent.CodeDenied)
	_, err = there.bring(t, file)
	require.NoError(t, err)
	require.Equal(t, "q-1", there.suspended(t, there.here(t, run.Session)).Requests[0].ID)
	require.Empty(t, paid)
}

// ended waits for a run's end.
func (s *stage) ended(t *testing.T, run *client.Run) *client.Run {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := run.Result(ctx)
	require.NoError(t, err)
	return run
}

// What is no good is refused before anything is changed; what a worker refuses can
// be imported again (PA-15, PA-16, PA-20, PA-95).
func TestExportRefused(t *testing.T) {
	t.Parallel()
	def := agent.Definition{Tools: []string{agent.AskUserTool}}
	script := testsuite.NewScript(testsuite.Reply{Calls: call(agent.AskUserTool, map[string]any{"question": "Where to?"})}, testsuite.Reply{Text: "slow", Delay: patience})
	s := setup(t, def, script)
	run := s.begin(t, "go", nil)
	s.suspended(t, run)
	good := s.export(t, run.Session, client.ExportOptions{})
	expired := s.export(t, run.Session, client.ExportOptions{Key: signsNow, ValidFor: time.Nanosecond})
	foreign := s.export(t, run.Session, client.ExportOptions{Key: newSigner("now")})
	tampered := bytes.Replace(good, []byte("Where to?"), []byte("Where do?"), 1)
	require.NotEqual(t, good, tampered)
	var none bytes.Buffer
	for _, o := range []client.ExportOptions{{}, {Key: signals.Signer{}, NoExpiry: true}, {Key: signsNow, ValidFor: time.Hour, NoExpiry: true}} {
		_, err := s.Export(t.Context(), run.Session, &none, &o)
		require.Error(t, err)
		require.Empty(t, none.Bytes())
	}
	_, err := s.Export(t.Context(), "nobody", &none, &client.ExportOptions{Key: signsNow})
	require.ErrorIs(t, err, agent.CodeNotFound)

	there := elsewhere(t)
	for code, file := range map[agent.Code][]byte{agent.CodeExpired: expired, agent.CodeBadSignature: foreign, agent.CodeInvalidInput: []byte("{}")} {
		_, err := there.bring(t, file)
		require.ErrorIs(t, err, code)
	}
	_, err = there.bring(t, tampered)
	require.ErrorIs(t, err, agent.CodeBadSignature)
	_, err = there.Import(t.Context(), bytes.NewReader(good), nil)
	require.ErrorIs(t, err, agent.CodeNotSetUp)
	_, err = there.log().Store().Head(t.Context(), run.Session)
	require.ErrorIs(t, err, agent.CodeNotFound, "nothing has happened")

	won, lost := there.race(t, 5, func(ctx context.Context, _ int) error {
		soon, cancel := context.WithTimeout(ctx, time.Second) // nobody works here yet
		defer cancel()
		_, err := there.Import(soon, bytes.NewReader(good), &client.ImportOptions{Keys: exportKeys})
		if errors.Is(err, agent.CodeTimeout) {
			return nil
		}
		return err
	})
	require.Equal(t, 1, won, "%v", lost)
	for _, err := range lost {
		require.ErrorIs(t, err, agent.CodeUsed)
	}
	other := there.stranger(t)
	require.Equal(t, agent.CodeUnknownAgent, there.rest(t, there.here(t, run.Session)).Error.Code)
	_, err = there.bring(t, good)
	require.ErrorIs(t, err, agent.CodeUnknownAgent)
	other.Stop()
	there.work(t, def, script)
	_, err = there.bring(t, good)
	require.NoError(t, err, "a worker that knows the agent takes it")
	there.planted(t, run.Session)

	_, err = s.Answer(t.Context(), s.suspended(t, run).Requests[0], "Rome", nil)
	require.NoError(t, err)
	_, err = s.Export(t.Context(), run.Session, &none, &client.ExportOptions{Key: signsNow})
	require.ErrorIs(t, err, agent.CodeBusy, "it runs")
	_, err = run.Cancel(t.Context(), "", nil)
	require.NoError(t, err)
}

// stranger is a worker that does not know the agent.
func (s *stage) stranger(t *testing.T) *worker.Worker {
	t.Helper()
	w, err := worker.New(s.temporal, &worker.Options{
		TaskQueue: s.queue, Agents: []agent.Definition{{Name: "stranger", Model: "script"}}, Store: s.store, Logger: zap.NewNop(),
		Models: map[string]model.Model{"script": testsuite.NewScript()}, ExportKeys: exportKeys,
	})
	require.NoError(t, err)
	require.NoError(t, w.Start(t.Context()))
	t.Cleanup(w.Stop)
	return w
}

// planted names a used export in plain starts, as anybody could who may start
// workflows.
func (s *stage) planted(t *testing.T, session string) {
	t.Helper()
	digest := ""
	for _, e := range s.history(t, session, "") {
		if a := e.GetWorkflowExecutionStartedEventAttributes(); a != nil {
			var start agent.Start
			require.NoError(t, converter.GetDefaultDataConverter().FromPayload(a.GetInput().GetPayloads()[0], &start))
			digest = start.Import
		}
	}
	require.NotEmpty(t, digest)
	moved := s.here(t, session)
	_, err := moved.Cancel(t.Context(), "", nil)
	require.NoError(t, err)
	s.rest(t, moved)
	for name, want := range map[string]agent.Code{session: agent.CodeUsed, "another": agent.CodeStale} {
		w, err := s.temporal.ExecuteWorkflow(t.Context(), temporal.StartWorkflowOptions{ID: name, TaskQueue: s.queue}, signals.WorkflowType,
			agent.Start{Agent: "tester", Import: digest})
		require.NoError(t, err)
		o, err := s.here(t, w.GetID()).Result(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, o.Error.Code, "%+v", o.Error)
	}
}

// Of a session at its end the log is brought, and the next run goes on there.
func TestExportAtAnEnd(t *testing.T) {
	t.Parallel()
	script := testsuite.NewScript(testsuite.Reply{Text: "one"}, testsuite.Reply{Text: "two"})
	s := setup(t, agent.Definition{}, script)
	run, _ := s.run(t, "first", nil)
	file := s.export(t, run.Session, client.ExportOptions{})
	there := elsewhere(t)
	got, err := there.bring(t, file) // without a worker
	require.NoError(t, err)
	require.Equal(t, agent.StatusCompleted, got.Status)
	require.Nil(t, got.Suspension)
	_, err = there.bring(t, file)
	require.ErrorIs(t, err, agent.CodeUsed)
	there.work(t, agent.Definition{}, script)
	_, o := there.run(t, "second", &client.StartOptions{Session: run.Session})
	require.Equal(t, "two", o.Text, "the second run knows the first")
	_, err = there.bring(t, file)
	require.ErrorIs(t, err, agent.CodeUsed)
}
