package telemetry_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/observe"
	"github.com/fermata-agents/fermata/telemetry"
)

// process is a worker's process: its telemetry, and what that exports.
type process struct {
	*telemetry.Telemetry
	spans   *tracetest.InMemoryExporter
	reader  *sdkmetric.ManualReader
	tracers *sdktrace.TracerProvider
}

func begin(t *testing.T, o ...sdktrace.TracerProviderOption) *process {
	t.Helper()
	p := &process{spans: tracetest.NewInMemoryExporter(), reader: sdkmetric.NewManualReader()}
	p.tracers = sdktrace.NewTracerProvider(append(o, sdktrace.WithSyncer(p.spans), sdktrace.WithIDGenerator(telemetry.IDs()))...)
	var err error
	p.Telemetry, err = telemetry.New(p.tracers, sdkmetric.NewMeterProvider(sdkmetric.WithReader(p.reader)))
	require.NoError(t, err)
	return p
}

// story is a run as it goes on: it tells its events to processes.
type story struct {
	session, run, agent string
	segment             agent.TraceSegment
	seq                 int64
	turn                int
	now                 time.Time
}

func started(p *process, parent string) *story {
	l := &story{session: "trip-42", run: "01a1", agent: "payer", now: time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)}
	l.segment.Parent = parent
	l.tell(p, agent.Event{Type: agent.EventRunStarted})
	return l
}

// tell tells of an event a second later.
func (l *story) tell(p *process, e agent.Event) observe.RunEvent {
	l.seq++
	l.now = l.now.Add(time.Second)
	if e.Type == agent.EventTurnStarted {
		l.turn++
	}
	e.Seq, e.Time, e.Turn = l.seq, l.now, l.turn
	s := observe.RunEvent{Session: l.session, Run: l.run, Agent: l.agent, Model: "acme/big", Event: e, TraceSegment: l.segment}
	p.Event(s)
	l.segment = l.segment.Next(l.run, e)
	return s
}

func (l *story) suspend(p *process) {
	l.tell(p, agent.Event{Type: agent.EventRunSuspended, Suspension: &agent.Suspension{
		ID: "s-1", Kind: agent.SuspensionInputRequired, Initiator: agent.InitiatorSelf, Cause: "question", Reason: secret, Requests: []agent.Request{{ID: "q-1", Type: agent.RequestQuestion, Text: secret}},
	}})
}

// secret is what nobody but the run may know.
const secret = "the code is 0000"

func (l *story) answer(p *process) {
	l.tell(p, agent.Event{Type: agent.EventRequestAnswered, Answer: &agent.Answered{Request: "q-1", Decision: "answer", Reason: secret}})
	l.tell(p, agent.Event{Type: agent.EventRunResumed, Resumed: &agent.Resumed{Suspension: "s-1", Cause: agent.InitiatorOperator, By: "ana@acme.com"}})
}

func (l *story) end(p *process, how agent.EventType, err *agent.Error) {
	l.tell(p, agent.Event{Type: how, Outcome: &agent.Outcome{Text: secret, Reason: secret, Error: err}})
}

// named finds the spans of a name.
func named(spans tracetest.SpanStubs, name string) (found tracetest.SpanStubs) {
	for _, s := range spans {
		if s.Name == name {
			found = append(found, s)
		}
	}
	return found
}

// attrs are attributes as text.
func attrs(list []attribute.KeyValue) map[string]string {
	m := map[string]string{}
	for _, a := range list {
		m[string(a.Key)] = a.Value.String()
	}
	return m
}

// traceparent is that of a span, as far as it is not about sampling.
func traceparent(sc trace.SpanContext) string {
	return fmt.Sprintf("00-%s-%s", sc.TraceID(), sc.SpanID())
}

// The span of a run that rests says what it waits for and by which ids that is answered,
// and nothing of what was asked or of whom (OA-68).
func TestASpanSaysWhatIsWaitedFor(t *testing.T) {
	event := func(topic string) *agent.EventCondition {
		return &agent.EventCondition{Topic: topic, Match: json.RawMessage(`{"const":"` + secret + `"}`)}
	}
	for name, c := range map[string]struct {
		open      agent.Suspension
		what, ids string
	}{
		"two questions, an approval": {agent.Suspension{Kind: agent.SuspensionInputRequired, Requests: []agent.Request{
			{ID: "q-1", Type: agent.RequestQuestion, Text: secret}, {ID: "q-2", Type: agent.RequestQuestion, Choices: []string{secret}},
			{ID: "q-3", Type: agent.RequestApproval, Approvers: []string{secret}, Call: &agent.RequestCall{Tool: "pay", Arguments: json.RawMessage(`"` + secret + `"`)}},
		}}, `["question","approval"]`, `["q-1","q-2","q-3"]`},
		"events and a time": {agent.Suspension{Kind: agent.SuspensionParked, Conditions: &agent.Conditions{
			Any: []agent.Condition{{Event: event("orders.paid")}, {Event: event("orders.lost")}, {At: time.Unix(1, 0)}}, Input: secret,
		}}, `["topic:orders.paid","topic:orders.lost","time"]`, `[]`},
		"somebody, while it is held": {agent.Suspension{
			Kind: agent.SuspensionParked, Conditions: &agent.Conditions{}, Holds: []agent.Hold{{By: secret, Reason: secret}},
		}, `["held"]`, `[]`},
	} {
		p := begin(t)
		l := started(p, "")
		l.tell(p, agent.Event{Type: agent.EventRunSuspended, Suspension: &c.open})
		span := named(p.spans.GetSpans(), "invoke_agent payer")[0]
		got := attrs(span.Attributes)
		require.Equal(t, []string{c.what, c.ids}, []string{got["fermata.suspension.waits_for"], got["fermata.suspension.requests"]}, name)
		require.NotContains(t, fmt.Sprintf("%+v", span), secret, name)
	}
}

// The span of a segment ends before the wait. What comes after it is a trace of its own,
// made by another process, that links to it (HL-103, OA-67, OA-69, OA-80, OA-94); its attributes are
// these and no others (HL-104), and what was said is nowhere (HL-105).
func TestASuspendedRunIsTwoTraces(t *testing.T) {
	one, other := begin(t), begin(t)
	l := started(one, "")
	l.tell(one, agent.Event{Type: agent.EventTurnStarted})
	l.suspend(one)
	before := one.spans.GetSpans()
	require.Len(t, before, 2, "all that there is so far is told before anybody goes on")
	l.answer(other)
	l.tell(other, agent.Event{Type: agent.EventTurnEnded})
	l.tell(other, agent.Event{Type: agent.EventTurnStarted})
	l.tell(other, agent.Event{Type: agent.EventTurnEnded})
	l.end(other, agent.EventRunCompleted, nil)
	after := other.spans.GetSpans()
	require.Len(t, after, 3)

	first, second := named(before, "invoke_agent payer")[0], named(after, "invoke_agent payer")[0]
	for _, s := range []tracetest.SpanStub{first, second} {
		require.False(t, s.Parent.IsValid())
		require.Equal(t, codes.Unset, s.Status.Code)
		require.Equal(t, trace.SpanKindInternal, s.SpanKind)
	}
	require.NotEqual(t, first.SpanContext.TraceID(), second.SpanContext.TraceID())
	require.Equal(t, map[string]string{
		"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "payer", "gen_ai.conversation.id": "trip-42", "gen_ai.provider.name": "acme",
		"gen_ai.request.model": "big", "fermata.run": "01a1", "fermata.outcome": "suspended", "fermata.suspension": "s-1",
		"fermata.suspension.kind": "input_required", "fermata.suspension.initiator": "self", "fermata.suspension.cause": "question",
		"fermata.suspension.conditions": "false", "fermata.suspension.waits_for": `["question"]`, "fermata.suspension.requests": `["q-1"]`,
	}, attrs(first.Attributes))
	require.Equal(t, map[string]string{
		"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "payer", "gen_ai.conversation.id": "trip-42", "gen_ai.provider.name": "acme",
		"gen_ai.request.model": "big", "fermata.run": "01a1", "fermata.outcome": "completed", "fermata.resumed.suspension": "s-1",
		"fermata.resumed.cause": "operator", "fermata.resumed.input": "true",
	}, attrs(second.Attributes))
	require.Len(t, second.Links, 1)
	require.True(t, second.Links[0].SpanContext.Equal(first.SpanContext.WithRemote(true)))
	require.Equal(t, map[string]string{"fermata.link.kind": "suspension"}, attrs(second.Links[0].Attributes))
	at := func(s int) time.Time { return time.Date(2026, 11, 21, 8, 0, s, 0, time.UTC) }
	require.Equal(t, []time.Time{at(1), at(3), at(5), at(9)}, []time.Time{first.StartTime, first.EndTime, second.StartTime, second.EndTime})

	turns := append(named(before, "turn"), named(after, "turn")...)
	for i, want := range []struct {
		in            tracetest.SpanStub
		turn, outcome string
		from, to      int
	}{{first, "1", "suspended", 2, 3}, {second, "1", "ended", 5, 6}, {second, "2", "ended", 7, 8}} {
		require.Equal(t, want.in.SpanContext.SpanID(), turns[i].Parent.SpanID())
		require.Equal(t, want.in.SpanContext.TraceID(), turns[i].SpanContext.TraceID())
		require.Equal(t, map[string]string{
			"gen_ai.agent.name": "payer", "gen_ai.conversation.id": "trip-42", "fermata.run": "01a1", "fermata.turn": want.turn, "fermata.outcome": want.outcome,
		}, attrs(turns[i].Attributes))
		require.Equal(t, []time.Time{at(want.from), at(want.to)}, []time.Time{turns[i].StartTime, turns[i].EndTime})
	}
	require.NotContains(t, fmt.Sprintf("%+v %+v", before, after), secret)
}

// A run that ends while it is suspended has a span for its end, in whichever process:
// the suspended segment's was told before, and is not told again.
func TestAnEndWhileSuspended(t *testing.T) {
	one, other := begin(t), begin(t)
	l := started(one, "")
	l.tell(one, agent.Event{Type: agent.EventTurnStarted})
	l.suspend(one)
	l.tell(other, agent.Event{Type: agent.EventTurnEnded})
	l.end(other, agent.EventRunCancelled, nil)
	require.Len(t, one.spans.GetSpans(), 2)
	require.Len(t, other.spans.GetSpans(), 1)
	end := other.spans.GetSpans()[0]
	require.Equal(t, "cancelled", attrs(end.Attributes)["fermata.outcome"])
	require.Equal(t, codes.Unset, end.Status.Code)
	suspended := named(one.spans.GetSpans(), "invoke_agent payer")[0]
	require.Equal(t, suspended.SpanContext.SpanID(), end.Links[0].SpanContext.SpanID())
	require.NotEqual(t, suspended.SpanContext.SpanID(), end.SpanContext.SpanID())
}

// A failed run's span is one, with its code and no word of why; a turn that it cut is not.
func TestAFailedRun(t *testing.T) {
	p := begin(t)
	l := started(p, "")
	l.tell(p, agent.Event{Type: agent.EventTurnStarted})
	l.end(p, agent.EventRunFailed, agent.Errorf(agent.CodeProviderError, "%s", secret))
	run, turn := named(p.spans.GetSpans(), "invoke_agent payer")[0], named(p.spans.GetSpans(), "turn")[0]
	require.Equal(t, sdktrace.Status{Code: codes.Error, Description: "provider_error"}, run.Status)
	require.Equal(t, "provider_error", attrs(run.Attributes)["error.type"])
	require.Equal(t, codes.Unset, turn.Status.Code)
	require.Equal(t, "failed", attrs(turn.Attributes)["fermata.outcome"])
	require.NotContains(t, fmt.Sprintf("%+v", p.spans.GetSpans()), secret)
}

// A task that was lost and is done once more tells the same again: it is told once.
func TestNothingIsToldTwice(t *testing.T) {
	p := begin(t)
	l := started(p, "")
	var seen []observe.RunEvent
	for _, e := range []agent.EventType{agent.EventTurnStarted, agent.EventTurnEnded, agent.EventRunCompleted} {
		seen = append(seen, l.tell(p, agent.Event{Type: e}))
	}
	told := len(p.spans.GetSpans())
	require.Equal(t, 2, told)
	for _, s := range seen {
		p.Event(s)
	}
	require.Len(t, p.spans.GetSpans(), told)
	require.Equal(t, map[string]float64{"gen_ai.agent.name=payer": 1}, p.sums(t)["fermata.turns"])
}

// A run that was started from within a trace is a part of it, and kept where that is.
func TestARunWithinATrace(t *testing.T) {
	p := begin(t, sdktrace.WithSampler(sdktrace.AlwaysSample()))
	ctx, caller := p.tracers.Tracer("test").Start(t.Context(), "caller")
	l := started(p, telemetry.Traceparent(ctx))
	l.end(p, agent.EventRunCompleted, nil)
	caller.End()
	run := named(p.spans.GetSpans(), "invoke_agent payer")[0]
	require.Equal(t, caller.SpanContext().TraceID(), run.SpanContext.TraceID())
	require.Equal(t, caller.SpanContext().SpanID(), run.Parent.SpanID())

	p.spans.Reset()
	l = started(p, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00")
	l.run = "01a2"
	l.tell(p, agent.Event{Type: agent.EventTurnStarted})
	_, over := p.Tool(t.Context(), call("pay"), l.segment.Trace)
	over(agent.CallOK)
	l.end(p, agent.EventRunCompleted, nil)
	require.Empty(t, p.spans.GetSpans(), "nothing below a span that is not kept is kept")
	require.Empty(t, telemetry.Traceparent(t.Context()))
}

// Every process decides the same of a trace, whichever of its spans it makes: either
// all are kept or none.
func TestTracesAreKeptWholeOrNotAtAll(t *testing.T) {
	for name, sampler := range map[string]sdktrace.Sampler{
		"by id": sdktrace.TraceIDRatioBased(0.5), "by parent": sdktrace.ParentBased(sdktrace.TraceIDRatioBased(0.5)),
	} {
		t.Run(name, func(t *testing.T) {
			runs, calls, below := begin(t, sdktrace.WithSampler(sampler)), begin(t, sdktrace.WithSampler(sampler)), begin(t, sdktrace.WithSampler(sampler))
			kept := 0
			for i := range 100 {
				l := started(runs, "")
				l.run = fmt.Sprintf("01a%d", i)
				l.tell(runs, agent.Event{Type: agent.EventTurnStarted})
				c := call("pay")
				c.Run = l.run
				_, over := calls.Tool(t.Context(), c, l.segment.Trace)
				over(agent.CallOK)
				child := started(below, l.segment.Traceparent(l.run))
				child.run = l.run + "-child"
				child.end(below, agent.EventRunCompleted, nil)
				l.tell(runs, agent.Event{Type: agent.EventTurnEnded})
				l.end(runs, agent.EventRunCompleted, nil)
				n := len(named(runs.spans.GetSpans(), "invoke_agent payer"))
				require.Len(t, runs.spans.GetSpans(), 2*n)
				require.Len(t, calls.spans.GetSpans(), n)
				require.Len(t, below.spans.GetSpans(), n)
				kept = n
			}
			require.Greater(t, kept, 20)
			require.Less(t, kept, 80)
		})
	}
}

// A tracer provider that makes ids of its own is refused, with what to write.
func TestIDsAreNeeded(t *testing.T) {
	_, err := telemetry.New(sdktrace.NewTracerProvider(), nil)
	require.ErrorIs(t, err, agent.CodeNotSetUp)
	require.ErrorContains(t, err, "sdktrace.WithIDGenerator(telemetry.IDs())")
	spans := tracetest.NewInMemoryExporter()
	_, err = telemetry.New(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans), sdktrace.WithIDGenerator(telemetry.IDs())), nil)
	require.NoError(t, err)
	require.Empty(t, spans.GetSpans(), "finding out exports nothing")
	silent, err := telemetry.New(nil, nil)
	require.NoError(t, err)
	p := &process{Telemetry: silent}
	l := started(p, "")
	l.tell(p, agent.Event{Type: agent.EventTurnStarted})
	l.suspend(p)
	l.answer(p)
	l.end(p, agent.EventRunCompleted, nil)
}

// Spans of others have ids as always.
func TestOtherSpansHaveRandomIDs(t *testing.T) {
	ids := telemetry.IDs()
	traces, spans := map[trace.TraceID]bool{}, map[trace.SpanID]bool{}
	for range 1000 {
		id, span := ids.NewIDs(t.Context())
		require.True(t, id.IsValid() && span.IsValid())
		traces[id], spans[span], spans[ids.NewSpanID(t.Context(), id)] = true, true, true
	}
	require.Len(t, traces, 1000)
	require.Len(t, spans, 2000)
}

// sums are the metrics: of a counter its sum, of a histogram how many it has, by their
// attributes.
func (p *process) sums(t *testing.T) map[string]map[string]float64 {
	t.Helper()
	var data metricdata.ResourceMetrics
	require.NoError(t, p.reader.Collect(context.Background(), &data))
	out := map[string]map[string]float64{}
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			points := map[string]float64{}
			key := func(s attribute.Set) string { return s.Encoded(attribute.DefaultEncoder()) }
			switch d := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, x := range d.DataPoints {
					points[key(x.Attributes)] = float64(x.Value)
				}
			case metricdata.Sum[float64]:
				for _, x := range d.DataPoints {
					points[key(x.Attributes)] = x.Value
				}
			case metricdata.Histogram[int64]:
				for _, x := range d.DataPoints {
					points[key(x.Attributes)] = float64(x.Sum)
				}
			case metricdata.Histogram[float64]:
				for _, x := range d.DataPoints {
					points[key(x.Attributes)] = float64(x.Count)
				}
			}
			out[m.Name] = points
		}
	}
	return out
}
