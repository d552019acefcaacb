package e2e

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

// begin starts the agent and does not wait.
func (s *stage) begin(t *testing.T, text string, o *client.StartOptions) *client.Run {
	t.Helper()
	run, err := s.Start(t.Context(), "tester", text, o)
	require.NoError(t, err)
	return run
}

// rest waits for the run's next rest or end.
func (s *stage) rest(t *testing.T, run *client.Run) *agent.Outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	o, err := run.Wait(ctx)
	require.NoError(t, err)
	return o
}

// suspended waits for the run to rest, and returns on what it waits.
func (s *stage) suspended(t *testing.T, run *client.Run) *agent.Suspension {
	t.Helper()
	o := s.rest(t, run)
	require.Equal(t, agent.StatusSuspended, o.Status, "%+v", o.Error)
	return o.Suspension
}

// say says something by update.
func (s *stage) say(t *testing.T, run *client.Run, c agent.Command) agent.Ack {
	t.Helper()
	ack, err := signals.Update(t.Context(), s.temporal, run.Session, c)
	require.NoError(t, err)
	return ack
}

// block is a tool that runs until it is let go, or gives what it has when it is stopped.
func block(begun chan<- string) tool.Tool {
	return tool.New("block", "waits", func(ctx context.Context, c *tool.Call, _ struct{}) (string, error) {
		begun <- c.ID
		<-ctx.Done()
		return "half of it", nil
	}, nil)
}

// An interrupt stops the model's stream and keeps what it said; the next request
// ends with a note that is not stored (HL-29, HX-15, HX-18, HX-20, HX-51,
// PA-13). Why stands in the status and in the events (HX-94).
func TestInterruptAModel(t *testing.T) {
	t.Parallel()
	s := setup(t, agent.Definition{}, testsuite.NewScript(
		testsuite.Reply{Text: "I begin to " + strings.Repeat("talk ", 1000), Stream: 20 * time.Millisecond}, testsuite.Reply{Text: "done"}))
	run := s.begin(t, "go", nil)
	<-s.said // the model has begun to talk
	ack, err := run.Interrupt(t.Context(), "the client rings", nil)
	require.NoError(t, err)
	require.Equal(t, agent.EffectAccepted, ack.Effect)
	w := s.suspended(t, run)
	require.Equal(t, agent.SuspensionHeld, w.Kind)
	require.Equal(t, "the client rings", w.Holds[0].Reason)
	_, err = run.Resume(t.Context(), &client.ResumeOptions{Message: "go on, briefly"})
	require.NoError(t, err)
	o := s.rest(t, run)
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	require.Positive(t, o.SuspendedFor)
	messages, err := s.Transcript(t.Context(), run.Session)
	require.NoError(t, err)
	require.NotContains(t, messagesText(messages), "You were suspended")
	require.Equal(t, "go", messages[0].Text(), "what was said first is not lost")
	require.True(t, messages[1].Partial)
	require.Contains(t, messages[1].Text(), "I")
	require.Contains(t, messagesText(messages), "go on, briefly")
	var why []string
	for e, err := range run.Follow(t.Context(), "") {
		require.NoError(t, err)
		if e.Type == agent.EventHoldAdded {
			why = append(why, e.Hold.Reason)
		}
		if e.Type == agent.EventRunSuspended {
			why = append(why, e.Suspension.Reason)
		}
	}
	require.Equal(t, []string{"the client rings", "the client rings"}, why)
}

func messagesText(messages []agent.Message) (text string) {
	for _, m := range messages {
		text += m.Text() + "\n"
	}
	return text
}

// A tool sees its context cancelled at once, and what it returns then is kept
// (HL-34, HX-22, OA-07).
func TestInterruptATool(t *testing.T) {
	t.Parallel()
	begun := make(chan string, 1)
	script := testsuite.NewScript(testsuite.Reply{Calls: call("block", nil)}, testsuite.Reply{Text: "done"})
	s := setup(t, agent.Definition{}, script, block(begun))
	run := s.begin(t, "go", nil)
	<-begun
	_, err := run.Interrupt(t.Context(), "", nil)
	require.NoError(t, err)
	s.suspended(t, run)
	_, err = run.Resume(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, agent.StatusCompleted, s.rest(t, run).Status)
	asked := script.Requests()
	messages := asked[len(asked)-1].Messages
	result := messages[len(messages)-2].Parts[0].Result
	require.Equal(t, "half of it", result.Text)
	require.True(t, result.Partial)
	require.Equal(t, agent.NoteResumed, messages[len(messages)-1].Note)

	next := s.begin(t, "and on", &client.StartOptions{Session: run.Session, Carry: agent.CarryReset})
	<-begun // no hold of the run before stops the session's next one
	_, err = next.Cancel(t.Context(), "", nil)
	require.NoError(t, err)
	require.Equal(t, agent.StatusCancelled, s.rest(t, next).Status)
}

// Of 50 resumes at once one wins; the others learn how the run stands; the history
// has one acceptance and one event (HL-40, HL-41, HX-32, HX-33, OA-32, PA-21).
func TestFiftyResumes(t *testing.T) {
	t.Parallel()
	s := setup(t, agent.Definition{}, testsuite.NewScript(testsuite.Reply{Text: "slow", Delay: 2 * time.Second}))
	run := s.begin(t, "go", nil)
	s.until(t, run, agent.EventTurnStarted)
	_, err := run.Interrupt(t.Context(), "", nil)
	require.NoError(t, err)
	s.suspended(t, run)
	before := s.count(t, run, enums.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED)
	won, lost := s.race(t, 50, func(ctx context.Context, _ int) error {
		_, err := signals.Update(ctx, s.temporal, run.Session, agent.ResumeCommand{})
		return err
	})
	require.Equal(t, 1, won)
	require.Len(t, lost, 49)
	for _, err := range lost {
		require.ErrorIs(t, err, agent.CodeNotSuspended)
		var e *agent.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, agent.StatusRunning, e.Status)
	}
	require.Equal(t, before+1, s.count(t, run, enums.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED))
	require.Equal(t, agent.StatusCompleted, s.rest(t, run).Status)
	require.Equal(t, 1, s.events(t, run, agent.EventRunResumed))
}

// race does something n times at once, and tells who won and how the others lost.
func (s *stage) race(t *testing.T, n int, do func(context.Context, int) error) (won int, lost []error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var mu sync.Mutex
	var all sync.WaitGroup
	gate := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-gate
			err := do(ctx, i)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won++
			} else {
				lost = append(lost, err)
			}
		})
	}
	close(gate)
	all.Wait()
	return won, lost
}

func (s *stage) count(t *testing.T, run *client.Run, want enums.EventType) (n int) {
	t.Helper()
	for _, e := range s.history(t, run.Session, run.ID) {
		if e.EventType == want {
			n++
		}
	}
	return n
}

// events counts a run's events of one type, the run being at its end.
func (s *stage) events(t *testing.T, run *client.Run, want agent.EventType) (n int) {
	t.Helper()
	for e, err := range run.Follow(t.Context(), "") {
		require.NoError(t, err)
		if e.Type == want {
			n++
		}
	}
	return n
}

// Approve against reject: one decides, and the call is made once or not at all
// (HX-51, HX-55, HX-87, HA-112).
func TestApproveAgainstReject(t *testing.T) {
	t.Parallel()
	var paid sync.Map
	pay := tool.New("pay", "pays", func(_ context.Context, c *tool.Call, in struct{ Eur int }) (string, error) {
		paid.Store(c.Key, in.Eur)
		return "paid", nil
	}, nil)
	s := setup(t, agent.Definition{Rules: []agent.Rule{{Do: agent.RulingAsk, Tools: []string{"pay"}}}}, testsuite.NewScript(
		testsuite.Reply{Calls: call("pay", map[string]any{"Eur": 800})}, testsuite.Reply{Text: "done"}), pay)
	for range 5 {
		run := s.begin(t, "go", nil)
		w := s.suspended(t, run)
		require.Equal(t, agent.SuspensionInputRequired, w.Kind)
		q := w.Requests[0]
		require.JSONEq(t, `{"Eur":800}`, string(q.Call.Arguments))
		won, lost := s.race(t, 2, func(ctx context.Context, i int) error {
			if i == 0 {
				_, err := s.Approve(ctx, q, &client.ApproveOptions{By: "ana"})
				return err
			}
			_, err := s.Reject(ctx, q, "no", &client.RejectOptions{By: "bo"})
			return err
		})
		require.Equal(t, 1, won)
		require.Len(t, lost, 1)
		require.Contains(t, []agent.Code{agent.CodeStale, agent.CodeClosed}, agent.CodeOf(lost[0]), "the run may have gone on to its end meanwhile")
		o := s.rest(t, run)
		require.Equal(t, agent.StatusCompleted, o.Status)
		_, was := paid.Load(agent.IdempotencyKey(run.ID, "t1.1"))
		require.Equal(t, was, o.Tools[0].OK == 1)
	}
}

// A parked run is woken by an event that fits, which its emitter need not know.
// Whoever waits for the run is told why it rests and for what (HL-17, HL-25, HL-28, HL-73, HL-78, OA-01, OA-09).
func TestParkAndEmit(t *testing.T) {
	t.Parallel()
	s := setup(t, agent.Definition{Tools: []string{agent.AwaitResumptionTool}}, testsuite.NewScript(
		testsuite.Reply{Calls: call(agent.AwaitResumptionTool, map[string]any{"reason": "not paid", "conditions": map[string]any{
			"event": map[string]any{"topic": "orders.paid", "match": map[string]any{"type": "object", "properties": map[string]any{"order": map[string]any{"const": 118}}}}}})},
		testsuite.Reply{Text: "thank you"}))
	run := s.begin(t, "go", nil)
	rest := s.rest(t, run)
	require.Equal(t, []any{agent.StatusSuspended, run.Session, run.ID, 1}, []any{rest.Status, rest.Session, rest.Run, rest.Turns})
	w := rest.Suspension
	require.Equal(t, []any{agent.SuspensionParked, agent.InitiatorSelf, "not paid", "orders.paid"}, []any{w.Kind, w.Initiator, w.Reason, w.Conditions.Event.Topic})
	s.say(t, run, agent.PauseCommand{Reason: "not now"})
	_, err := signals.Update(t.Context(), s.temporal, run.Session, agent.EmitCommand{Topic: "orders.paid", Payload: json.RawMessage(`{"order":7}`)})
	require.ErrorIs(t, err, agent.CodeStale)
	s.say(t, run, agent.EmitCommand{Topic: "orders.paid", Payload: json.RawMessage(`{"order":118}`)})
	st, err := run.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, agent.StatusSuspended, st.Status, "it is held, whatever comes")
	_, err = run.Resume(t.Context(), nil)
	require.NoError(t, err)
	o := s.rest(t, run)
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
}

// A stop ends the run with a handoff, in whatever state it is (HL-53, HX-31,
// PA-71).
func TestStop(t *testing.T) {
	t.Parallel()
	begun := make(chan string, 1)
	summary := `{"summary":"half was done","done":[{"what":"the first half"}],"confidence":0.9}`
	s := setup(t, agent.Definition{}, testsuite.NewScript(
		testsuite.Reply{Calls: call("block", nil)}, testsuite.Reply{Text: summary}), block(begun))
	run := s.begin(t, "Write a report", nil)
	<-begun
	_, err := run.Stop(t.Context(), "budget meeting", &client.StopOptions{Deadline: 12 * time.Second})
	require.NoError(t, err)
	o := s.rest(t, run)
	require.Equal(t, agent.StatusStopped, o.Status, "%+v", o.Error)
	require.NotNil(t, o.Handoff)
	require.Equal(t, "half was done", o.Handoff.Summary)
	require.Equal(t, agent.SummarizedByModel, o.Handoff.SummarizedBy)
	_, err = run.Resume(t.Context(), nil)
	require.ErrorIs(t, err, agent.CodeClosed)

	next := s.begin(t, "Go on", &client.StartOptions{Briefing: o.Handoff})
	<-begun
	messages, err := s.Transcript(t.Context(), next.Session)
	require.NoError(t, err)
	require.Contains(t, messages[0].Text(), "half was done")
	_, err = next.Cancel(t.Context(), "enough", nil)
	require.NoError(t, err)
	require.Equal(t, agent.StatusCancelled, s.rest(t, next).Status)
}

// What can't be told is shown: a signal that is refused changes nothing else
// (HL-40, HX-30, PA-18).
func TestRefusedSignalsAreShown(t *testing.T) {
	t.Parallel()
	begun := make(chan string, 1)
	s := setup(t, agent.Definition{}, testsuite.NewScript(testsuite.Reply{Calls: call("block", nil)}, testsuite.Reply{Text: "done"}), block(begun))
	run := s.begin(t, "go", nil)
	<-begun
	for _, c := range []struct{ name, payload string }{{"interupt", `{}`}, {"pause", `{"reson":"x"}`}, {"resume", `{}`}} {
		require.NoError(t, s.temporal.SignalWorkflow(t.Context(), run.Session, "", c.name, json.RawMessage(c.payload)))
	}
	s.say(t, run, agent.SendCommand{Text: "hi"}) // whoever hears this has heard the signals
	st, err := run.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, agent.StatusRunning, st.Status)
	require.Len(t, st.Refused, 3)
	require.Equal(t, "interupt", st.Refused[0].Verb)
	require.Equal(t, "reson", st.Refused[1].Error.Path)
	require.Equal(t, agent.CodeNotSuspended, st.Refused[2].Error.Code)
	_, err = run.Cancel(t.Context(), "", nil)
	require.NoError(t, err)
	require.Equal(t, agent.StatusCancelled, s.rest(t, run).Status)
}

// A person may interrupt the same call again and again: it is not the model that repeats it. A tool whose
// context ends has failed by its own word.
func TestInterruptsAreNoRepeats(t *testing.T) {
	t.Parallel()
	began := make(chan struct{}, 100)
	slow := tool.New("slow", "", func(ctx context.Context, _ *tool.Call, _ struct{}) (string, error) {
		began <- struct{}{}
		<-ctx.Done()
		return "", ctx.Err()
	}, nil)
	const interrupts = 6
	replies := slices.Repeat([]testsuite.Reply{{Calls: call("slow", nil)}}, interrupts)
	s := setup(t, agent.Definition{Lessons: true}, testsuite.NewScript(append(replies, testsuite.Reply{Text: "done"})...), slow)
	run := s.begin(t, "go", nil)
	for range interrupts {
		select {
		case <-began:
		case <-t.Context().Done():
			t.FailNow()
		}
		_, err := run.Interrupt(t.Context(), "", nil)
		require.NoError(t, err)
		require.Equal(t, agent.StatusSuspended, s.rest(t, run).Status)
		_, err = run.Resume(t.Context(), nil)
		require.NoError(t, err)
	}
	out, err := run.Result(t.Context())
	require.NoError(t, err)
	require.Equal(t, "done", out.Text)
}
