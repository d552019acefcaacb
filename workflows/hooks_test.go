package workflows_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	sdktest "go.temporal.io/sdk/testsuite"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

// answer is what the sender of an update got, and when.
type answer struct {
	ack agent.Ack
	err error
	at  time.Time
}

// say says a verb by update. The answer is set when it comes.
func (b *bench) say(verb, update, payload string) *answer {
	a := new(answer)
	b.UpdateWorkflow(verb, update, &sdktest.TestUpdateCallback{
		OnAccept: func() {},
		OnReject: func(err error) { a.err, a.at = err, b.Now() },
		OnComplete: func(o any, err error) {
			a.ack, _ = o.(agent.Ack)
			a.err, a.at = err, b.Now()
		},
	}, json.RawMessage(payload))
	return a
}

var gateBeforeResume = agent.Hooks{BeforeResume: agent.HookList{Checks: []agent.Check{{Name: "gate", Tool: "gate"}}}}

// parkedWithGate is a run that parks, is resumed after a minute by say, and waits two hours then. The
// hook before a resume works until say has returned.
func parkedWithGate(t *testing.T, say func(*bench)) *agent.Outcome {
	t.Helper()
	said := make(chan struct{})
	gate := tool.New("gate", "looks", func(context.Context, *tool.Call, agent.SuspensionHook) (agent.Verdict, error) {
		<-said
		return agent.Verdict{Decision: agent.DecisionAccept}, nil
	}, &tool.Options{ReadOnly: true})
	b := setup(t, agent.Definition{Tools: []string{agent.AwaitResumptionTool}, Hooks: gateBeforeResume}, testsuite.NewScript(
		parks(map[string]any{"reason": "one"}),
		parks(map[string]any{"reason": "two", "conditions": map[string]any{"after": "2h"}}),
		testsuite.Reply{Text: "done"}), gate)
	b.after(time.Minute, func() { say(b); close(said) })
	return b.start(t, agent.Start{})
}

// Two senders of the same resume both get its answer (HA-95).
func TestAResumeSaidTwiceIsAnsweredTwice(t *testing.T) {
	var first, second *answer
	o := parkedWithGate(t, func(b *bench) {
		first, second = b.say("resume", "u-1", `{"id":"x"}`), b.say("resume", "u-2", `{"id":"x"}`)
	})
	require.Equal(t, agent.StatusCompleted, o.Status)
	for _, a := range []*answer{first, second} {
		require.NoError(t, a.err)
		require.Equal(t, agent.EffectAccepted, a.ack.Effect, "it is answered when the hook has decided, and not at the end")
	}
}

// An update that repeats a resume that came by signal is answered, too.
func TestAnUpdateJoinsTheResumeOfASignal(t *testing.T) {
	var a *answer
	o := parkedWithGate(t, func(b *bench) {
		b.signal("resume", `{"id":"x"}`)
		a = b.say("resume", "u-1", `{"id":"x"}`)
	})
	require.Equal(t, agent.StatusCompleted, o.Status)
	require.NoError(t, a.err)
	require.Equal(t, agent.EffectAccepted, a.ack.Effect, "it is answered when the hook has decided, and not at the end")
}

// hookedWork is a run that is paused during its first call, and has the hook "gate" at both points. hook
// is what a worker does when it takes the hook.
func hookedWork(t *testing.T, hook func(context.Context, activities.ToolInput) (string, error)) *bench {
	t.Helper()
	gate := tool.New("gate", "looks", func(context.Context, *tool.Call, agent.SuspensionHook) (agent.Verdict, error) {
		return agent.Verdict{}, nil
	}, &tool.Options{ReadOnly: true})
	work := tool.New("work", "works", func(context.Context, *tool.Call, struct{}) (string, error) { return "", nil }, nil)
	hooks := gateBeforeResume
	hooks.BeforeSuspension = hooks.BeforeResume
	b := setup(t, agent.Definition{Hooks: hooks}, testsuite.NewScript(testsuite.Reply{Calls: []testsuite.Call{{Tool: "work", Arguments: map[string]any{}}}}, testsuite.Reply{Text: "done"}), gate, work)
	b.OnActivity(activities.CallTool.Name, mock.Anything, mock.Anything).Return(func(ctx context.Context, in activities.ToolInput) (activities.ToolOutput, error) {
		text, err := "ok", error(nil)
		if in.Check == nil {
			b.signal("pause", `{}`)
		} else {
			text, err = hook(ctx, in)
		}
		return activities.ToolOutput{ToolResult: agent.ToolResult{Call: in.Call, Tool: in.Tool, Status: agent.CallOK, Text: text}}, err
	})
	return b
}

const accepts = `{"verdict":"accept"}`

// A worker whose build lacks the hook does not decide: the next one is asked, though the run is held.
func TestAHookIsLookedForUnderAHold(t *testing.T) {
	tried := map[agent.CheckPoint]int{}
	b := hookedWork(t, func(_ context.Context, in activities.ToolInput) (string, error) {
		if tried[in.Check.Point]++; tried[in.Check.Point] == 1 {
			return "", notInTheBuild
		}
		return accepts, nil
	})
	var a *answer
	b.after(3*time.Minute, func() { a = b.say("resume", "u-1", `{}`) })
	require.Equal(t, agent.StatusCompleted, b.start(t, agent.Start{}).Status)
	require.NoError(t, a.err)
	require.Equal(t, map[agent.CheckPoint]int{agent.PointBeforeSuspension: 2, agent.PointBeforeResume: 2}, tried)
}

// A hook that no worker has in time has failed: the suspension happens, and the resume is refused.
func TestAHookThatIsTooLateHasFailed(t *testing.T) {
	bounds := map[time.Duration]bool{}
	b := hookedWork(t, func(ctx context.Context, _ activities.ToolInput) (string, error) {
		info := activity.GetInfo(ctx)
		bounds[info.ScheduleToCloseTimeout.Truncate(time.Minute)] = true
		return "", notInTheBuild
	})
	var status agent.Status
	var a *answer
	began := b.Now()
	b.after(2*time.Minute, func() {
		status = b.status(t).Status
		a = b.say("resume", "u-1", `{}`)
	})
	b.after(10*time.Minute, func() { b.signal("cancel", `{}`) })
	require.Equal(t, agent.StatusCancelled, b.start(t, agent.Start{}).Status)
	require.Equal(t, agent.StatusSuspended, status)
	require.ErrorContains(t, a.err, "the hook gate did not allow it")
	require.Less(t, a.at.Sub(began), 4*time.Minute)
	require.Equal(t, map[time.Duration]bool{time.Minute: true, 0: true}, bounds, "waiting in a queue is bounded, too, by what is left")
}
