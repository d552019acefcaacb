package workflows_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

// What comes within one workflow task is stepped in one order, whatever the history has first: results,
// a cancellation, signals, updates, the clock (docs/loop.md).
func TestTheOrderWithinATask(t *testing.T) {
	add := tool.New("add", "", func(context.Context, *tool.Call, none) (string, error) { return "3", nil }, nil)
	asks := testsuite.Reply{Calls: []testsuite.Call{{Tool: agent.AskUserTool, Arguments: map[string]any{"question": "Where to?"}}}}
	withReply := func(b *bench, name string) { // finds the run together with the first reply
		var once sync.Once
		b.at(activities.CallModel.Name, func() { once.Do(func() { b.along(name, map[string]any{}) }) })
	}

	t.Run("a final answer goes before a cancel", func(t *testing.T) {
		b := setup(t, agent.Definition{}, testsuite.NewScript(testsuite.Reply{Text: "done"}))
		withReply(b, "cancel")
		require.Equal(t, agent.StatusCompleted, b.run(t, "go").Status)
	})
	t.Run("a reply's calls begin before an interrupt", func(t *testing.T) {
		b := setup(t, agent.Definition{}, testsuite.NewScript(testsuite.Reply{Calls: calls("add")}, testsuite.Reply{Text: "done"}), add)
		withReply(b, "interrupt")
		b.after(time.Minute, func() { b.signal("resume", `{}`) })
		require.Equal(t, agent.StatusCompleted, b.run(t, "go").Status)
		seen := b.events(t)
		require.Contains(t, seen, agent.EventCallStarted)
		require.Less(t, slices.Index(seen, agent.EventCallStarted), slices.Index(seen, agent.EventHoldAdded))
	})
	t.Run("a cancellation goes before a signal", func(t *testing.T) {
		b := setup(t, agent.Definition{Tools: []string{agent.AskUserTool}}, testsuite.NewScript(asks))
		b.after(time.Minute, func() {
			b.along("send", map[string]any{"text": "one more thing"})
			b.CancelWorkflow()
		})
		require.Equal(t, agent.StatusCancelled, b.run(t, "go").Status)
		require.Equal(t, []string{"send closed"}, b.refused(t))
	})
	t.Run("a signal goes before an update", func(t *testing.T) {
		b := setup(t, agent.Definition{Tools: []string{agent.AskUserTool}}, testsuite.NewScript(asks, testsuite.Reply{Text: "done"}))
		var said *answer
		b.after(time.Minute, func() {
			b.along("send", map[string]any{"text": "first"})
			said = b.say("send", "u-1", `{"text":"second"}`)
		})
		b.after(2*time.Minute, func() { b.signal("answer", `{"request":"q-1","text":"Rome"}`) })
		require.Equal(t, agent.StatusCompleted, b.run(t, "go").Status)
		require.NoError(t, said.err)
		var texts []string
		for _, m := range b.script.Requests()[1].Messages {
			if m.Role == agent.RoleUser && m.Note == "" {
				texts = append(texts, m.Text())
			}
		}
		require.Equal(t, []string{"go", "first", "second"}, texts)
	})
	t.Run("an answer goes before its deadline", func(t *testing.T) {
		b := setup(t, agent.Definition{Tools: []string{agent.AskUserTool}, AnswerTimeouts: agent.AnswerTimeouts{Deadline: agent.Duration(time.Hour), Default: "Oslo"}}, testsuite.NewScript(asks, testsuite.Reply{Text: "done"}))
		b.after(time.Hour-time.Second, func() { b.along("answer", map[string]any{"request": "q-1", "text": "Rome"}) })
		require.Equal(t, agent.StatusCompleted, b.run(t, "go").Status)
		require.Equal(t, "Rome", rows(b, 1)[0].Text)
		require.NotContains(t, b.events(t), agent.EventRequestExpired)
		require.Empty(t, b.refused(t))
	})
}

// events are the types of the events of the run's log.
func (b *bench) events(t *testing.T) (list []agent.EventType) {
	t.Helper()
	head, err := b.acts.Log.Store().Head(t.Context(), "default-test-workflow-id")
	require.NoError(t, err)
	view, err := b.acts.Log.View(t.Context(), head.Digest)
	require.NoError(t, err)
	for _, e := range view.Events() {
		list = append(list, e.Type)
	}
	return list
}
