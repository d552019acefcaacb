package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.temporal.io/sdk/client"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/observe"
	"github.com/fermata-agents/fermata/telemetry"
	"github.com/fermata-agents/fermata/tool"
)

func call(name string) *tool.Call {
	return &tool.Call{ID: "t1.1", Session: "trip-42", Run: "01a1", Agent: "payer", Turn: 1, Tool: name, Attempt: 2, Arguments: []byte(`{"pin":"` + secret + `"}`)}
}

// where is where the calls of these tests hang.
var where = agent.Trace{Segment: 1, Turn: 1}

// answers is a model that does what a test says.
type answers func(ctx context.Context) (*model.Reply, error)

func (answers) Info(string) model.Info {
	return model.Info{Price: agent.Price{Input: 3 * agent.Dollar, Output: 15 * agent.Dollar}}
}

func (a answers) Generate(ctx context.Context, _ *model.Request, _ func(model.Delta)) (*model.Reply, error) {
	return a(ctx)
}

func (p *process) ask(ctx context.Context, a answers) error {
	half := 0.5
	_, err := p.Model(a).Generate(ctx, &model.Request{
		Call:  model.CallInfo{Session: "trip-42", Run: "01a1", Agent: "payer", Model: "acme/big", Trace: where, Turn: 1, Attempt: 2},
		Model: "big", Instructions: secret, Messages: []agent.Message{agent.TextMessage(agent.RoleUser, secret)}, MaxOutputTokens: 100, Temperature: &half, Reasoning: agent.ReasoningLow,
	}, func(model.Delta) {})
	return err
}

// only is the one span that was exported since the last look.
func (p *process) only(t *testing.T) tracetest.SpanStub {
	t.Helper()
	spans := p.spans.GetSpans()
	require.Len(t, spans, 1)
	require.NotContains(t, fmt.Sprintf("%+v", spans), secret)
	p.spans.Reset()
	return spans[0]
}

// An attempt at a model call is a client's span below its turn, with its session and what it
// took (OA-94).
func TestAModelCall(t *testing.T) {
	p := begin(t)
	require.NoError(t, p.ask(t.Context(), func(ctx context.Context) (*model.Reply, error) {
		require.True(t, trace.SpanFromContext(ctx).IsRecording(), "what the model's client does hangs below it")
		return &model.Reply{
			Finish: model.FinishStop, Usage: agent.Usage{Input: 1000, Output: 200, CacheRead: 600, CacheWrite: 100, Reasoning: 50},
			Parts: []agent.Part{{Type: agent.PartText, Text: secret}},
		}, nil
	}))
	s := p.only(t)
	require.Equal(t, "chat big", s.Name)
	require.Equal(t, trace.SpanKindClient, s.SpanKind)
	require.Equal(t, where.Traceparent("01a1")[:52], traceparent(s.Parent))
	require.Equal(t, map[string]string{
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": "acme", "gen_ai.request.model": "big", "gen_ai.request.max_tokens": "100",
		"gen_ai.request.temperature": "0.5", "gen_ai.response.finish_reasons": `["stop"]`, "gen_ai.usage.input_tokens": "1000", "gen_ai.usage.output_tokens": "200",
		"gen_ai.usage.cache_read.input_tokens": "600", "gen_ai.usage.cache_creation.input_tokens": "100", "gen_ai.usage.reasoning.output_tokens": "50",
		"gen_ai.agent.name": "payer", "gen_ai.conversation.id": "trip-42", "fermata.run": "01a1", "fermata.turn": "1", "fermata.attempt": "2", "fermata.reasoning": "low",
	}, attrs(s.Attributes))
	const of = "gen_ai.operation.name=chat,gen_ai.provider.name=acme,gen_ai.request.model=big"
	sums := p.sums(t)
	require.Equal(t, map[string]float64{of: 1}, sums["gen_ai.client.operation.duration"])
	require.Equal(t, map[string]float64{of + ",gen_ai.token.type=input": 1000, of + ",gen_ai.token.type=output": 200}, sums["gen_ai.client.token.usage"])
	require.InDelta(t, 0.0039, sums["fermata.cost"]["gen_ai.agent.name=payer,"+of], 1e-9)
}

// A failed attempt has the class of its fault and not its words; one that was given up
// for somebody's wish has not failed.
func TestModelCallsThatFail(t *testing.T) {
	const of = "gen_ai.operation.name=chat,gen_ai.provider.name=acme,gen_ai.request.model=big"
	fault := func(kind agent.FaultKind) error { return model.Fault(kind, 0, 0, secret) }
	for name, c := range map[string]struct {
		cause error // of the context's end
		err   error
		class string
	}{
		"a provider's fault":         {nil, fault(agent.FaultRateLimit), "rate_limit"},
		"a code":                     {nil, agent.Errorf(agent.CodeBadOutput, "%s", secret), "bad_output"},
		"anything else":              {nil, errors.New(secret), "internal"},
		"a model that fell silent":   {fault(agent.FaultTimeout), context.Canceled, "timeout"},
		"a model that sent too much": {fault(agent.FaultBadRequest), context.Canceled, "bad_request"},
		"a hold":                     {context.Canceled, context.Canceled, ""},
		"somebody who had no time":   {context.DeadlineExceeded, context.DeadlineExceeded, "timeout"},
		"a worker that shut it down": {errors.New("shutdown"), fault(agent.FaultTransient), ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := begin(t)
			ctx, cancel := context.WithCancelCause(t.Context())
			if errors.Is(c.cause, context.DeadlineExceeded) {
				var stop context.CancelFunc
				ctx, stop = context.WithDeadline(ctx, time.Now())
				defer stop()
			} else if c.cause != nil {
				cancel(c.cause)
			}
			defer cancel(nil)
			require.ErrorIs(t, p.ask(ctx, func(context.Context) (*model.Reply, error) { return nil, c.err }), c.err)
			s := p.only(t)
			if c.class == "" {
				require.Equal(t, codes.Unset, s.Status.Code)
				require.Equal(t, "given_up", attrs(s.Attributes)["fermata.outcome"])
				require.Equal(t, map[string]float64{of: 1}, p.sums(t)["gen_ai.client.operation.duration"])
				return
			}
			require.Equal(t, codes.Error, s.Status.Code)
			require.Equal(t, c.class, s.Status.Description)
			require.Equal(t, c.class, attrs(s.Attributes)["error.type"])
			require.Equal(t, map[string]float64{"error.type=" + c.class + "," + of: 1}, p.sums(t)["gen_ai.client.operation.duration"])
		})
	}
}

// A model that something else asks than a run is traced where it is asked.
func TestAModelThatNoRunAsks(t *testing.T) {
	p := begin(t)
	ctx, caller := p.tracers.Tracer("test").Start(t.Context(), "caller")
	_, err := p.Model(answers(func(context.Context) (*model.Reply, error) { return &model.Reply{Finish: model.FinishStop}, nil })).
		Generate(ctx, &model.Request{Model: "big"}, func(model.Delta) {})
	require.NoError(t, err)
	s := p.only(t)
	require.Equal(t, caller.SpanContext().SpanID(), s.Parent.SpanID())
	require.Equal(t, map[string]string{"gen_ai.operation.name": "chat", "gen_ai.request.model": "big", "gen_ai.response.finish_reasons": `["stop"]`}, attrs(s.Attributes))
}

// An attempt at a tool call is a span below its turn, with its session, and what the tool does is
// below that (OA-94).
func TestAToolCall(t *testing.T) {
	for status, c := range map[agent.CallStatus]struct{ class, outcome string }{
		agent.CallOK: {}, agent.CallFailed: {class: "tool_failed"}, agent.CallUnknown: {class: "unknown"}, agent.CallRejected: {outcome: "rejected"},
	} {
		t.Run(string(status), func(t *testing.T) {
			p := begin(t)
			ctx, over := p.Tool(t.Context(), call("pay"), where)
			_, inner := p.tracers.Tracer("test").Start(ctx, "POST /payments")
			inner.End()
			within := p.only(t)
			over(status)
			s := p.only(t)
			require.Equal(t, s.SpanContext.SpanID(), within.Parent.SpanID())
			require.Equal(t, "execute_tool pay", s.Name)
			require.Equal(t, trace.SpanKindInternal, s.SpanKind)
			require.Equal(t, where.Traceparent("01a1")[:52], traceparent(s.Parent))
			want := map[string]string{
				"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "pay", "gen_ai.tool.call.id": "t1.1", "gen_ai.tool.type": "function",
				"gen_ai.agent.name": "payer", "gen_ai.conversation.id": "trip-42", "fermata.run": "01a1", "fermata.turn": "1", "fermata.attempt": "2",
			}
			of := "gen_ai.operation.name=execute_tool,gen_ai.tool.name=pay"
			if c.class != "" {
				require.Equal(t, codes.Error, s.Status.Code)
				want["error.type"], of = c.class, "error.type="+c.class+","+of
			}
			if c.outcome != "" {
				want["fermata.outcome"] = c.outcome
			}
			require.Equal(t, want, attrs(s.Attributes))
			require.Equal(t, map[string]float64{of: 1}, p.sums(t)["gen_ai.client.operation.duration"])
		})
	}
	p := begin(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, over := p.Tool(ctx, call("pay"), where)
	cancel()
	over(agent.CallFailed)
	s := p.only(t)
	require.Equal(t, codes.Unset, s.Status.Code, "it was interrupted")
	require.Equal(t, "given_up", attrs(s.Attributes)["fermata.outcome"])
}

// A call that the run's workflow makes is one span below its turn, from the call's beginning to
// the event that ends it. A task that is run again, here or in another process, makes the same.
func TestACallOfTheUsersOwn(t *testing.T) {
	for status, c := range map[agent.CallStatus]struct {
		gaveUp         bool
		class, outcome string
	}{
		agent.CallOK: {}, agent.CallFailed: {class: "tool_failed"}, agent.CallUnknown: {gaveUp: true, outcome: "given_up"}, agent.CallSkipped: {outcome: "skipped"},
	} {
		t.Run(string(status), func(t *testing.T) {
			p, again := begin(t), begin(t)
			l := started(p, "")
			l.tell(p, agent.Event{Type: agent.EventTurnStarted})
			began := l.now
			l.now = l.now.Add(time.Hour)
			done := l.tell(p, agent.Event{Type: agent.EventCallDone, Call: &agent.CallUpdate{Call: "t1.1", Tool: "charge", Status: status}})
			require.Empty(t, p.spans.GetSpans(), "an activity of ours has told of this call")
			done.Outside = &observe.OutsideCall{Kind: agent.TemporalActivity, Began: began, GaveUp: c.gaveUp}
			done.Event.Seq++
			p.Event(t.Context(), done)
			p.Event(t.Context(), done)
			s := p.only(t)
			require.Equal(t, "execute_tool charge", s.Name)
			require.Equal(t, where.Traceparent("01a1")[:52], traceparent(s.Parent))
			require.Equal(t, []time.Time{began, done.Event.Time}, []time.Time{s.StartTime, s.EndTime})
			want := map[string]string{
				"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "charge", "gen_ai.tool.call.id": "t1.1", "gen_ai.tool.type": "function", "fermata.tool.temporal": "activity",
				"gen_ai.agent.name": "payer", "gen_ai.conversation.id": "trip-42", "fermata.run": "01a1", "fermata.turn": "1",
			}
			of := "gen_ai.operation.name=execute_tool,gen_ai.tool.name=charge"
			if c.class != "" {
				require.Equal(t, codes.Error, s.Status.Code)
				want["error.type"], of = c.class, "error.type="+c.class+","+of
			}
			if c.outcome != "" {
				want["fermata.outcome"] = c.outcome
			}
			require.Equal(t, want, attrs(s.Attributes))
			require.Equal(t, map[string]float64{of: 1}, p.sums(t)["gen_ai.client.operation.duration"])
			again.Event(t.Context(), done)
			require.Equal(t, s.SpanContext.SpanID(), again.only(t).SpanContext.SpanID())
		})
	}
}

// Between two turns a call hangs below the segment.
func TestACallBetweenTurns(t *testing.T) {
	p := begin(t)
	_, over := p.Tool(t.Context(), call("pay"), agent.Trace{Segment: 1})
	over(agent.CallOK)
	require.Equal(t, where.SegmentTraceparent("01a1")[:52], traceparent(p.only(t).Parent))
}

// What the Temporal SDK counts comes too.
func TestTheSDKsOwnMetrics(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	var o client.Options
	telemetry.Prepare(&o, sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	o.MetricsHandler.WithTags(map[string]string{"task_queue": "fermata"}).Counter("temporal_workflow_completed").Inc(2)
	var data metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &data))
	m := data.ScopeMetrics[0].Metrics[0]
	require.Equal(t, "temporal_workflow_completed", m.Name)
	require.True(t, m.Data.(metricdata.Sum[int64]).IsMonotonic)
}
