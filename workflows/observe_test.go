package workflows_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/observers"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/observe"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

// watcher keeps what it sees, and each event in JSON, as it was then.
type watcher struct {
	seen  []observe.RunEvent
	json  []string
	gaps  []observe.Gap
	calls []agent.Trace
	ended chan struct{} // closed at the run's end; may be nil
}

func (w *watcher) Event(_ context.Context, s observe.RunEvent) {
	raw, err := json.Marshal(s.Event)
	if err != nil {
		panic(err)
	}
	w.seen, w.json = append(w.seen, s), append(w.json, string(raw))
	if s.Event.Outcome != nil && w.ended != nil {
		close(w.ended)
	}
}

func (w *watcher) Gap(_ context.Context, g observe.Gap) { w.gaps = append(w.gaps, g) }
func (w *watcher) Model(next model.Model) model.Model   { return next }

// watch makes observers look on, from the next execution on.
func (b *bench) watch(list ...observe.Observer) {
	b.observers = observers.New(list, slog.New(slog.DiscardHandler))
	b.acts.Observers = b.observers
	b.fresh()
}

// stored are the events of a session in the store, in JSON.
func (b *bench) stored(t *testing.T, session string) (all []string) {
	t.Helper()
	head, err := b.acts.Log.Head(t.Context(), session)
	require.NoError(t, err)
	view, err := b.acts.Log.View(t.Context(), head.Digest)
	require.NoError(t, err)
	for _, e := range view.Events() {
		raw, err := json.Marshal(e)
		require.NoError(t, err)
		all = append(all, string(raw))
	}
	return all
}

func (w *watcher) Tool(ctx context.Context, _ *tool.Call, at agent.Trace) (context.Context, func(agent.CallStatus)) {
	w.calls = append(w.calls, at)
	return ctx, func(agent.CallStatus) {}
}

// An observer receives every event of a run once and in order, as it is stored, over all its
// executions, with the segment as it was before the event. Nothing changes an event behind
// the run's back: the race detector would see it.
func TestEveryEventIsSeenOnce(t *testing.T) {
	add := tool.New("add", "", func(context.Context, *tool.Call, none) (string, error) { return "3", nil }, nil)
	b := setup(t, agent.Definition{}, testsuite.NewScript(testsuite.Reply{Calls: calls("add")}, testsuite.Reply{Text: "It is 3."}), add)
	w := &watcher{}
	b.watch(w)
	o := b.run(t, "What is 1+2?")
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	require.NoError(t, b.observers.Drain(t.Context(), ""))
	require.EqualValues(t, o.Seq, len(w.seen))
	require.Equal(t, b.stored(t, o.Session), w.json)
	var segment agent.TraceSegment
	for i, s := range w.seen {
		require.EqualValues(t, i+1, s.Event.Seq)
		require.Equal(t, []string{o.Session, o.Run, "tester", "script"}, []string{s.Session, s.Run, s.Agent, s.Model})
		require.Equal(t, segment, s.TraceSegment, "before event %d, %s", s.Event.Seq, s.Event.Type)
		segment = segment.Next(o.Run, s.Event)
	}
	require.Equal(t, []agent.Trace{{Segment: 1, Turn: 1}}, w.calls)
}

// faulty is a watcher that panics at every event.
type faulty struct{ watcher }

func (f *faulty) Event(ctx context.Context, s observe.RunEvent) {
	f.watcher.Event(ctx, s)
	panic("it can't be drawn")
}

// An observer that panics stops no run, and sees the next event all the same (OA-110).
func TestAPanickingObserverStopsNoRun(t *testing.T) {
	b := setup(t, agent.Definition{}, testsuite.NewScript(testsuite.Reply{Text: "done"}))
	w := &faulty{}
	b.watch(w)
	o := b.run(t, "go")
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	require.NoError(t, b.observers.Drain(t.Context(), ""))
	require.EqualValues(t, o.Seq, len(w.seen))
	for i, s := range w.seen {
		require.EqualValues(t, i+1, s.Event.Seq)
	}
}

// hanging is an observer that returns from nothing until it is freed.
type hanging struct {
	watcher
	free chan struct{}
}

func (h *hanging) Event(ctx context.Context, s observe.RunEvent) {
	<-h.free
	h.watcher.Event(ctx, s)
}

// A hanging observer delays neither a run nor another observer. Freed, it receives every event
// in order (OA-110).
func TestAHangingObserverDelaysNoRun(t *testing.T) {
	b := setup(t, agent.Definition{}, testsuite.NewScript(testsuite.Reply{Text: "done"}))
	h, w := &hanging{free: make(chan struct{})}, &watcher{ended: make(chan struct{})}
	b.watch(h, w)
	o := b.run(t, "go")
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	<-w.ended
	soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorContains(t, b.observers.Drain(soon, o.Session), fmt.Sprintf("*workflows_test.hanging has %d to receive", o.Seq))
	require.EqualValues(t, o.Seq, len(w.seen))
	close(h.free)
	require.NoError(t, b.observers.Drain(t.Context(), o.Session))
	require.Equal(t, w.json, h.json)
	require.Empty(t, h.gaps)
}

// A child is started with the traceparent of the turn that gave it work.
func TestAChildKnowsItsTrace(t *testing.T) {
	b := setup(t, agent.Definition{Agents: []agent.SubAgent{{Agent: "clerk"}}}, testsuite.NewScript(
		testsuite.Reply{Calls: []testsuite.Call{{Tool: "subagent__clerk", Arguments: map[string]any{"task": "look"}}}}, testsuite.Reply{Text: "Done."},
	))
	b.acts.Agents["clerk"] = activities.Agent{Spec: b.acts.Agents["tester"].Spec}
	b.watch(&watcher{})
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
