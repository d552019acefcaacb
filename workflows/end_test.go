package workflows_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	sdktest "go.temporal.io/sdk/testsuite"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

// at does something as a step begins: what is said then is there with its outcome.
func (b *bench) at(step string, do func()) {
	b.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, _ converter.EncodedValues) {
		if info.ActivityType.Name == step {
			do()
		}
	})
	b.SetOnLocalActivityStartedListener(func(info *activity.Info, _ context.Context, _ []any) {
		if info.ActivityType.Name == step {
			do()
		}
	})
}

// slowStore does not keep an end at once, and does something when it does.
type slowStore struct {
	store.Store
	tries atomic.Int32
	kept  func()
}

func (s *slowStore) PutHead(ctx context.Context, h store.Head) error {
	if h.Status.Ended() {
		if s.tries.Add(1) == 1 {
			return agent.Errorf(agent.CodeStoreUnavailable, "not yet")
		}
		s.kept()
	}
	return s.Store.PutHead(ctx, h)
}

// along says something that the run finds when it continues, and not before.
func (b *bench) along(name string, payload map[string]any) {
	b.SignalWorkflowSkippingWorkflowTask(name, payload)
}

// refused lists the verbs that the run shows as refused, with their codes.
func (b *bench) refused(t *testing.T) (list []string) {
	t.Helper()
	for _, r := range b.status(t).Refused {
		list = append(list, r.Verb+" "+string(r.Error.Code))
	}
	return list
}

// A signal that comes in the very task in which its run ends is shown as refused,
// and is not in the log, which is stored by then. What changes nothing is not shown.
func TestASignalThatComesWithTheEnd(t *testing.T) {
	b := setup(t, agent.Definition{}, testsuite.NewScript(testsuite.Reply{Text: "done"}))
	b.acts.Log = store.NewLog(&slowStore{Store: b.acts.Log.Store(), kept: func() {
		b.along("send", map[string]any{"text": "one more thing"})
		b.along("interupt", map[string]any{})
		b.along("cancel", map[string]any{})
		b.along("fermata.order", map[string]any{"verb": "pause"})
		b.along("emit", map[string]any{"topic": "paid", "run": "another"})
	}})
	o := b.run(t, "go")
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	require.Equal(t, []string{"send closed", "interupt invalid_input", "emit stale"}, b.refused(t))
	require.Equal(t, "send refused: the run is at its end (completed)", b.status(t).Refused[0].Error.Message)
	require.Equal(t, o.Seq, b.status(t).Seq, "the log ends with the run")
}

// The handoff of a stopped run says what its sub-agents were given, also of those that had
// ended by themselves.
func TestAHandoffNamesTheTasksBelow(t *testing.T) {
	b := setup(t, agent.Definition{Agents: []agent.SubAgent{{Agent: "scout"}}, Tools: []string{agent.AskUserTool}}, testsuite.NewScript(
		testsuite.Reply{Match: "look around", Text: "Rome"},
		testsuite.Reply{Match: `\Ago`, Calls: []testsuite.Call{{Tool: "subagent__scout", Arguments: map[string]any{"task": "look around"}}}},
		testsuite.Reply{Match: ".*", Calls: []testsuite.Call{{Tool: agent.AskUserTool, Arguments: map[string]any{"question": "Where?"}}}}, testsuite.Reply{Match: ".*", Text: "{}"}))
	scout := b.acts.Agents["tester"]
	scout.Spec.Name, scout.Spec.Agents = "scout", nil
	b.acts.Agents["scout"] = scout
	b.after(time.Hour, func() { b.signal("stop", `{}`) })
	o := b.run(t, "go")
	require.Equal(t, agent.StatusStopped, o.Status)
	require.Len(t, o.Handoff.Children, 1)
	require.Equal(t, []any{"look around", "Rome"}, []any{o.Handoff.Children[0].Task, o.Handoff.Children[0].Summary})
}

// What is told to a run that comes to nothing before it has a log is shown as
// refused, and an update that waits for one is answered.
func TestWhatIsSaidToARunThatComesToNothing(t *testing.T) {
	say := func(b *bench) {
		b.along("send", map[string]any{"text": "and this"})
		b.along("emit", map[string]any{"topic": "paid"})
		b.along("answer", map[string]any{"request": "q-1", "text": "Rome"})
		b.along("pause", map[string]any{})
	}
	shown := []string{"send closed", "emit closed", "answer closed", "pause closed"}
	t.Run("an agent that there is not", func(t *testing.T) {
		b := setup(t, agent.Definition{}, testsuite.NewScript())
		delete(b.acts.Agents, "tester")
		var ack agent.Ack
		b.at(activities.Open.Name, func() {
			say(b)
			b.UpdateWorkflow("send", "u-1", &sdktest.TestUpdateCallback{
				OnReject: func(err error) { t.Error(err) }, OnAccept: func() {},
				OnComplete: func(result any, err error) { ack, _ = result.(agent.Ack); require.NoError(t, err) },
			}, map[string]any{"text": "and that"})
		})
		o := b.run(t, "go")
		require.Equal(t, agent.CodeUnknownAgent, o.Error.Code)
		require.ElementsMatch(t, shown, b.refused(t))
		require.Equal(t, []any{agent.EffectRunEnded, agent.StatusFailed}, []any{ack.Effect, ack.Status})
	})
	t.Run("cancelled", func(t *testing.T) {
		b := setup(t, agent.Definition{}, testsuite.NewScript())
		b.acts.Sources = map[string]tool.Source{"shop": toolless{}}
		tester := b.acts.Agents["tester"]
		tester.Sources = []string{"shop"}
		b.acts.Agents["tester"] = tester
		b.at(activities.List.Name, func() {
			say(b)
			b.signal("cancel", `{}`)
		})
		require.Equal(t, agent.StatusCancelled, b.run(t, "go").Status)
		require.Equal(t, shown[:3], b.refused(t), "the pause was taken")
	})
}
