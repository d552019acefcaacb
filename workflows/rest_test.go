package workflows_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

func asks(question string) testsuite.Reply {
	return testsuite.Reply{Calls: []testsuite.Call{{Tool: agent.AskUserTool, Arguments: map[string]any{"question": question}}}}
}

// A question without a deadline waits for as long as it takes, as the same
// suspension, whatever the run's working time is; then it is answered (OA-58, OA-64).
func TestAQuestionWaitsForMonths(t *testing.T) {
	b := setup(t, agent.Definition{Tools: []string{agent.AskUserTool}, Limits: agent.Limits{WallClock: agent.Duration(time.Hour)}},
		testsuite.NewScript(asks("Where to?"), testsuite.Reply{Text: "done"}))
	for _, days := range []time.Duration{1, 30, 90} {
		b.after(days*24*time.Hour, func() {
			s := b.status(t)
			require.Equal(t, agent.StatusSuspended, s.Status)
			require.Equal(t, "s-1", s.Suspension.ID)
			require.Equal(t, "q-1", s.Suspension.Requests[0].ID)
			require.Zero(t, s.Suspension.Expires)
		})
	}
	b.after(100*24*time.Hour, func() { b.signal("answer", `{"request":"q-1","text":"Rome"}`) })
	o := b.start(t, agent.Start{})
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	require.Equal(t, "Rome", rows(b, 1)[0].Text)
	require.Equal(t, 100*24*time.Hour, time.Duration(o.SuspendedFor).Round(time.Hour))
}

// What a run used before a rest is told at the rest and counts after it: turns,
// tokens, cost, and what became of each tool's calls (HA-26, HA-27, OA-22, PA-25).
func TestWhatWasUsedCountsOverARest(t *testing.T) {
	tries := 0
	flaky := tool.New("flaky", "", func(context.Context, *tool.Call, none) (string, error) {
		if tries++; tries == 1 {
			return "", errors.New("not yet")
		}
		return "at last", nil
	}, nil)
	replies := []testsuite.Reply{{Calls: calls("flaky")}, {Calls: calls("flaky", "nope")}, asks("Go on?"), {Text: "done"}}
	for i := range replies {
		replies[i].Usage = testsuite.Usage{Input: 100, Output: 10}
	}
	b := setup(t, agent.Definition{Tools: []string{agent.AskUserTool}}, testsuite.NewScript(replies...), flaky)
	priced := b.acts.Agents["tester"]
	priced.Spec.Price = agent.Price{Input: agent.Dollar, Output: agent.Dollar}
	b.acts.Agents["tester"] = priced
	b.after(time.Hour, func() {
		s := b.status(t)
		require.Equal(t, agent.StatusSuspended, s.Status)
		require.Equal(t, 3, s.Turn)
		require.Equal(t, agent.Usage{Input: 300, Output: 30}, s.Usage)
		require.EqualValues(t, 330, s.Cost)
		b.signal("answer", `{"request":"q-1","text":"yes"}`)
	})
	o := b.start(t, agent.Start{})
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	require.Equal(t, 4, o.Turns)
	require.Equal(t, agent.Usage{Input: 400, Output: 40}, o.Usage)
	require.EqualValues(t, 440, o.Cost)
	require.Equal(t, []agent.ToolCount{
		{Tool: "flaky", Calls: 2, OK: 1, Failed: 1}, {Tool: "nope", Calls: 1, Rejected: 1}, {Tool: agent.AskUserTool, Calls: 1, OK: 1},
	}, o.Tools)
	require.Equal(t, time.Hour, time.Duration(o.SuspendedFor).Round(time.Minute))
	require.GreaterOrEqual(t, o.Ended.Sub(o.Started), time.Duration(o.SuspendedFor))
}

// What a run waits for is shown as it was said, and what an event brings reaches
// the model as it was sent (OA-16).
func TestNothingIsChangedOnTheWay(t *testing.T) {
	const match = `{"properties":{"order":{"const":118}},"x-note":{"a":[1,{"b":null}],"é":"ü"}}`
	const payload = `{"order":118,"big":12345678901234567890,"lines":[{"é":"ü","x":null},[]],"rate":1.10}`
	b := setup(t, agent.Definition{}, testsuite.NewScript(testsuite.Reply{Text: "done"}))
	b.after(time.Hour, func() {
		shown := b.status(t).Suspension.Conditions
		require.Equal(t, "orders.paid", shown.Event.Topic)
		require.JSONEq(t, match, string(shown.Event.Match))
		b.signal("emit", `{"topic":"orders.paid","payload":`+payload+`}`)
	})
	o := b.start(t, agent.Start{Park: &agent.Conditions{Event: &agent.EventCondition{Topic: "orders.paid", Match: json.RawMessage(match)}}})
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	require.Equal(t, "Event orders.paid: "+payload, b.script.Requests()[0].Messages[1].Text())
}

// A provider that names no time is left alone for 2, 4, 8 … and at most 30
// seconds, and is asked four times where nobody says otherwise (OA-108, PA-43,
// PA-60).
func TestHowLongAProviderIsLeftAlone(t *testing.T) {
	down := slices.Repeat([]testsuite.Failure{{Kind: agent.FaultOverload, HTTP: 503, Message: "no"}}, 8)
	for attempts, want := range map[int]time.Duration{0: 14 * time.Second, 2: 2 * time.Second, 8: (2 + 4 + 8 + 16 + 30 + 30 + 30) * time.Second} {
		b := setup(t, agent.Definition{ModelAttempts: attempts}, testsuite.NewScript(testsuite.Reply{Text: "never", Fail: down}))
		begun := b.Now()
		o := b.run(t, "go")
		require.Equal(t, agent.CodeProviderError, o.Error.Code)
		if attempts == 0 {
			attempts = 4
		}
		require.Len(t, b.script.Requests(), attempts)
		require.InDelta(t, want.Seconds(), b.Now().Sub(begun).Seconds(), 1, "%d attempts", attempts)
	}
}

// A model call that fails twice is made again, without an option, and its reply is the answer (HA-42).
func TestAModelCallFailsTwice(t *testing.T) {
	down := slices.Repeat([]testsuite.Failure{{Kind: agent.FaultOverload, HTTP: 503, Message: "no"}}, 2)
	b := setup(t, agent.Definition{}, testsuite.NewScript(testsuite.Reply{Text: "here I am", Fail: down}))
	o := b.run(t, "go")
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	require.Equal(t, "here I am", o.Text)
	require.Len(t, b.script.Requests(), 3)
}

// With a limit of one turn a run is one model call: a text is its answer; calls
// are made, and then the answer is missing (HA-04).
func TestOneTurn(t *testing.T) {
	var made int
	add := tool.New("add", "", func(context.Context, *tool.Call, none) (string, error) { made++; return "3", nil }, nil)
	for want, reply := range map[agent.Code]testsuite.Reply{"": {Text: "It is 3."}, agent.CodeLimitTurns: {Calls: calls("add")}} {
		b := setup(t, agent.Definition{Profile: agent.ProfileCompleter}, testsuite.NewScript(reply, testsuite.Reply{Text: "too late"}), add)
		o := b.run(t, "What is 1+2?")
		require.Len(t, b.script.Requests(), 1)
		require.Equal(t, want == "", o.OK(), "%+v", o.Error)
		if want != "" {
			require.Equal(t, want, o.Error.Code)
		}
	}
	require.Equal(t, 1, made)
}

// A provider's failure reports whether tools had run before it (HA-24).
func TestAProviderThatFailsAfterATool(t *testing.T) {
	add := tool.New("add", "", func(context.Context, *tool.Call, none) (string, error) { return "3", nil }, nil)
	fails := testsuite.Reply{Fail: []testsuite.Failure{{Kind: agent.FaultBadRequest, HTTP: 400, Message: "no"}}}
	for after, script := range map[bool]*testsuite.Script{false: testsuite.NewScript(fails), true: testsuite.NewScript(testsuite.Reply{Calls: calls("add")}, fails)} {
		o := setup(t, agent.Definition{}, script, add).run(t, "go")
		require.Equal(t, agent.ProviderFault{Kind: agent.FaultBadRequest, Model: "script", HTTP: 400, AfterToolResult: after}, *o.Error.Provider)
	}
}

// A run continues with the model that it began with, whatever its agent has by then;
// if there is none of that name any more it fails, and says so (PA-12).
func TestARunKeepsItsModel(t *testing.T) {
	for _, gone := range []bool{false, true} {
		b := setup(t, agent.Definition{Tools: []string{agent.AskUserTool}}, testsuite.NewScript(asks("Where to?"), testsuite.Reply{Text: "done"}))
		b.after(time.Hour, func() {
			newer := b.acts.Agents["tester"]
			newer.Spec.Model = "newer"
			b.acts.Agents["tester"] = newer
			b.acts.Model = func(name string) (activities.Model, error) {
				if gone || name != "script" {
					return activities.Model{}, agent.Errorf(agent.CodeUnknownModel, "model %s is not in this worker's build", name)
				}
				return activities.Model{Model: b.script, Name: name}, nil
			}
			b.signal("answer", `{"request":"q-1","text":"Rome"}`)
		})
		o := b.start(t, agent.Start{})
		require.Equal(t, gone, o.Status == agent.StatusFailed, "%+v", o.Error)
		if gone {
			require.Equal(t, agent.CodeUnknownModel, o.Error.Code)
		}
	}
}

// A price that nobody knows costs nothing, and breaks nothing (PA-93).
func TestAPriceThatNobodyKnows(t *testing.T) {
	b := setup(t, agent.Definition{}, testsuite.NewScript(testsuite.Reply{Text: "done", Usage: testsuite.Usage{Input: 1 << 38, Output: 1 << 38}}))
	o := b.run(t, "go")
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	require.Zero(t, o.Cost)
	require.EqualValues(t, 1<<39, o.Usage.Total())
}

// How much a model is to think is said in every call of a run: behind tools, in a
// repair, and when it is asked again (HA-142).
func TestReasoningIsSaidInEveryCall(t *testing.T) {
	add := tool.New("add", "adds", func(_ context.Context, _ *tool.Call, in struct{ A, B int }) (int, error) { return in.A + in.B, nil }, nil)
	b := setup(t, agent.Definition{Reasoning: agent.ReasoningHigh, Output: json.RawMessage(`{"type":"object","required":["sum"]}`)}, testsuite.NewScript(
		testsuite.Reply{Calls: []testsuite.Call{{Tool: "add", Arguments: map[string]any{"A": 1, "B": 2}}}},
		testsuite.Reply{Text: "3", Fail: []testsuite.Failure{{Kind: agent.FaultTransient}}}, testsuite.Reply{Text: `{"sum":3}`}), add)
	o := b.run(t, "What is 1+2?")
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	requests := b.script.Requests()
	require.Len(t, requests, 4)
	for i, r := range requests {
		require.Equal(t, agent.ReasoningHigh, r.Reasoning, "request %d", i+1)
	}
}

// A summary for the model's window is a task of its own, whatever the agent's turns are for (HA-50).
func TestReasoningOfACompaction(t *testing.T) {
	b := reader(t, agent.CompactionPolicy{}, 0)
	thinks := b.acts.Agents["tester"]
	thinks.Spec.ReasoningPolicy = &agent.ReasoningPolicy{Scale: agent.ReasoningLarge, Task: agent.ReasoningCode}
	b.acts.Agents["tester"] = thinks
	firstCompaction(t, b)
	seen := map[agent.Reasoning]bool{}
	for _, r := range b.script.Requests() {
		want := agent.ReasoningXHigh
		if r.NoCalls {
			want = agent.ReasoningLow
		}
		require.Equal(t, want, r.Reasoning)
		seen[want] = true
	}
	require.Len(t, seen, 2)
}
