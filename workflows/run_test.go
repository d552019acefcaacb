package workflows_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	sdktest "go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

// A tool's result is in the next request, and the answer is the outcome's text
// (HA-25, OA-23).
func TestToolThenText(t *testing.T) {
	add := tool.New("add", "adds", func(_ context.Context, _ *tool.Call, in struct{ A, B int }) (int, error) { return in.A + in.B, nil }, nil)
	script := testsuite.NewScript(
		testsuite.Reply{Calls: []testsuite.Call{{Tool: "add", Arguments: map[string]any{"A": 1, "B": 2}}}},
		testsuite.Reply{Text: "It is 3."},
	)
	b := setup(t, agent.Definition{}, script, add)
	o := b.run(t, "What is 1+2?")
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	require.Equal(t, "It is 3.", o.Text)
	require.Equal(t, 2, o.Turns)
	require.Equal(t, []agent.ToolCount{{Tool: "add", Calls: 1, OK: 1}}, o.Tools)
	last := script.Requests()[1]
	require.Equal(t, "3", last.Messages[2].Parts[0].Result.Text)
}

// Every request begins with the whole of the one before, in the same order, and goes
// on with what came of it (HA-10).
func TestEveryRequestHasAllTurnsBefore(t *testing.T) {
	const turns = 4
	script := make([]testsuite.Reply, turns)
	for i := range script {
		script[i] = testsuite.Reply{Text: fmt.Sprintf("thought %d", i+1), Calls: []testsuite.Call{{Tool: "look", Arguments: map[string]any{"N": i + 1}}}}
	}
	script = append(script, testsuite.Reply{Text: "done"})
	look := tool.New("look", "", func(_ context.Context, _ *tool.Call, in struct{ N int }) (string, error) {
		return fmt.Sprintf("saw %d", in.N), nil
	}, nil)
	b := setup(t, agent.Definition{}, testsuite.NewScript(script...), look)
	require.Equal(t, agent.StatusCompleted, b.run(t, "go").Status)
	requests := b.script.Requests()
	require.Len(t, requests, turns+1)
	for i, next := range requests[1:] {
		before := requests[i].Messages
		require.Len(t, next.Messages, len(before)+2)
		require.Equal(t, before, next.Messages[:len(before)], "request %d", i+2)
		require.Equal(t, fmt.Sprintf("thought %d", i+1), next.Messages[len(before)].Text())
		require.Equal(t, fmt.Sprintf("saw %d", i+1), rows(b, i+1)[0].Text)
	}
}

func rows(b *bench, request int) []*agent.ToolResult {
	messages := b.script.Requests()[request].Messages
	last := messages[len(messages)-1]
	if last.Note == agent.NoteResumed { // it follows the results
		last = messages[len(messages)-2]
	}
	var out []*agent.ToolResult
	for _, p := range last.Parts {
		out = append(out, p.Result)
	}
	return out
}

func calls(names ...string) (out []testsuite.Call) {
	for _, n := range names {
		out = append(out, testsuite.Call{Tool: n, Arguments: map[string]any{}})
	}
	return out
}

type none struct{}

// Whatever a tool does, its result is a row for the model (HA-08, HA-09, PA-85, PA-86).
func TestWhatToolsDoIsTold(t *testing.T) {
	b := setup(t, agent.Definition{}, testsuite.NewScript(
		testsuite.Reply{Calls: append(calls("fails", "panics", "refuses", "nope", "huge", "unsure", "coded", "foreign"), testsuite.Call{Tool: "add", Raw: `{"a":`}, testsuite.Call{Tool: "add", Raw: `{"a":"x"}`})},
		testsuite.Reply{Text: "I see."},
	),
		tool.New("fails", "", func(context.Context, *tool.Call, none) (string, error) { return "", errors.New("disk full") }, nil),
		tool.New("panics", "", func(context.Context, *tool.Call, none) (string, error) { panic("ouch") }, nil),
		tool.New("refuses", "", func(context.Context, *tool.Call, none) (string, error) { return "", tool.Refuse("not on Sundays") }, nil),
		tool.New("huge", "", func(context.Context, *tool.Call, none) (string, error) { return strings.Repeat("x", 10<<20), nil }, nil),
		tool.New("unsure", "", func(context.Context, *tool.Call, none) (string, error) { return "", tool.Unknown("the bank hung up") }, nil),
		tool.New("coded", "", func(context.Context, *tool.Call, none) (string, error) {
			return "", fmt.Errorf("export: %w", agent.Errorf(agent.CodeTooLarge, "12 GB"))
		}, nil),
		tool.New("foreign", "", func(context.Context, *tool.Call, none) (string, error) {
			return "", agent.Errorf("E42", "a code of another table")
		}, nil),
		tool.New("add", "", func(context.Context, *tool.Call, struct{ A int }) (int, error) { return 0, nil }, nil),
	)
	o := b.run(t, "go")
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	want := []struct {
		tool   string
		status agent.CallStatus
		says   string
		code   agent.Code
	}{
		{"fails", agent.CallFailed, "disk full", ""}, {"panics", agent.CallFailed, "panicked: ouch", ""}, {"refuses", agent.CallRejected, "not on Sundays", agent.CodeDenied},
		{"nope", agent.CallRejected, "Tool not found: nope", ""}, {"huge", agent.CallOK, "[cut here: the result has 10485760 bytes", ""},
		{"unsure", agent.CallUnknown, "the bank hung up", ""},
		{"coded", agent.CallFailed, "export: 12 GB", agent.CodeTooLarge}, {"foreign", agent.CallFailed, "a code of another table", ""},
		{"add", agent.CallRejected, "not a JSON object", ""}, {"add", agent.CallRejected, "do not fit the tool's schema", ""},
	}
	got := rows(b, 1)
	require.Len(t, got, len(want))
	for i, w := range want {
		require.Equal(t, w.tool, got[i].Tool)
		require.Equal(t, w.status, got[i].Status, got[i].Text)
		require.Contains(t, got[i].Text, w.says)
		require.Equal(t, w.code, got[i].Code, w.tool)
	}
	require.Less(t, len(got[4].Text), 200<<10)
	require.Equal(t, 10<<20, got[4].Size)
}

// A tool that may run again is called again with growing delay and the same key;
// one that may not, is not (HA-44, OA-99, PA-51).
func TestToolsThatMayRunAgain(t *testing.T) {
	var keys []string
	flaky := tool.New("flaky", "", func(_ context.Context, c *tool.Call, _ none) (string, error) {
		keys = append(keys, c.Key)
		if c.Attempt < 4 {
			return "", errors.New("not yet")
		}
		return "at last", nil
	}, &tool.Options{Attempts: 4})
	b := setup(t, agent.Definition{}, testsuite.NewScript(testsuite.Reply{Calls: calls("flaky")}, testsuite.Reply{Text: "done"}), flaky)
	begun := b.Now()
	o := b.run(t, "go")
	require.Equal(t, agent.StatusCompleted, o.Status)
	require.Equal(t, "at last", rows(b, 1)[0].Text)
	require.Len(t, keys, 4)
	require.Equal(t, slices.Repeat(keys[:1], 4), keys, "every attempt has the same key")
	require.InDelta(t, 7, b.Now().Sub(begun).Seconds(), 1, "1, 2 and 4 seconds were waited")
}

// A tool that hangs is stopped when its time is up, and the model is told; a pause that
// came meanwhile holds the run then. One that says no time has one, too (PA-67, HL-05,
// PA-81).
func TestAToolThatHangs(t *testing.T) {
	hangs := tool.New("hangs", "", func(ctx context.Context, _ *tool.Call, _ none) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	}, &tool.Options{Timeout: 50 * time.Millisecond})
	plain := tool.New("plain", "", func(context.Context, *tool.Call, none) (string, error) { return "", nil }, nil)
	b := setup(t, agent.Definition{}, testsuite.NewScript(testsuite.Reply{Calls: calls("hangs")}, testsuite.Reply{Calls: calls("plain")}, testsuite.Reply{Text: "done"}), hangs, plain)
	var bounds []time.Duration // Temporal's own, for a worker that is gone or a tool that ignores its context
	b.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, _ converter.EncodedValues) {
		if info.ActivityType.Name != activities.CallTool.Name {
			return
		}
		if bounds = append(bounds, info.StartToCloseTimeout); len(bounds) == 1 {
			b.signal("pause", `{}`)
		}
	})
	b.after(5*time.Minute, func() {
		require.Equal(t, agent.StatusSuspended, b.status(t).Status)
		b.signal("resume", `{}`)
	})
	o := b.run(t, "go")
	require.Equal(t, agent.StatusCompleted, o.Status)
	asked := b.script.Requests()[1].Messages
	result := asked[len(asked)-2].Parts[0].Result // behind it the note that the run was suspended
	require.Equal(t, agent.CallFailed, result.Status)
	require.Contains(t, result.Text, "stopped after 50ms")
	require.Equal(t, agent.NoteResumed, asked[len(asked)-1].Note)
	require.Len(t, bounds, 2)
	require.Greater(t, bounds[0], 50*time.Millisecond)
	require.Less(t, bounds[0], time.Minute)
	require.Greater(t, bounds[1], 10*time.Minute)
	require.Less(t, bounds[1], 11*time.Minute)
}

// A provider that asks for a day is asked again after model_timeout; the status and the
// log say so.
func TestAProviderThatAsksForADay(t *testing.T) {
	slow := testsuite.Reply{Text: "done", Fail: []testsuite.Failure{{Kind: agent.FaultRateLimit, HTTP: 429, Message: "slow down", RetryAfter: 24 * time.Hour}}}
	b := setup(t, agent.Definition{ModelTimeout: agent.Duration(5 * time.Minute)}, testsuite.NewScript(slow))
	begun := b.Now()
	looked := false
	b.after(time.Minute, func() {
		looked = true
		doing := b.status(t).InFlight
		require.Len(t, doing, 1)
		require.NotNil(t, doing[0].Delay)
		require.WithinDuration(t, begun.Add(5*time.Minute), doing[0].Delay.Until, time.Second)
		require.Equal(t, agent.CodeProviderError, doing[0].Delay.Error.Code)
		require.Equal(t, agent.FaultRateLimit, doing[0].Delay.Error.Provider.Kind)
		require.Contains(t, doing[0].Delay.Error.Message, "slow down; it asked to wait 24h0m0s")
		v, err := b.QueryWorkflow(signals.Events.Name)
		require.NoError(t, err)
		var page signals.EventList
		require.NoError(t, v.Get(&page))
		require.Equal(t, agent.EventModelDelayed, page.Events[len(page.Events)-1].Type)
	})
	require.Equal(t, agent.StatusCompleted, b.run(t, "go").Status)
	require.True(t, looked)
	require.Len(t, b.script.Requests(), 2)
	require.WithinDuration(t, begun.Add(5*time.Minute), b.Now(), 30*time.Second)
}

// Long arguments are read from the transcript, and arrive whole.
func TestLongArguments(t *testing.T) {
	var got string
	write := tool.New("write", "", func(_ context.Context, _ *tool.Call, in struct{ Text string }) (string, error) {
		got = in.Text
		return "ok", nil
	}, nil)
	long := strings.Repeat("y", 50_000)
	b := setup(t, agent.Definition{}, testsuite.NewScript(
		testsuite.Reply{Calls: []testsuite.Call{{Tool: "write", Arguments: map[string]any{"Text": long}}}}, testsuite.Reply{Text: "done"}), write)
	b.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, args converter.EncodedValues) {
		if info.ActivityType.Name == activities.CallTool.Name {
			var in activities.ToolInput
			require.NoError(t, args.Get(&in))
			require.Empty(t, in.Arguments)
		}
	})
	require.Equal(t, agent.StatusCompleted, b.run(t, "go").Status)
	require.Equal(t, long, got)
}

// A provider that fails is asked again, as often as the agent says and no sooner
// than it asks for; final failures are not repeated, and nothing is waited for (PA-43,
// PA-48, PA-60, HA-18, HA-24, HA-23, OA-23, PA-92).
func TestProvidersThatFail(t *testing.T) {
	fail := func(kind agent.FaultKind, n int) []testsuite.Failure {
		return slices.Repeat([]testsuite.Failure{{Kind: kind, HTTP: 503, Message: "no", RetryAfter: time.Minute}}, n)
	}
	for name, c := range map[string]struct {
		fail   []testsuite.Failure
		code   agent.Code
		asked  int
		waited time.Duration
	}{
		"three times":  {fail(agent.FaultOverload, 3), "", 4, 3 * time.Minute},
		"four times":   {fail(agent.FaultRateLimit, 4), agent.CodeProviderError, 4, 3 * time.Minute},
		"wrong key":    {fail(agent.FaultAuth, 1), agent.CodeProviderAuth, 1, 0},
		"no money":     {fail(agent.FaultQuota, 1), agent.CodeProviderError, 1, 0},
		"wrong":        {fail(agent.FaultBadRequest, 1), agent.CodeProviderError, 1, 0},
		"over long":    {fail(agent.FaultContext, 9), agent.CodeProviderError, 5, 0}, // nor when it was cut, again and again
		"broken twice": {fail(agent.FaultTransient, 2), "", 3, 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t, agent.Definition{}, testsuite.NewScript(testsuite.Reply{Text: "done", Fail: c.fail}))
			begun := b.Now()
			o := b.run(t, "go")
			require.Len(t, b.script.Requests(), c.asked)
			require.InDelta(t, c.waited.Seconds(), b.Now().Sub(begun).Seconds(), 1)
			if c.code == "" {
				require.Equal(t, agent.StatusCompleted, o.Status)
				return
			}
			require.Equal(t, agent.StatusFailed, o.Status)
			require.Equal(t, c.code, o.Error.Code)
			require.Equal(t, string(c.code), o.Reason)
			require.Equal(t, agent.ProviderFault{Kind: c.fail[0].Kind, Model: "script", HTTP: 503}, *o.Error.Provider)
			require.Equal(t, []string{o.Error.Message}, o.Handoff.Blockers, "no model was asked for it")
			require.Equal(t, string(c.code), o.Handoff.Reason)
			require.Equal(t, "The agent failed before it had said anything.", o.Handoff.Summary)
		})
	}
}

// hangsOnce is a model whose first call never comes back.
type hangsOnce struct {
	model.Model
	hung atomic.Bool
}

func (h *hangsOnce) Generate(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
	if h.hung.CompareAndSwap(false, true) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return h.Model.Generate(ctx, req, emit)
}

// A model that falls silent, or takes too long, is given up and asked again, three times
// unless the agent says otherwise (PA-66, PA-68, PA-81, PA-92).
func TestAModelThatHangs(t *testing.T) {
	for name, def := range map[string]agent.Definition{
		"silent": {ModelSilence: agent.Duration(30 * time.Millisecond)},
		"slow":   {ModelTimeout: agent.Duration(30 * time.Millisecond)},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t, def, testsuite.NewScript(testsuite.Reply{Text: "late", Delay: time.Minute}))
			o := b.run(t, "go")
			require.Equal(t, agent.CodeProviderError, o.Error.Code)
			require.Equal(t, agent.FaultTimeout, o.Error.Provider.Kind)
			require.Len(t, b.script.Requests(), 4)
			b = setup(t, def, testsuite.NewScript(testsuite.Reply{Text: "in time"}))
			m := &hangsOnce{Model: b.script}
			b.acts.Model = func(name string) (activities.Model, error) { return activities.Model{Model: m, Name: name}, nil }
			o = b.run(t, "go")
			require.Equal(t, "in time", o.Text, "one call that hangs does not end the run: %+v", o.Error)
		})
	}
}

// Output is held to its schema, in whatever Markdown the model puts it (HA-65,
// PA-90).
func TestOutputIsRepairedOnce(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}`)
	b := setup(t, agent.Definition{Output: schema}, testsuite.NewScript(
		testsuite.Reply{Text: `{"town":"Rome"}`}, testsuite.Reply{Text: "```json\n{\"city\":\"Rome\"}\n```"}))
	o := b.run(t, "where?")
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	require.JSONEq(t, `{"city":"Rome"}`, string(o.Output))
	last := b.script.Requests()[1].Messages
	require.Equal(t, agent.NoteRepair, last[len(last)-1].Note)
	require.Contains(t, last[len(last)-1].Text(), "town")
	require.Contains(t, last[len(last)-1].Text(), string(schema), "a repair quotes the schema")

	finish := agent.Definition{Output: schema, Completion: agent.CompletionTool}
	b = setup(t, finish, testsuite.NewScript(
		testsuite.Reply{Calls: []testsuite.Call{{Tool: "finish", Arguments: map[string]any{"town": "Rome"}}}},
		testsuite.Reply{Calls: []testsuite.Call{{Tool: "finish", Arguments: map[string]any{"city": "Rome"}}}}))
	o = b.run(t, "where?")
	require.Equal(t, agent.ReasonFinished, o.Reason, "%+v", o.Error)
	require.JSONEq(t, `{"city":"Rome"}`, string(o.Output))
}

// The working time is a durable timer: an hour passes in no time here (PA-65).
func TestTheClockEndsARun(t *testing.T) {
	slow := tool.New("slow", "", func(ctx context.Context, _ *tool.Call, _ none) (string, error) { return "", errors.New("again") }, &tool.Options{Attempts: 100})
	b := setup(t, agent.Definition{Limits: agent.Limits{WallClock: agent.Duration(time.Hour)}}, testsuite.NewScript(testsuite.Reply{Calls: calls("slow")}), slow)
	begun := b.Now()
	o := b.run(t, "go")
	require.Equal(t, agent.CodeLimitTime, o.Error.Code)
	require.Equal(t, time.Hour, b.Now().Sub(begun).Round(time.Minute))
	require.Equal(t, []agent.ToolCount{{Tool: "slow", Calls: 1, Unknown: 1}}, o.Tools)
}

// A local tool that is slower than local tools may be is started anew as an
// ordinary one.
func TestALocalToolThatIsSlow(t *testing.T) {
	var local, regular atomic.Int32
	slow := tool.New("slow", "", func(ctx context.Context, _ *tool.Call, _ none) (string, error) {
		if activity.GetInfo(ctx).IsLocalActivity {
			local.Add(1)
			<-ctx.Done()
			return "", ctx.Err()
		}
		regular.Add(1)
		return "done", nil
	}, &tool.Options{Local: true})
	b := setup(t, agent.Definition{}, testsuite.NewScript(testsuite.Reply{Calls: calls("slow")}, testsuite.Reply{Text: "done"}), slow)
	require.Equal(t, agent.StatusCompleted, b.run(t, "go").Status)
	require.Equal(t, "done", rows(b, 1)[0].Text)
	require.EqualValues(t, 1, regular.Load())
}

// A long history is carried over at a turn's boundary, with next to nothing in it.
func TestCarryOver(t *testing.T) {
	add := tool.New("add", "", func(context.Context, *tool.Call, none) (string, error) { return strings.Repeat("z", 100_000), nil }, nil)
	b := setup(t, agent.Definition{}, testsuite.NewScript(testsuite.Reply{Calls: calls("add")}, testsuite.Reply{Text: "done"}), add)
	b.SetContinueAsNewSuggested(true)
	payload, err := converter.GetDefaultDataConverter().ToPayload(map[string]any{"agent": "tester", "input": map[string]any{"text": "go"}})
	require.NoError(t, err)
	b.ExecuteWorkflow(signals.WorkflowType, converter.NewRawValue(payload), nil, nil)
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, b.GetWorkflowError(), &next)
	var size int
	for _, p := range next.Input.GetPayloads() {
		size += len(p.GetData())
	}
	require.Less(t, size, 4<<10, "the carried state is small, whatever was said")
}

// A call that may be made again fails its step, with a code, until its attempts
// are used up.
func TestATryFailsWithACode(t *testing.T) {
	var suite sdktest.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	flaky := tool.New("flaky", "", func(context.Context, *tool.Call, none) (string, error) { return "", errors.New("not yet") }, nil)
	acts := &activities.Activities{Tools: map[string]tool.Tool{"flaky": flaky}, InFlight: activities.NewInFlight(), Logger: slog.New(slog.DiscardHandler)}
	acts.Register(env)
	_, err := env.ExecuteActivity(activities.CallTool.Name, activities.ToolInput{ToolArgs: loop.ToolArgs{Tool: "flaky", Call: "t1.1", Arguments: json.RawMessage(`{}`), Attempts: 2, Timeout: agent.Duration(time.Minute)}})
	var app *temporal.ApplicationError
	require.ErrorAs(t, err, &app)
	require.Equal(t, string(agent.CodeToolFailed), app.Type())
	require.False(t, app.NonRetryable())
}
