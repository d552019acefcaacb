package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	temporal "go.temporal.io/sdk/client"
	sdktemporal "go.temporal.io/sdk/temporal"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

// till is a tool with an effect that a test can count, and that keeps a sum in
// the session's state.
type till struct{ paid atomic.Int64 }

var total tool.Key[int] = "sum"

func (l *till) tool() tool.Tool {
	type in struct {
		Amount int `json:"amount"`
	}
	return tool.New("pay", "pays", func(ctx context.Context, c *tool.Call, in in) (string, error) {
		l.paid.Add(1)
		before, _, err := total.Get(ctx, c)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("paid %d of %d", in.Amount, before+in.Amount), total.Set(c, before+in.Amount)
	}, nil)
}

// payments is a script that pays so often, and then says so.
func payments(n int) []testsuite.Reply {
	var replies []testsuite.Reply
	for i := range n {
		replies = append(replies, testsuite.Reply{Calls: call("pay", map[string]any{"amount": i + 1})})
	}
	for range 3 { // it says so again where it is asked again
		replies = append(replies, testsuite.Reply{Text: "all is paid"})
	}
	return replies
}

// At each checkpoint of a run a fork finds the conversation and the state as they
// were there, the payments before it are not made again, and the plan names those
// that are. Its record says where it began (HX-31, HX-62, HX-66, OA-57, HA-32,
// HA-101, HA-136).
func TestForkAtEveryCheckpoint(t *testing.T) {
	t.Parallel()
	const turns = 4
	l := &till{}
	s := setup(t, agent.Definition{StateVersion: 1}, testsuite.NewScript(payments(turns)...), l.tool())
	run, out := s.run(t, "pay four", nil)
	require.Equal(t, agent.StatusCompleted, out.Status, "%+v", out.Error)
	page, err := s.Checkpoints(t.Context(), run.Session, nil)
	require.NoError(t, err)
	require.Equal(t, turns+2, page.Total, "one before the first turn, one after each")
	whole, err := s.Transcript(t.Context(), run.Session)
	require.NoError(t, err)

	for _, p := range page.Items {
		before := l.paid.Load()
		anew, err := s.Fork(t.Context(), run.Session, &client.ForkOptions{Checkpoint: p.ID, NewSession: true, Text: "go on"})
		require.NoError(t, err)
		kept := min(p.Turn, turns)
		require.Len(t, anew.Kept, kept, p.ID)
		require.Len(t, anew.MayRepeat, turns-kept, p.ID)
		_, known, err := s.Checkpoint(t.Context(), run.Session, p.ID)
		require.NoError(t, err)
		require.Equal(t, whole[:len(known)], known, "the prefix, and nothing else")

		fork, err := anew.Start(t.Context())
		require.NoError(t, err)
		o, err := fork.Result(t.Context())
		require.NoError(t, err)
		require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
		require.EqualValues(t, turns-kept, l.paid.Load()-before, "%s: what lies before is not paid again", p.ID)
		messages, err := s.Transcript(t.Context(), fork.Session)
		require.NoError(t, err)
		require.Equal(t, known, messages[:len(known)])
		runs, err := s.Runs(t.Context(), fork.Session)
		require.NoError(t, err)
		forked := runs[len(runs)-1]
		require.Equal(t, fork.ID, forked.Run)
		require.Equal(t, &agent.Forked{Session: run.Session, Run: p.Run, Checkpoint: p.ID}, forked.Forked)
		if kept < turns {
			last := messages[len(messages)-2].Parts[0].Result.Text
			require.Equal(t, "paid 4 of 10", last, "the sum went along")
		}
	}
	again, err := s.Transcript(t.Context(), run.Session)
	require.NoError(t, err)
	require.Equal(t, whole, again, "the old run stays as it was")
}

// A live run can be forked into a session of its own, which has its log from the
// first moment: nothing is collected that it needs (OA-87).
func TestForkALiveRun(t *testing.T) {
	t.Parallel()
	l := &till{}
	replies := payments(2)
	replies[1].Delay = time.Minute // the second turn of the second run
	s := setup(t, agent.Definition{}, testsuite.NewScript(append([]testsuite.Reply{{Text: "hello"}}, replies...)...), l.tool())
	session := "live-" + s.queue
	s.run(t, "hello", &client.StartOptions{Session: session})
	run := s.begin(t, "pay two", &client.StartOptions{Session: session})
	require.Eventually(t, func() bool {
		v, err := run.Status(t.Context())
		return err == nil && v.Turn == 2
	}, patience, 10*time.Millisecond)
	page, err := s.Checkpoints(t.Context(), session, &client.CheckpointsOptions{Run: run.ID})
	require.NoError(t, err)
	require.Equal(t, 1, page.Items[0].Turn)
	_, err = s.Fork(t.Context(), session, &client.ForkOptions{Checkpoint: page.Items[0].ID})
	require.ErrorIs(t, err, agent.CodeBusy, "in place it can't be")
	anew, err := s.Fork(t.Context(), session, &client.ForkOptions{Checkpoint: page.Items[0].ID, NewSession: true})
	require.NoError(t, err)
	fork, err := anew.Start(t.Context())
	require.NoError(t, err)
	s.until(t, fork, agent.EventTurnStarted)
	collected, err := s.log().Collect(t.Context(), 0, false)
	require.NoError(t, err)
	require.Zero(t, collected.Deleted+collected.Left, "%+v", collected)
	_, err = fork.Stop(t.Context(), "", &client.StopOptions{Deadline: 4 * time.Second})
	require.NoError(t, err)
	s.rest(t, fork)
	messages, err := s.Transcript(t.Context(), fork.Session)
	require.NoError(t, err)
	require.Equal(t, "hello", messages[0].Text())
	require.Equal(t, "pay two", messages[2].Text())
	require.Contains(t, messages[4].Parts[0].Result.Text, "paid 1")
	_, err = run.Cancel(t.Context(), "", nil)
	require.NoError(t, err)
	s.rest(t, run)
}

// A session's first run, of which nothing is stored yet, can be forked, and the
// fork's log be read from its beginning (OA-87).
func TestForkAFirstRun(t *testing.T) {
	t.Parallel()
	s := setup(t, agent.Definition{}, testsuite.NewScript(testsuite.Reply{Match: "again", Text: "done"}, testsuite.Reply{Match: ".*", Delay: time.Minute}))
	run := s.begin(t, "hello", nil)
	s.until(t, run, agent.EventTurnStarted)
	anew, err := s.Fork(t.Context(), run.Session, &client.ForkOptions{NewSession: true, Text: "again"})
	require.NoError(t, err)
	fork, err := anew.Start(t.Context())
	require.NoError(t, err)
	require.Equal(t, agent.StatusCompleted, s.rest(t, fork).Status)
	var runs []string
	for e, err := range client.StoredEvents(t.Context(), s.dir, fork.Session, "") {
		require.NoError(t, err)
		if e.Type == agent.EventRunStarted {
			runs = append(runs, e.Run)
		}
	}
	require.Equal(t, []string{run.ID, fork.ID}, runs)
	_, err = run.Cancel(t.Context(), "", nil)
	require.NoError(t, err)
}

// A fork in place goes on in the same session: the log tells of both, the model
// knows of one, and going back to before the fork finds what it left (HX-26,
// HX-66, HX-71, OA-39, OA-97).
func TestForkInPlace(t *testing.T) {
	t.Parallel()
	l := &till{}
	s := setup(t, agent.Definition{}, testsuite.NewScript(payments(2)...), l.tool())
	run, _ := s.run(t, "pay two", nil)
	page, err := s.Checkpoints(t.Context(), run.Session, nil)
	require.NoError(t, err)
	first := page.Items[page.Total-2]
	require.Equal(t, 1, first.Turn)
	anew, err := s.Fork(t.Context(), run.Session, &client.ForkOptions{Checkpoint: first.ID})
	require.NoError(t, err)
	fork, err := anew.Start(t.Context())
	require.NoError(t, err)
	o, err := fork.Result(t.Context())
	require.NoError(t, err)
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	require.EqualValues(t, 3, l.paid.Load())
	s.keep(t, "forked", fork.Session, fork.ID)
	left, err := s.Checkpoints(t.Context(), run.Session, &client.CheckpointsOptions{Run: run.ID})
	require.NoError(t, err)
	require.Equal(t, page.Items, left.Items, "the branch that was left has its checkpoints")

	runs, err := s.Runs(t.Context(), run.Session)
	require.NoError(t, err)
	require.Len(t, runs, 2)
	require.Equal(t, &agent.Forked{Session: run.Session, Run: run.ID, Checkpoint: first.ID}, runs[1].Forked)
	require.Equal(t, []agent.Status{agent.StatusCompleted, agent.StatusCompleted}, []agent.Status{runs[0].Status, runs[1].Status})

	edited, err := s.Fork(t.Context(), run.Session, &client.ForkOptions{Edit: true, Text: "pay nothing"})
	require.NoError(t, err)
	require.Equal(t, "cp-0", edited.ForkPlan.Checkpoint.ID, "the message is what the session began with")
	_, err = s.Fork(t.Context(), run.Session, &client.ForkOptions{Checkpoint: agent.CheckpointID(run.Session, 3)})
	require.ErrorIs(t, err, agent.CodeNotFound)
	_, err = s.Fork(t.Context(), run.Session, nil)
	require.ErrorIs(t, err, agent.CodeInvalidInput, "at the end the model has nothing to answer")
}

// A checkpoint of another session is refused, by the client and by the worker, before anything
// changes. So is its number alone. A fork in a session of its own names its checkpoints anew (HX-28).
func TestACheckpointOfAnotherSession(t *testing.T) {
	t.Parallel()
	l := &till{}
	replies := payments(2)
	s := setup(t, agent.Definition{}, testsuite.NewScript(append(replies, replies...)...), l.tool())
	mine, out := s.run(t, "pay two", &client.StartOptions{Limits: agent.Limits{Turns: 2}})
	require.Equal(t, agent.CodeLimitTurns, out.Error.Code)
	other, theirs := s.run(t, "pay two", nil)
	require.Equal(t, agent.StatusCompleted, theirs.Status, "%+v", theirs.Error)
	page, err := s.Checkpoints(t.Context(), other.Session, nil)
	require.NoError(t, err)
	foreign := page.Items[page.Total-2].ID
	seq, err := agent.CheckpointSeq(other.Session, foreign)
	require.NoError(t, err)
	own := agent.CheckpointID(mine.Session, seq)
	_, _, err = s.Checkpoint(t.Context(), mine.Session, own)
	require.NoError(t, err, "this session has a checkpoint with the same number")
	before, err := s.Runs(t.Context(), mine.Session)
	require.NoError(t, err)

	number := fmt.Sprintf("cp-%d", seq)
	for id, want := range map[string]agent.Code{foreign: agent.CodeNotFound, theirs.Checkpoint: agent.CodeNotFound, number: agent.CodeInvalidInput} {
		o := &client.ForkOptions{Checkpoint: id, Text: "go on"}
		_, err := s.Fork(t.Context(), mine.Session, o)
		require.ErrorIs(t, err, want)
		_, err = s.Retry(t.Context(), mine.Session, o)
		require.ErrorIs(t, err, want)
		_, _, err = s.Checkpoint(t.Context(), mine.Session, id)
		require.ErrorIs(t, err, want)
		_, err = s.Diff(t.Context(), mine.Session, "cp-0", id)
		require.ErrorIs(t, err, want)
		_, err = s.Diff(t.Context(), mine.Session, id, own)
		require.ErrorIs(t, err, want)
		for _, from := range []agent.StartFrom{{Checkpoint: id}, {Checkpoint: id, Retry: mine.ID}} {
			w, err := s.temporal.ExecuteWorkflow(t.Context(), temporal.StartWorkflowOptions{ID: mine.Session, TaskQueue: s.queue}, signals.WorkflowType,
				agent.Start{Agent: "tester", Input: agent.Input{Text: "go on"}, From: &from})
			require.NoError(t, err)
			o, err := s.here(t, w.GetID()).Result(t.Context())
			require.NoError(t, err)
			require.Equal(t, want, o.Error.Code, "%+v", o.Error)
		}
	}
	after, err := s.Runs(t.Context(), mine.Session)
	require.NoError(t, err)
	require.Equal(t, before, after)
	s.forksNameTheirOwn(t, other.Session, foreign)
}

// forksNameTheirOwn forks into a new session, where the checkpoint of the old one has another name.
func (s *stage) forksNameTheirOwn(t *testing.T, session, id string) {
	t.Helper()
	anew, err := s.Fork(t.Context(), session, &client.ForkOptions{Checkpoint: id, NewSession: true, Text: "go on"})
	require.NoError(t, err)
	fork, err := anew.Start(t.Context())
	require.NoError(t, err)
	o, err := fork.Result(t.Context())
	require.NoError(t, err)
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	_, _, err = s.Checkpoint(t.Context(), fork.Session, id)
	require.ErrorIs(t, err, agent.CodeNotFound)
	require.ErrorContains(t, err, "see fermata checkpoints "+fork.Session)
	named := 0
	for e, err := range s.Events(t.Context(), fork.Session, nil) {
		require.NoError(t, err)
		if e.Type != agent.EventTurnEnded {
			continue
		}
		w, err := e.Wire(e.Session, e.Run)
		require.NoError(t, err)
		var data struct{ Checkpoint string }
		require.NoError(t, json.Unmarshal(w.Data, &data))
		p, _, err := s.Checkpoint(t.Context(), fork.Session, data.Checkpoint)
		require.NoError(t, err)
		require.Equal(t, []any{e.Run, e.Turn}, []any{p.Run, p.Turn})
		named++
	}
	require.Greater(t, named, 2, "also those that the other session made")
	_, err = s.Fork(t.Context(), fork.Session, &client.ForkOptions{Checkpoint: o.Checkpoint, Text: "go on"})
	require.NoError(t, err)
}

// After each kind of failure a retry goes on where the run stood, with new limits,
// and pays nothing twice. It is another run of the same session (HX-42, HX-43, OA-39).
func TestRetryAfterEveryFailure(t *testing.T) {
	t.Parallel()
	broken := func(n int, kind agent.FaultKind) []testsuite.Reply {
		replies := payments(2)
		replies[1].Fail = make([]testsuite.Failure, n)
		for i := range replies[1].Fail {
			replies[1].Fail[i] = testsuite.Failure{Kind: kind, HTTP: 400, Message: "no"}
		}
		return replies
	}
	filtered := payments(2)
	filtered[1] = testsuite.Reply{Text: "I can't", Finish: "content_filter"}
	for name, c := range map[string]struct {
		def     agent.Definition
		replies []testsuite.Reply
		limits  agent.Limits
		code    agent.Code
		paid    int64 // with the retry's
		fails   bool  // again
	}{
		"the provider":    {replies: broken(1, agent.FaultBadRequest), code: agent.CodeProviderError, paid: 2},
		"the key":         {replies: broken(1, agent.FaultAuth), code: agent.CodeProviderAuth, paid: 2},
		"too few turns":   {replies: payments(2), limits: agent.Limits{Turns: 1}, code: agent.CodeLimitTurns, paid: 2},
		"too many tokens": {replies: payments(2), limits: agent.Limits{Tokens: 1}, code: agent.CodeLimitTokens, paid: 2},
		"a tool missing":  {replies: payments(2), def: agent.Definition{Require: []agent.OneOf{{"look"}}}, code: agent.CodeToolsMissing, paid: 2, fails: true},
		"only talk":       {replies: payments(2), def: agent.Definition{Completion: agent.CompletionTool, Nudges: 1}, code: agent.CodeStuck, paid: 2, fails: true},
		"a refusal":       {replies: filtered, code: agent.CodeRefusal, paid: 1, fails: true},
		"the output":      {replies: payments(2), def: agent.Definition{Output: json.RawMessage(`{"type":"object"}`)}, code: agent.CodeBadOutput, paid: 2, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			l := &till{}
			s := setup(t, c.def, testsuite.NewScript(c.replies...), l.tool())
			run, out := s.run(t, "pay two", &client.StartOptions{Limits: c.limits})
			require.Equal(t, c.code, out.Error.Code)
			_, err := run.Resume(t.Context(), nil)
			require.ErrorIs(t, err, agent.CodeClosed)
			anew, err := s.Retry(t.Context(), run.Session, nil)
			require.NoError(t, err)
			require.Len(t, anew.Kept, int(l.paid.Load()), "%+v", anew.ForkPlan)
			require.Empty(t, anew.MayRepeat)
			retry, err := anew.Start(t.Context())
			require.NoError(t, err)
			o, err := retry.Result(t.Context())
			require.NoError(t, err)
			require.Equal(t, []string{run.Session, retry.ID}, []string{o.Session, o.Run})
			require.Equal(t, []string{run.ID, retry.ID}, runsOf(t, s.Client, run.Session))
			require.Equal(t, c.fails, o.Status == agent.StatusFailed, "%+v", o.Error)
			require.Equal(t, c.paid, l.paid.Load())
			_, err = s.Retry(t.Context(), run.Session, nil)
			if !c.fails {
				require.ErrorIs(t, err, agent.CodeStale, "there is nothing to retry any more")
			}
		})
	}
}

// Of fifty retries at once one runs (HX-46).
func TestOneOfFiftyRetriesWins(t *testing.T) {
	t.Parallel()
	l := &till{}
	replies := payments(1)
	replies[1].Fail = []testsuite.Failure{{Kind: agent.FaultBadRequest, Message: "no"}}
	s := setup(t, agent.Definition{}, testsuite.NewScript(replies...), l.tool())
	run, _ := s.run(t, "pay", nil)
	anew, err := s.Retry(t.Context(), run.Session, nil)
	require.NoError(t, err)
	var won atomic.Int64
	s.race(t, 50, func(ctx context.Context, _ int) error {
		retry, err := anew.Start(ctx)
		if err != nil {
			require.ErrorIs(t, err, agent.CodeBusy)
			return err
		}
		o, err := retry.Result(ctx)
		require.NoError(t, err)
		if o.Status == agent.StatusCompleted {
			won.Add(1)
			return nil
		}
		require.ErrorIs(t, o.Error, agent.CodeStale, "it came when the other one had ended")
		return o.Error
	})
	require.EqualValues(t, 1, won.Load())
	runs, err := s.Runs(t.Context(), run.Session)
	require.NoError(t, err)
	require.Len(t, runs, 2, "the others have no part in the log")
	require.EqualValues(t, 1, l.paid.Load())
}

// What a terminated run had done is in the log of the session's next run, its
// calls closed and its end told (HX-39).
func TestTheNextRunRecoversATerminatedOne(t *testing.T) {
	t.Parallel()
	for name, from := range map[string]agent.EventType{"in a call": agent.EventCallStarted, "in a turn": agent.EventTurnStarted} {
		t.Run(name, func(t *testing.T) {
			hang := tool.New("hang", "", func(ctx context.Context, _ *tool.Call, _ struct{}) (string, error) {
				<-ctx.Done()
				return "", ctx.Err()
			}, nil)
			first := testsuite.Reply{Calls: call("hang", nil)}
			if from == agent.EventTurnStarted {
				first = testsuite.Reply{Text: "slow", Delay: time.Minute}
			}
			s := setup(t, agent.Definition{}, testsuite.NewScript(testsuite.Reply{Match: "are you there", Text: "I am"}, first), hang)
			run := s.begin(t, "remember 4711", &client.StartOptions{Session: "lost-" + s.queue})
			s.until(t, run, from)
			require.NoError(t, s.temporal.TerminateWorkflow(t.Context(), run.Session, run.ID, "a test"))
			// Runs that never began do not stand between.
			nobody, err := s.Start(t.Context(), "nobody", "go", &client.StartOptions{Session: run.Session})
			require.NoError(t, err)
			o, err := nobody.Result(t.Context())
			require.NoError(t, err)
			require.ErrorIs(t, o.Error, agent.CodeUnknownAgent)
			next, err := s.Start(t.Context(), "tester", "are you there?", &client.StartOptions{Session: run.Session})
			require.NoError(t, err)
			o, err = next.Result(t.Context())
			require.NoError(t, err)
			require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
			messages, err := s.Transcript(t.Context(), run.Session)
			require.NoError(t, err)
			require.Equal(t, "remember 4711", messages[0].Text())
			if from == agent.EventCallStarted {
				require.Equal(t, agent.CallUnknown, messages[2].Parts[0].Result.Status)
			}
			runs, err := s.Runs(t.Context(), run.Session)
			require.NoError(t, err)
			require.Equal(t, []string{run.ID, next.ID}, []string{runs[0].Run, runs[1].Run})
			s.keep(t, "recovered", next.Session, next.ID)
			require.Equal(t, agent.StatusCancelled, runs[0].Status)
			require.Equal(t, agent.ReasonTerminated, runs[0].Reason)
		})
	}
}

// Without Temporal's history the session goes on from the store (HL-44, HX-09,
// HX-11, OA-86).
func TestASessionOutlivesItsHistory(t *testing.T) {
	t.Parallel()
	l := &till{}
	s := on(t, shared(t))
	s.work(t, agent.Definition{}, testsuite.NewScript(testsuite.Reply{Match: "and now", Text: "you had said hello"}, testsuite.Reply{Text: "hello"}), l.tool())
	run, _ := s.run(t, "hello", &client.StartOptions{Session: "old-" + s.queue})
	s.forget(t, run.Session, []string{run.ID})
	messages, err := s.Transcript(t.Context(), run.Session)
	require.NoError(t, err)
	require.Len(t, messages, 2)
	old, err := s.Get(t.Context(), run.Session)
	require.NoError(t, err)
	require.Equal(t, run.ID, old.ID)
	o, err := old.Result(t.Context())
	require.NoError(t, err)
	require.Equal(t, "hello", o.Text)
	next, err := s.Send(t.Context(), run.Session, "and now?", nil) // nobody has to say whose it was
	require.NoError(t, err)
	o, err = next.Result(t.Context())
	require.NoError(t, err)
	require.Equal(t, "you had said hello", o.Text)
	messages, err = s.Transcript(t.Context(), run.Session)
	require.NoError(t, err)
	require.Equal(t, "hello", messages[0].Text())
	require.Len(t, messages, 4)
}

// One message that is posted twice is one, whether there is a worker or not, and
// also where the run that took it has ended.
func TestOnePostTwiceIsOneMessage(t *testing.T) {
	t.Parallel()
	s := on(t, shared(t))
	session, post := "post-"+s.queue, &client.SendOptions{ID: "m-1", Agent: "tester"}
	first, err := s.Send(t.Context(), session, "hello", post)
	require.NoError(t, err, "it is left for the worker that comes")
	again, err := s.Send(t.Context(), session, "hello", post)
	require.NoError(t, err)
	require.Equal(t, first.ID, again.ID)
	s.work(t, agent.Definition{}, testsuite.NewScript(testsuite.Reply{Text: "hi"}, testsuite.Reply{Text: "bye"}))
	o, err := first.Result(t.Context())
	require.NoError(t, err)
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	require.Equal(t, 1, o.Turns)
	again, err = s.Send(t.Context(), session, "hello", post)
	require.NoError(t, err)
	require.Equal(t, first.ID, again.ID, "the run that has it")
	// Somebody who starts a run with it by hand can't know: the run refuses it.
	late, err := s.temporal.ExecuteWorkflow(t.Context(), temporal.StartWorkflowOptions{ID: session, TaskQueue: s.queue}, signals.WorkflowType,
		agent.Start{Agent: "tester", Input: agent.Input{Text: "hello"}, ID: "m-1"})
	require.NoError(t, err)
	var app *sdktemporal.ApplicationError
	require.ErrorAs(t, late.Get(t.Context(), nil), &app)
	require.Equal(t, string(agent.CodeStale), app.Type())
	second, err := s.Send(t.Context(), session, "and goodbye", &client.SendOptions{ID: "m-2"})
	require.NoError(t, err)
	o, err = second.Result(t.Context())
	require.NoError(t, err)
	require.Equal(t, "bye", o.Text)
	messages, err := s.Transcript(t.Context(), session)
	require.NoError(t, err)
	require.Len(t, messages, 4)
}

// breakable is a store that can be told to fail.
type breakable struct {
	store.Store
	down atomic.Bool
}

func (b *breakable) PutHead(ctx context.Context, h store.Head) error {
	if b.down.Load() && h.Run != "" { // a run may begin
		return agent.Errorf(agent.CodeStoreUnavailable, "the disk is full")
	}
	return b.Store.PutHead(ctx, h)
}

// A run whose suspension can't be stored does not say that it is suspended; it
// says why, and rests when the store is back (HL-12, HL-13, OA-08, OA-60, OA-61,
// OA-62, OA-82, OA-106).
func TestTheStoreFailsAtASuspension(t *testing.T) {
	t.Parallel()
	s := on(t, shared(t))
	b := &breakable{Store: s.dir}
	b.down.Store(true)
	s.store = b
	s.work(t, agent.Definition{Tools: []string{agent.AskUserTool}}, testsuite.NewScript(asks("Where to?"), testsuite.Reply{Text: "done"}))
	run := s.begin(t, "go", nil)
	require.Eventually(t, func() bool {
		v, err := run.Status(t.Context())
		require.NoError(t, err)
		require.NotEqual(t, agent.StatusSuspended, v.Status)
		return v.StoreError != nil
	}, patience, 50*time.Millisecond)
	v, err := run.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, agent.StatusSuspending, v.Status)
	require.Equal(t, agent.CodeStoreUnavailable, v.StoreError.Code)
	_, err = store.NewLog(s.dir).Head(t.Context(), run.Session)
	require.ErrorIs(t, err, agent.CodeNotFound, "nothing was stored")
	b.down.Store(false)
	s.suspended(t, run)
	head, err := s.dir.Head(t.Context(), run.Session)
	require.NoError(t, err)
	require.Equal(t, agent.StatusSuspended, head.Status)
	stored, err := store.NewLog(s.dir).View(t.Context(), head.Digest) // who reads the session has all of it
	require.NoError(t, err)
	require.Equal(t, agent.EventRunSuspended, stored.Events()[len(stored.Events())-1].Type)
	require.Equal(t, v.Seq, head.Seq)
	v, err = run.Status(t.Context())
	require.NoError(t, err)
	require.Nil(t, v.StoreError)
}

// The state that an older version of an agent has kept is migrated for the newer
// (OA-105), and its next run has it (HX-02).
func TestStateIsMigrated(t *testing.T) {
	t.Parallel()
	l := &till{}
	s := on(t, shared(t))
	w := s.work(t, agent.Definition{StateVersion: 1}, testsuite.NewScript(payments(1)...), l.tool())
	session := "state-" + s.queue
	_, o := s.run(t, "pay", &client.StartOptions{Session: session})
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	w.Stop()

	read := tool.New("read", "", func(ctx context.Context, c *tool.Call, _ struct{}) (string, error) {
		cents, _, err := tool.Key[int]("cents").Get(ctx, c)
		return fmt.Sprint(cents), err
	}, nil)
	second := agent.Definition{StateVersion: 2}
	script := func() *testsuite.Script {
		return testsuite.NewScript(testsuite.Reply{Match: "how much", Calls: call("read", nil)}, testsuite.Reply{Text: "x"}, testsuite.Reply{Text: "x"}, testsuite.Reply{Text: "x"}, testsuite.Reply{Text: "done"})
	}
	w = s.work(t, second, script(), read)
	_, o = s.run(t, "how much?", &client.StartOptions{Session: session})
	require.ErrorIs(t, o.Error, agent.CodeMigrationMissing)
	w.Stop()

	s.migrations = []activities.Migration{{From: 1, To: 2, Migrate: func(state map[string]json.RawMessage) (map[string]json.RawMessage, error) {
		return map[string]json.RawMessage{"cents": json.RawMessage(string(state["sum"]) + "00")}, nil
	}}}
	s.work(t, second, script(), read)
	run, o := s.run(t, "how much?", &client.StartOptions{Session: session})
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	messages, err := s.Transcript(t.Context(), run.Session)
	require.NoError(t, err)
	require.Equal(t, "100", messages[len(messages)-2].Parts[0].Result.Text)
}

// A run that carries a summary over knows it, and not what was said (HA-101).
func TestCarryCompact(t *testing.T) {
	t.Parallel()
	script := testsuite.NewScript(testsuite.Reply{Match: "Your summary will replace", Text: "we said hello"}, testsuite.Reply{Text: "hello"}, testsuite.Reply{Text: "hello"})
	s := setup(t, agent.Definition{}, script)
	session := "carry-" + s.queue
	s.run(t, "a secret word", &client.StartOptions{Session: session})
	run, o := s.run(t, "and now?", &client.StartOptions{Session: session, Carry: agent.CarryCompact})
	s.keep(t, "summed-up", session, run.ID)
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	requests := script.Requests()
	last := requests[len(requests)-1].Messages
	require.Equal(t, []string{"we said hello", "and now?"}, []string{last[0].Text(), last[1].Text()})
}

func asks(question string) testsuite.Reply {
	return testsuite.Reply{Calls: call(agent.AskUserTool, map[string]any{"question": question})}
}
