package workflows_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/observe"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

// watcher keeps what it sees.
type watcher struct {
	seen  []observe.RunEvent
	calls []agent.Trace
}

func (w *watcher) Event(s observe.RunEvent)           { w.seen = append(w.seen, s) }
func (w *watcher) Model(next model.Model) model.Model { return next }

func (w *watcher) Tool(ctx context.Context, _ *tool.Call, at agent.Trace) (context.Context, func(agent.CallStatus)) {
	w.calls = append(w.calls, at)
	return ctx, func(agent.CallStatus) {}
}

// Whoever looks on hears every event of a run once and in order, over all its
// executions, with the segment as it was before the event.
func TestEveryEventIsSeenOnce(t *testing.T) {
	add := tool.New("add", "", func(context.Context, *tool.Call, none) (string, error) { return "3", nil }, nil)
	b := setup(t, agent.Definition{}, testsuite.NewScript(testsuite.Reply{Calls: calls("add")}, testsuite.Reply{Text: "It is 3."}), add)
	w := &watcher{}
	b.observer, b.acts.Observer = w, w
	b.fresh()
	o := b.run(t, "What is 1+2?")
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	require.EqualValues(t, o.Seq, len(w.seen))
	var segment agent.TraceSegment
	for i, s := range w.seen {
		require.EqualValues(t, i+1, s.Event.Seq)
		require.Equal(t, []string{o.Session, o.Run, "tester", "script"}, []string{s.Session, s.Run, s.Agent, s.Model})
		require.Equal(t, segment, s.TraceSegment, "before event %d, %s", s.Event.Seq, s.Event.Type)
		segment = segment.Next(o.Run, s.Event)
	}
	require.Equal(t, []agent.Trace{{Segment: 1, Turn: 1}}, w.calls)
}

// A child is started with the traceparent of the turn that gave it work.
func TestAChildKnowsItsTrace(t *testing.T) {
	b := setup(t, agent.Definition{Agents: []agent.SubAgent{{Agent: "clerk"}}}, testsuite.NewScript(
		testsuite.Reply{Calls: []testsuite.Call{{Tool: "subagent__clerk", Arguments: map[string]any{"task": "look"}}}}, testsuite.Reply{Text: "Done."},
	))
	b.acts.Agents["clerk"] = activities.Agent{Spec: b.acts.Agents["tester"].Spec}
	w := &watcher{}
	b.observer = w
	b.fresh()
	var start agent.Start
	b.SetOnChildWorkflowStartedListener(func(_ *workflow.Info, _ workflow.Context, args converter.EncodedValues) {
		var raw converter.RawValue
		require.NoError(t, args.Get(&raw))
		data, bad := durable.Bytes(raw)
		require.Nil(t, bad)
		require.NoError(t, durable.Decode(data, &start, 1<<20))
		b.CancelWorkflow()
	})
	o := b.run(t, "go")
	require.Equal(t, "clerk", start.Agent)
	require.Equal(t, fmt.Sprintf(`{"traceparent":%q}`, agent.Trace{Segment: 1, Turn: 1}.Traceparent(o.Run)), string(start.Meta))
}
