package workflows_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/testsuite"
)

// start starts the agent with more than a text.
func (b *bench) start(t *testing.T, start agent.Start) *agent.Outcome {
	t.Helper()
	start.Agent, start.Input.Text = "tester", "go"
	payload, err := converter.GetDefaultDataConverter().ToPayload(start)
	require.NoError(t, err)
	b.play(payload)
	return b.outcome(t)
}

func (b *bench) signal(name, payload string) { b.SignalWorkflow(name, json.RawMessage(payload)) }

// status asks the run how it stands.
func (b *bench) status(t *testing.T) (s agent.RunStatus) {
	t.Helper()
	v, err := b.QueryWorkflow(signals.Status.Name)
	require.NoError(t, err)
	require.NoError(t, v.Get(&s))
	return s
}

// A week parked costs no working time, and ends by itself (HL-76, HL-77, HL-82, PA-33).
func TestParkedForAWeek(t *testing.T) {
	b := setup(t, agent.Definition{Limits: agent.Limits{WallClock: agent.Duration(time.Hour)}}, testsuite.NewScript(testsuite.Reply{Text: "done"}))
	begun := b.Now()
	b.after(100*time.Hour, func() { require.Equal(t, agent.StatusSuspended, b.status(t).Status) })
	o := b.start(t, agent.Start{Park: &agent.Conditions{After: agent.Duration(168 * time.Hour), OnTimeout: agent.OnTimeoutResumeWithInput, Input: "look again"}})
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	require.Equal(t, 168*time.Hour, time.Duration(o.SuspendedFor).Round(time.Minute))
	require.Equal(t, 168*time.Hour, b.Now().Sub(begun).Round(time.Minute))
	require.Equal(t, 1, b.executions, "a long wait goes on in a new execution, once")
	messages := b.script.Requests()[0].Messages
	require.Equal(t, "look again", messages[1].Text())
	require.Equal(t, agent.NoteResumed, messages[2].Note)
}

// What a park waited for is disarmed when somebody resumes the run, or ends it: a time
// that comes later does nothing, and neither does an event (HL-62, HL-80).
func TestWhatIsDisarmed(t *testing.T) {
	conditions := &agent.Conditions{Any: []agent.Condition{
		{After: agent.Duration(time.Hour)}, {Event: &agent.EventCondition{Topic: "orders.paid"}},
	}, OnTimeout: agent.OnTimeoutFail}
	late := func(b *bench) {
		b.after(90*time.Minute, func() { b.signal("emit", `{"topic":"orders.paid"}`) })
		b.after(2*time.Hour, func() {
			s := b.status(t)
			require.Equal(t, agent.CodeStale, s.Refused[0].Error.Code)
			require.Equal(t, agent.SuspensionInputRequired, s.Suspension.Kind, "it waits for an answer, and for nothing else")
			b.signal("answer", `{"request":"q-1","text":"Rome"}`)
		})
	}
	b := setup(t, agent.Definition{Tools: []string{agent.AskUserTool}}, testsuite.NewScript(asks("Where to?"), testsuite.Reply{Text: "done"}))
	b.after(59*time.Minute, func() { b.signal("resume", `{}`) })
	late(b)
	o := b.start(t, agent.Start{Park: conditions})
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)

	for verb, want := range map[string]agent.Status{"cancel": agent.StatusCancelled, "stop": agent.StatusStopped} {
		b := setup(t, agent.Definition{}, testsuite.NewScript(testsuite.Reply{Text: `{"summary":"nothing"}`}))
		begun := b.Now()
		b.after(20*time.Minute, func() { b.signal(verb, `{}`) })
		o := b.start(t, agent.Start{Park: conditions})
		require.Equal(t, want, o.Status, "%+v", o.Error)
		require.Less(t, b.Now().Sub(begun), 21*time.Minute, "nothing holds it until the time comes")
	}
}

// A refused signal has the by of its payload, if that could be read.
func TestARefusedSignalSaysWhoSentIt(t *testing.T) {
	b := setup(t, agent.Definition{}, testsuite.NewScript())
	b.after(time.Hour, func() {
		b.signal("emit", `{"by":"ana","topic":"orders.paid"}`)
		b.signal("emit", `{"topic":"orders.paid"}`)
		b.signal("pause", `{"by":"bo","reson":"lunch"}`)
		b.signal("interupt", `{"by":"bo"}`)
	})
	b.after(2*time.Hour, func() {
		var by []string
		for _, r := range b.status(t).Refused {
			by = append(by, r.Verb+" by "+r.By)
		}
		require.Equal(t, []string{"emit by ana", "emit by ", "pause by ", "interupt by "}, by)
		b.signal("cancel", `{"by":"ana"}`)
	})
	o := b.start(t, agent.Start{Park: &agent.Conditions{After: agent.Duration(72 * time.Hour)}})
	require.Equal(t, []any{agent.StatusCancelled, "ana"}, []any{o.Status, o.By})
}

// A time that has come may fail or cancel the run (HL-75).
func TestParksThatEndRuns(t *testing.T) {
	for on, want := range map[agent.OnTimeout]agent.Status{agent.OnTimeoutFail: agent.StatusFailed, agent.OnTimeoutCancel: agent.StatusCancelled} {
		b := setup(t, agent.Definition{}, testsuite.NewScript(testsuite.Reply{Text: "done"}))
		o := b.start(t, agent.Start{Park: &agent.Conditions{After: agent.Duration(72 * time.Hour), OnTimeout: on}})
		require.Equal(t, want, o.Status)
		require.Empty(t, b.script.Requests())
	}
}

// An event that comes first disarms the time; one that does not fit does nothing
// (HL-73, HL-79, OA-17).
func TestTheFirstConditionWins(t *testing.T) {
	b := setup(t, agent.Definition{}, testsuite.NewScript(testsuite.Reply{Text: "done"}))
	b.after(time.Hour, func() { b.signal("emit", `{"topic":"orders.paid","payload":{"order":7}}`) })
	b.after(2*time.Hour, func() {
		s := b.status(t)
		require.Equal(t, agent.StatusSuspended, s.Status)
		require.Equal(t, agent.CodeStale, s.Refused[0].Error.Code)
		b.signal("emit", `{"topic":"orders.paid","payload":{"order":118}}`)
	})
	begun := b.Now()
	o := b.start(t, agent.Start{Park: &agent.Conditions{Any: []agent.Condition{
		{After: agent.Duration(72 * time.Hour)},
		{Event: &agent.EventCondition{Topic: "orders.paid", Match: json.RawMessage(`{"properties":{"order":{"const":118}}}`)}},
	}, OnTimeout: agent.OnTimeoutFail}})
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	require.Less(t, b.Now().Sub(begun), 3*time.Hour)
}

// A question reminds after a day, and is decided after three (PA-01, X-15).
func TestQuestionsThatNobodyAnswers(t *testing.T) {
	asking := agent.AnswerTimeouts{Remind: agent.Duration(24 * time.Hour), Deadline: agent.Duration(72 * time.Hour), Default: "Rome"}
	b := setup(t, agent.Definition{Tools: []string{agent.AskUserTool}, AnswerTimeouts: asking}, testsuite.NewScript(
		testsuite.Reply{Calls: []testsuite.Call{{Tool: agent.AskUserTool, Arguments: map[string]any{"question": "Where to?"}}}}, testsuite.Reply{Text: "done"}))
	b.after(80*time.Hour, func() { b.signal("answer", `{"request":"q-1","text":"Oslo"}`) }) // too late: the run is over
	o := b.start(t, agent.Start{})
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	require.Equal(t, "Rome", rows(b, 1)[0].Text)
	require.Equal(t, 72*time.Hour, time.Duration(o.SuspendedFor).Round(time.Minute))
}

// Signals are heard in the order in which they were sent, whatever their names.
func TestSignalsKeepTheirOrder(t *testing.T) {
	b := setup(t, agent.Definition{}, testsuite.NewScript(testsuite.Reply{Text: "done"}))
	b.after(time.Hour, func() {
		b.signal("pause", `{"reason":"1"}`)
		b.signal("resume", `{}`)
		b.signal("interrupt", `{"reason":"2"}`)
		b.signal("resume", `{}`)
		b.signal("pause", `{"reason":"3"}`)
	})
	b.after(2*time.Hour, func() {
		s := b.status(t)
		require.Empty(t, s.Refused)
		require.Equal(t, "h-3", s.Suspension.Holds[0].ID)
		require.Equal(t, "3", s.Suspension.Holds[0].Reason)
		b.signal("resume", `{}`)
		require.Equal(t, agent.SuspensionParked, s.Suspension.Kind)
	})
	b.after(3*time.Hour, func() { b.signal("resume", `{"message":"now"}`) })
	o := b.start(t, agent.Start{Park: &agent.Conditions{}})
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
}
