package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/observe"
	"github.com/fermata-agents/fermata/telemetry"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// tracedTurns is how many turns of the run in this test come after its suspension.
const tracedTurns = 12

// tracedBrain is that of an agent lead, which gives work to a clerk, asks a question,
// and says what it was told to a tool, again and again.
func tracedBrain(_ context.Context, req *model.Request) *model.Reply {
	turns, told := 0, ""
	for _, m := range req.Messages {
		if m.Role == agent.RoleAssistant {
			turns++
		}
		for _, p := range m.Parts {
			if p.Result != nil {
				told = p.Result.Text
			}
		}
	}
	part := func(tool, arguments string) agent.Part {
		return agent.Part{Type: agent.PartToolCall, Call: &agent.ToolCall{Tool: tool, Arguments: []byte(arguments)}}
	}
	again := part("echo", fmt.Sprintf(`{"text":%q}`, fmt.Sprint(turns, " ", told)))
	switch {
	case req.Call.Agent == "clerk" && turns == 0:
		return asksFor(again)
	case req.Call.Agent == "clerk":
		return saysText("I have looked.")
	case turns == 0:
		return asksFor(part("subagent__clerk", `{"task":"look"}`))
	case turns == 1:
		return asksFor(part(agent.AskUserTool, `{"question":"Which one?"}`))
	case turns < 2+tracedTurns:
		return asksFor(again)
	}
	return saysText(told)
}

// traced starts a worker of lead and clerk with telemetry of its own, as another
// process would have.
func (s *stage) traced(t *testing.T) (spans *tracetest.InMemoryExporter, w *worker.Worker, tracers *sdktrace.TracerProvider) {
	t.Helper()
	spans = tracetest.NewInMemoryExporter()
	tracers = sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans), sdktrace.WithIDGenerator(telemetry.IDs()))
	o, err := telemetry.New(tracers, nil, nil)
	require.NoError(t, err)
	w, err = worker.New(s.temporal, &worker.Options{
		TaskQueue: s.queue, Tools: []tool.Tool{echo(nil)}, Store: s.store, Logger: zap.NewNop(), Temporal: stopsSoon, Observers: []observe.Observer{o},
		Models: map[string]model.Model{"acme": modelFunc(tracedBrain)},
		Agents: []agent.Definition{
			{Name: "lead", Model: "acme/big", Tools: []string{"echo", agent.AskUserTool}, Agents: []agent.SubAgent{{Agent: "clerk"}}},
			{Name: "clerk", Model: "acme/small", Tools: []string{"echo"}},
		},
	})
	require.NoError(t, err)
	require.NoError(t, w.Start(t.Context()))
	t.Cleanup(w.Stop)
	return spans, w, tracers
}

// The spans of a run that gives work away, is suspended, goes on in another process and
// there in new executions, are whole trees: every parent is there, no span is there
// twice, the trace after the suspension links to the one before (HL-103, OA-67, OA-69),
// only the span of the suspension has its descriptor (OA-68), and what was said is in none
// of them (HL-105).
func TestTracesAreWhole(t *testing.T) {
	t.Parallel()
	const secret = "swordfish-4711"
	s := early(t, 40)
	one, first, tracers := s.traced(t)
	ctx, caller := tracers.Tracer("test").Start(t.Context(), "caller")
	run, err := client.New(s.temporal, &client.Options{TaskQueue: s.queue, Store: s.dir, Traceparent: telemetry.Traceparent}).Start(ctx, "lead", secret, nil)
	require.NoError(t, err)
	caller.End()
	rest := s.rest(t, run)
	require.Equal(t, agent.StatusSuspended, rest.Status)
	first.Stop()
	before := one.GetSpans()

	other, second, _ := s.traced(t)
	_, err = s.Answer(t.Context(), rest.Suspension.Requests[0], secret, nil)
	require.NoError(t, err)
	out := s.rest(t, run)
	require.Equal(t, agent.StatusCompleted, out.Status, "%+v", out.Error)
	require.Contains(t, out.Text, secret, "it was told")
	require.NotEqual(t, run.ID, s.current(t, run.Session), "it was carried over")
	require.NoError(t, second.Drain(t.Context()))
	require.Equal(t, before, one.GetSpans())

	all := slices.Concat(before, other.GetSpans())
	made := map[trace.SpanID]tracetest.SpanStub{}
	count := map[string]int{}
	for _, span := range all {
		id := span.SpanContext.SpanID()
		require.NotContains(t, made, id, "%s is there twice", span.Name)
		made[id] = span
		count[span.Name]++
	}
	for _, span := range all {
		if span.Parent.IsValid() {
			above, ok := made[span.Parent.SpanID()]
			require.True(t, ok, "what is above %s is nowhere", span.Name)
			require.Equal(t, above.SpanContext.TraceID(), span.SpanContext.TraceID(), span.Name)
		}
	}
	require.Equal(t, map[string]int{
		"caller": 1, "invoke_agent lead": 2, "invoke_agent clerk": 1, "chat big": 3 + tracedTurns, "chat small": 2,
		"execute_tool echo": 1 + tracedTurns, "turn": 2 + 2 + tracedTurns + 2, // that of the question in both processes
		"suspend input_required": 1,
	}, count)
	require.NotContains(t, fmt.Sprintf("%+v", all), secret)
	for _, span := range all {
		for _, a := range span.Attributes {
			if strings.HasPrefix(string(a.Key), "fermata.suspension") {
				require.Equal(t, "suspend input_required", span.Name, "%s", a.Key)
			}
		}
	}

	step := spanOf(before, "suspend input_required")
	require.Equal(t, "turn", made[step.Parent.SpanID()].Name)
	suspended, went, clerk := spanOf(before, "invoke_agent lead"), spanOf(other.GetSpans(), "invoke_agent lead"), spanOf(before, "invoke_agent clerk")
	require.Equal(t, caller.SpanContext().SpanID(), suspended.Parent.SpanID())
	require.Equal(t, "turn", made[clerk.Parent.SpanID()].Name)
	require.Equal(t, suspended.SpanContext.SpanID(), made[clerk.Parent.SpanID()].Parent.SpanID())
	require.False(t, went.Parent.IsValid())
	require.Len(t, went.Links, 1)
	require.Equal(t, suspended.SpanContext.TraceID(), went.Links[0].SpanContext.TraceID())
	require.Equal(t, suspended.SpanContext.SpanID(), went.Links[0].SpanContext.SpanID())
	require.False(t, went.StartTime.Before(suspended.EndTime), "the first ended before the wait")
}

// An activity of somebody's own outlives the worker of the run that calls it. It has one span,
// below the turn, from the worker that took its result.
func TestACallOfAnActivityHasOneSpan(t *testing.T) {
	t.Parallel()
	s := on(t, shared(t))
	h := s.outsider(t, s.temporal)
	m := modelFunc(func(_ context.Context, r *model.Request) *model.Reply {
		if replies(r) == 0 {
			return callsTool("slow", `{"card":"visa","cents":7}`)
		}
		return saysText("done")
	})
	open := func() (*tracetest.InMemoryExporter, *worker.Worker) {
		spans := tracetest.NewInMemoryExporter()
		o, err := telemetry.New(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans), sdktrace.WithIDGenerator(telemetry.IDs())), nil, nil)
		require.NoError(t, err)
		return spans, s.open(t, &worker.Options{
			TaskQueue: s.queue, Agents: []agent.Definition{{Name: "tester", Model: "script", Tools: []string{"slow"}}}, Store: s.store, Logger: zap.NewNop(), Temporal: stopsSoon, Observers: []observe.Observer{o},
			Tools: []tool.Tool{tool.Activity[charge]("slow", "Waits.", tool.ActivityTarget{Type: "Slow", TaskQueue: h.queue}, nil)}, Models: map[string]model.Model{"script": m},
		})
	}
	one, first := open()
	run, err := s.Start(t.Context(), "tester", "go", nil)
	require.NoError(t, err)
	<-h.begun
	s.until(t, run, agent.EventCallStarted)
	first.Stop()
	other, second := open()
	stopped := time.Now()
	h.free <- true
	require.Equal(t, "done", s.rest(t, run).Text)
	require.NoError(t, second.Drain(t.Context()))
	var calls []tracetest.SpanStub
	for _, span := range slices.Concat(one.GetSpans(), other.GetSpans()) {
		if span.Name == "execute_tool slow" {
			calls = append(calls, span)
		}
	}
	require.Len(t, calls, 1)
	require.True(t, calls[0].StartTime.Before(stopped) && calls[0].EndTime.After(stopped), "%s to %s", calls[0].StartTime, calls[0].EndTime)
	require.Equal(t, spanOf(other.GetSpans(), "turn").SpanContext.SpanID(), calls[0].Parent.SpanID())
}

func spanOf(spans tracetest.SpanStubs, name string) tracetest.SpanStub {
	return spans[slices.IndexFunc(spans, func(s tracetest.SpanStub) bool { return s.Name == name })]
}
