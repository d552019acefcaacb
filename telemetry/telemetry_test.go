package telemetry_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

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
	return beginWith(t, nil, o...)
}

func beginWith(t *testing.T, with *telemetry.Options, o ...sdktrace.TracerProviderOption) *process {
	t.Helper()
	p := &process{spans: tracetest.NewInMemoryExporter(), reader: sdkmetric.NewManualReader()}
	p.tracers = sdktrace.NewTracerProvider(append(o, sdktrace.WithSyncer(p.spans), sdktrace.WithIDGenerator(telemetry.IDs()))...)
	var err error
	p.Telemetry, err = telemetry.New(p.tracers, sdkmetric.NewMeterProvider(sdkmetric.WithReader(p.reader)), with)
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
	p.Event(context.Background(), s)
	l.segment = l.segment.Next(l.run, e)
	return s
}

func (l *story) suspend(p *process) {
	l.tell(p, agent.Event{Type: agent.EventRunSuspended, Suspension: &agent.Suspension{
		ID: "s-1", Kind: agent.SuspensionInputRequired, Initiator: agent.InitiatorSelf, Cause: "question", Reason: secret, Requests: []agent.Request{{ID: "q-1", Type: agent.RequestQuestion, Text: secret, Opened: l.now}},
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

// descriptor are the attributes of a span that say what a suspension waits for.
func descriptor(s tracetest.SpanStub) map[string]string {
	found := map[string]string{}
	for name, value := range attrs(s.Attributes) {
		if strings.HasPrefix(name, "fermata.suspension") {
			found[name] = value
		}
	}
	return found
}

// The span of the step that suspends carries the descriptor: the suspension's id, what it
// waits for and by which ids that is answered. No other span of the trace has any of it, and
// nothing of what was asked or of whom is in a span unless somebody has opted in (OA-68).
func TestASpanSaysWhatIsWaitedFor(t *testing.T) {
	event := func(topic string) *agent.EventCondition {
		return &agent.EventCondition{Topic: topic, Match: json.RawMessage(`{"const":"` + secret + `"}`)}
	}
	for name, c := range map[string]struct {
		open      agent.Suspension
		what, ids string
		texts     map[string]string // with the option alone
	}{
		"two questions, an approval": {agent.Suspension{Kind: agent.SuspensionInputRequired, Initiator: agent.InitiatorSelf, Cause: "question", Requests: []agent.Request{
			{ID: "q-1", Type: agent.RequestQuestion, Text: secret}, {ID: "q-2", Type: agent.RequestQuestion, Choices: []string{secret, "b"}, Context: secret},
			{ID: "q-3", Type: agent.RequestApproval, Approvers: []string{secret}, Call: &agent.RequestCall{Tool: "pay", Arguments: json.RawMessage(`"` + secret + `"`)}},
		}}, `["question","approval"]`, `["q-1","q-2","q-3"]`, map[string]string{
			"texts": `["` + secret + `","",""]`, "choices": `["","[\"` + secret + `\",\"b\"]",""]`, "contexts": `["","` + secret + `",""]`,
			"tools": `["","","pay"]`, "arguments": `["","","\"` + secret + `\""]`, "approvers": `["","","[\"` + secret + `\"]"]`,
		}},
		"events and a time": {agent.Suspension{Kind: agent.SuspensionParked, Initiator: agent.InitiatorSelf, Reason: secret, Conditions: &agent.Conditions{
			Any: []agent.Condition{{Event: event("orders.paid")}, {Event: event("orders.lost")}, {At: time.Unix(1, 0)}}, Input: secret,
		}}, `["topic:orders.paid","topic:orders.lost","time"]`, `[]`, map[string]string{
			"reason": secret, "matches": `["{\"const\":\"` + secret + `\"}","{\"const\":\"` + secret + `\"}",""]`,
		}},
		"somebody, while it is held": {agent.Suspension{
			Kind: agent.SuspensionParked, Initiator: agent.InitiatorOperator, Conditions: &agent.Conditions{}, Holds: []agent.Hold{{By: secret, Reason: secret}},
		}, `["held"]`, `[]`, map[string]string{"held_by": `["` + secret + `"]`, "held_for": `["` + secret + `"]`}},
	} {
		t.Run(name, func(t *testing.T) {
			c.open.ID, c.open.Expires = "s-7", time.Unix(7, 0)
			want := map[string]string{
				"fermata.suspension.id": "s-7", "fermata.suspension.kind": string(c.open.Kind), "fermata.suspension.initiator": string(c.open.Initiator),
				"fermata.suspension.cause": c.open.Cause, "fermata.suspension.conditions": fmt.Sprint(c.open.Conditions != nil),
				"fermata.suspension.waits_for": c.what, "fermata.suspension.requests": c.ids, "fermata.suspension.expires": "1970-01-01T00:00:07Z",
			}
			for _, texts := range []bool{false, true} {
				p := beginWith(t, &telemetry.Options{SuspensionTexts: texts})
				l := started(p, "")
				l.tell(p, agent.Event{Type: agent.EventTurnStarted})
				l.tell(p, agent.Event{Type: agent.EventRunSuspended, Suspension: &c.open})
				if texts {
					for name, text := range c.texts {
						want["fermata.suspension."+name] = text
					}
				} else {
					require.NotContains(t, fmt.Sprintf("%+v", p.spans.GetSpans()), secret)
				}
				require.Len(t, p.spans.GetSpans(), 3)
				require.Equal(t, want, descriptor(named(p.spans.GetSpans(), "suspend "+string(c.open.Kind))[0]))
				require.Empty(t, descriptor(named(p.spans.GetSpans(), "invoke_agent payer")[0]))
				require.Empty(t, descriptor(named(p.spans.GetSpans(), "turn")[0]))
			}
		})
	}
}

// What a suspension says is cut before a backend refuses it, and is text for every backend.
func TestLongTextsAreCut(t *testing.T) {
	p := beginWith(t, &telemetry.Options{SuspensionTexts: true})
	l := started(p, "")
	v := &agent.Suspension{Kind: agent.SuspensionInputRequired, Reason: "a\xff" + strings.Repeat("é", 5000)}
	for i := range 100 {
		v.Requests = append(v.Requests, agent.Request{ID: fmt.Sprint("q-", i), Text: strings.Repeat("x", 5000)})
	}
	l.tell(p, agent.Event{Type: agent.EventRunSuspended, Suspension: v})
	for _, a := range named(p.spans.GetSpans(), "suspend input_required")[0].Attributes {
		switch a.Key {
		case "fermata.suspension.reason":
			text := a.Value.AsString()
			require.True(t, utf8.ValidString(text))
			require.True(t, strings.HasPrefix(text, "a\uFFFDé") || strings.HasPrefix(text, "aé"), text)
			require.True(t, strings.HasSuffix(text, "é…"), text)
			require.Less(t, len(text), 1100)
		case "fermata.suspension.texts":
			require.Len(t, a.Value.AsStringSlice(), 32)
			require.Equal(t, strings.Repeat("x", 1024)+"…", a.Value.AsStringSlice()[31])
		}
	}
}

// The span of a segment ends before the wait. What comes after it is a trace of its own,
// made by another process, that links to it (HL-103, OA-67, OA-69, OA-94); its attributes are
// these and no others (HL-104), and what was said is nowhere (HL-105).
//
// The root span closes with a status that is neither Ok nor Error, and the suspending
// step's span closes with the same (OA-80). The catalogue's source asks for "a status code
// indicating the invocation paused (distinct from "OK" / "ERROR" — the spec extends §4.2
// status mapping to include a SUSPENDED flavor, which backends map per their convention)".
// OpenTelemetry's codes are Unset, Ok and Error and can't be extended. By its convention an
// instrumentation leaves the code Unset where nothing failed, and names a state of its
// domain in an attribute: here fermata.outcome is suspended, on both spans.
func TestASuspendedRunIsTwoTraces(t *testing.T) {
	one, other := begin(t), begin(t)
	l := started(one, "")
	l.tell(one, agent.Event{Type: agent.EventTurnStarted})
	l.suspend(one)
	before := one.spans.GetSpans()
	require.Len(t, before, 3, "all that there is so far is told before anybody goes on")
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
		require.Equal(t, trace.SpanKindInternal, s.SpanKind)
	}
	for _, s := range slices.Concat(before, after) {
		require.Equal(t, codes.Unset, s.Status.Code)
	}
	require.NotEqual(t, first.SpanContext.TraceID(), second.SpanContext.TraceID())
	require.Equal(t, map[string]string{
		"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "payer", "gen_ai.conversation.id": "trip-42", "gen_ai.provider.name": "acme",
		"gen_ai.request.model": "big", "fermata.run": "01a1", "fermata.outcome": "suspended",
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

	step := named(before, "suspend input_required")[0]
	require.Equal(t, turns[0].SpanContext.SpanID(), step.Parent.SpanID())
	require.Equal(t, trace.SpanKindInternal, step.SpanKind)
	require.Equal(t, map[string]string{
		"gen_ai.agent.name": "payer", "gen_ai.conversation.id": "trip-42", "fermata.run": "01a1", "fermata.turn": "1", "fermata.outcome": "suspended",
		"fermata.suspension.id": "s-1", "fermata.suspension.kind": "input_required", "fermata.suspension.initiator": "self", "fermata.suspension.cause": "question",
		"fermata.suspension.conditions": "false", "fermata.suspension.waits_for": `["question"]`, "fermata.suspension.requests": `["q-1"]`,
	}, attrs(step.Attributes))
	require.Equal(t, []time.Time{at(2), at(3)}, []time.Time{step.StartTime, step.EndTime})
	require.NotContains(t, fmt.Sprintf("%+v %+v", before, after), secret)
}

// A hold from outside that comes between two turns has its span below the run's. It lasts
// from the hold until the run has come to rest, and never begins before the span above it.
func TestAHoldBetweenTurns(t *testing.T) {
	for name, c := range map[string]struct{ held, from int }{"a hold of this segment": {2, 2}, "one from before it": {-60, 1}} {
		t.Run(name, func(t *testing.T) {
			p := begin(t)
			l := started(p, "")
			zero := l.now.Add(-time.Second)
			l.tell(p, agent.Event{Type: agent.EventTurnStarted})
			l.tell(p, agent.Event{Type: agent.EventTurnEnded})
			l.tell(p, agent.Event{Type: agent.EventRunSuspended, Suspension: &agent.Suspension{
				ID: "s-2", Kind: agent.SuspensionHeld, Initiator: agent.InitiatorOperator, Holds: []agent.Hold{{ID: "h-1", At: zero.Add(time.Duration(c.held) * time.Second)}},
			}})
			run, step := named(p.spans.GetSpans(), "invoke_agent payer")[0], named(p.spans.GetSpans(), "suspend held")[0]
			require.Equal(t, run.SpanContext.SpanID(), step.Parent.SpanID())
			require.Equal(t, run.SpanContext.TraceID(), step.SpanContext.TraceID())
			require.NotContains(t, attrs(step.Attributes), "fermata.turn")
			require.Equal(t, []time.Time{zero.Add(time.Duration(c.from) * time.Second), run.EndTime}, []time.Time{step.StartTime, step.EndTime})
			require.Equal(t, "ended", attrs(named(p.spans.GetSpans(), "turn")[0].Attributes)["fermata.outcome"])
		})
	}
}

// A task that was lost with its worker as the run was suspended is done by another one: the
// same spans come from there, by the same ids. In one process they come once.
func TestASuspensionIsToldOnce(t *testing.T) {
	one, other := begin(t), begin(t)
	l := started(one, "")
	l.tell(one, agent.Event{Type: agent.EventTurnStarted})
	suspended := l.tell(one, agent.Event{Type: agent.EventRunSuspended, Suspension: &agent.Suspension{ID: "s-1", Kind: agent.SuspensionHeld}})
	one.Event(t.Context(), suspended)
	other.Event(t.Context(), suspended)
	require.Len(t, one.spans.GetSpans(), 3)
	for i, s := range one.spans.GetSpans() {
		again := other.spans.GetSpans()[i]
		require.Equal(t, s.Name, again.Name)
		require.Equal(t, s.SpanContext, again.SpanContext)
		require.Equal(t, s.Parent, again.Parent)
	}
	ids := map[trace.SpanID]bool{}
	for range 2 { // a suspension of the same turn, later
		l.tell(one, agent.Event{Type: agent.EventRunResumed, Resumed: &agent.Resumed{Suspension: "s-1", Cause: agent.InitiatorOperator}})
		l.tell(one, agent.Event{Type: agent.EventRunSuspended, Suspension: &agent.Suspension{ID: "s-2", Kind: agent.SuspensionHeld}})
	}
	for _, s := range one.spans.GetSpans() {
		require.False(t, ids[s.SpanContext.SpanID()], s.Name)
		ids[s.SpanContext.SpanID()] = true
	}
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
	require.Len(t, one.spans.GetSpans(), 3)
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
		p.Event(t.Context(), s)
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
	_, err := telemetry.New(sdktrace.NewTracerProvider(), nil, nil)
	require.ErrorIs(t, err, agent.CodeNotSetUp)
	require.ErrorContains(t, err, "sdktrace.WithIDGenerator(telemetry.IDs())")
	spans := tracetest.NewInMemoryExporter()
	_, err = telemetry.New(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans), sdktrace.WithIDGenerator(telemetry.IDs())), nil, nil)
	require.NoError(t, err)
	require.Empty(t, spans.GetSpans(), "finding out exports nothing")
	silent, err := telemetry.New(nil, nil, nil)
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
