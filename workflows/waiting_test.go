package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

// toolless is a source without tools.
type toolless struct{ tool.Source }

func (toolless) List(context.Context) ([]agent.ToolSpec, error) { return nil, nil }

// A pause takes effect while the tools are listed: no model call is begun under it.
// What goes into the log waits until the run has one.
func TestWhatIsSaidWhileToolsAreListed(t *testing.T) {
	b := setup(t, agent.Definition{Daemon: &agent.Daemon{}}, testsuite.NewScript(testsuite.Reply{Text: "seen", Repeat: 9}))
	b.acts.Sources = map[string]tool.Source{"shop": toolless{}}
	tester := b.acts.Agents["tester"]
	tester.Sources = []string{"shop"}
	b.acts.Agents["tester"] = tester
	b.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, _ converter.EncodedValues) {
		if info.ActivityType.Name == activities.List.Name {
			b.signal("emit", `{"topic":"t","payload":1}`)
			b.signal("pause", `{}`)
		}
	})
	b.after(time.Minute, func() {
		s := b.status(t)
		require.Equal(t, agent.StatusSuspended, s.Status)
		require.Equal(t, agent.InitiatorOperator, s.Suspension.Initiator)
		require.Equal(t, 1, s.QueuedEvents.Used)
		require.Empty(t, b.script.Requests(), "nothing is begun under a pause")
		b.signal("resume", `{}`)
	})
	b.after(2*time.Minute, func() { b.signal("cancel", `{}`) })
	require.Equal(t, agent.StatusCancelled, b.start(t, agent.Start{}).Status)
	require.Len(t, b.script.Requests(), 2)
}

// A daemon that parks for what waits already continues with it at once; the payload
// decides which event it is.
func TestADaemonParksForWhatHasCome(t *testing.T) {
	waits := map[string]any{"reason": "not paid", "conditions": map[string]any{"event": map[string]any{
		"topic": "paid", "match": map[string]any{"properties": map[string]any{"order": map[string]any{"const": 7}}},
	}}}
	b := setup(t, agent.Definition{Tools: []string{agent.AwaitResumptionTool}, Daemon: &agent.Daemon{}},
		testsuite.NewScript(parks(waits), testsuite.Reply{Text: "seen", Repeat: 9}))
	b.after(time.Minute, func() {
		b.signal("pause", `{}`)
		b.signal("emit", `{"topic":"new","payload":{"order":7}}`)
		b.signal("emit", `{"topic":"paid","payload":{"order":6}}`)
		b.signal("emit", `{"topic":"paid","payload":{"order":7}}`)
		b.signal("resume", `{}`)
	})
	b.after(2*time.Minute, func() { b.signal("cancel", `{}`) })
	require.Equal(t, agent.StatusCancelled, b.daemon(t).Status)
	asked := b.script.Requests()
	require.Len(t, asked, 3)
	require.Equal(t, `Event paid: {"order":7}`, asked[1].Messages[3].Text())
	require.Equal(t, `Event paid: {"order":6}`, asked[2].Messages[5].Text())
}

// What waits for a paused daemon is in its session's head, long before it continues and
// over its executions: its history may be gone by then (HA-95).
func TestWhatWaitsIsInTheHead(t *testing.T) {
	b := setup(t, agent.Definition{Daemon: &agent.Daemon{}}, testsuite.NewScript(testsuite.Reply{Text: "seen", Repeat: 9}))
	waiting := func() (ids []string) {
		head, err := b.acts.Log.Store().Head(t.Context(), "default-test-workflow-id")
		require.NoError(t, err)
		require.Equal(t, agent.StatusSuspended, head.Status)
		inbox, err := b.acts.Log.Backlog(t.Context(), head)
		require.NoError(t, err)
		for _, e := range inbox.Events {
			ids = append(ids, e.ID)
		}
		return ids
	}
	b.after(time.Minute, func() {
		b.signal("pause", `{}`)
		b.signal("emit", `{"topic":"t","id":"e-1"}`)
		b.signal("emit", `{"topic":"t","id":"e-2"}`)
	})
	b.after(2*time.Minute, func() { require.Equal(t, []string{"e-1", "e-2"}, waiting()) })
	b.after(24*time.Hour, func() {
		require.Equal(t, 1, b.executions)
		b.signal("emit", `{"topic":"t","id":"e-3"}`)
	})
	b.after(25*time.Hour, func() {
		require.Equal(t, []string{"e-1", "e-2", "e-3"}, waiting())
		b.signal("resume", `{}`)
	})
	b.after(26*time.Hour, func() {
		require.Empty(t, waiting())
		b.signal("cancel", `{}`)
	})
	require.Equal(t, agent.StatusCancelled, b.daemon(t).Status)
	require.Len(t, b.script.Requests(), 3)
}
