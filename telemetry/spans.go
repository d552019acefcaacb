package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/fermata-agents/fermata/agent"
)

// span is a span that is exported when it is over.
type span struct {
	own    string // its traceparent
	parent string // empty for a root
	agent  string
	name   string
	from   time.Time
	to     time.Time
	with   []attribute.KeyValue
	links  []trace.Link
	failed string // a code; empty if nothing failed
}

// tell exports a span if its trace is sampled.
func (t *Telemetry) tell(s span) {
	if t.tracer == nil {
		return
	}
	own := t.settled(s.own, s.agent)
	// Spans below it were made earlier, with these ids as their parent.
	ctx := wanting(context.Background(), own)
	o := []trace.SpanStartOption{trace.WithTimestamp(s.from), trace.WithAttributes(s.with...), trace.WithLinks(s.links...)}
	if s.parent != "" {
		own = t.settled(s.parent, s.agent)
		ctx = trace.ContextWithRemoteSpanContext(ctx, own)
	}
	if !own.IsSampled() {
		return
	}
	_, made := t.tracer.Start(ctx, s.name, o...)
	if s.failed != "" {
		fail(made, s.failed)
	}
	made.End(trace.WithTimestamp(latest(s.from, s.to)))
}

// latest returns to, or from if to is earlier: a span cannot end before it begins.
func latest(from, to time.Time) time.Time {
	if to.Before(from) {
		return from
	}
	return to
}

func fail(s trace.Span, code string) {
	s.SetAttributes(semconv.ErrorTypeKey.String(code))
	s.SetStatus(codes.Error, code)
}

// start begins the span of a call, below the run's segment or turn. The returned context
// has it. If the trace is not sampled, the context says so to everything below. A call
// without a run is below the context's span.
func (t *Telemetry) start(ctx context.Context, at agent.Trace, run, agent string, name string, o ...trace.SpanStartOption) (context.Context, trace.Span) {
	if t.tracer == nil {
		return ctx, tracenoop.Span{}
	}
	if run != "" {
		// Also without a sample: the tool's own spans must follow the decision.
		parent := t.settled(at.Traceparent(run), agent)
		ctx = trace.ContextWithRemoteSpanContext(ctx, parent)
		if !parent.IsSampled() {
			return ctx, tracenoop.Span{}
		}
	}
	return t.tracer.Start(ctx, name, o...)
}

// settled returns the span context of a traceparent, with the decision whether the trace
// is sampled. For a trace that begins with a segment, the sampler decides by the trace
// id. But the segment's own span is made last, and the spans below it may be made before,
// in other processes. So this starts a span with those ids, reads the decision, and never
// ends the span, which exports nothing.
func (t *Telemetry) settled(traceparent, agent string) trace.SpanContext {
	sc, unsettled := parse(traceparent)
	if !unsettled {
		return sc
	}
	keep, known := t.kept.Get(sc.TraceID())
	if !known {
		_, first := t.tracer.Start(wanting(context.Background(), sc), invoke(agent), trace.WithNewRoot(), trace.WithAttributes(invoking(agent)...))
		keep = first.SpanContext().IsSampled()
		t.kept.Add(sc.TraceID(), keep)
	}
	if !keep {
		return sc.WithTraceFlags(0)
	}
	return sc
}

// invoke returns the name of a segment's span.
func invoke(agent string) string {
	if agent == "" {
		return "invoke_agent"
	}
	return "invoke_agent " + agent
}

// invoking returns the attributes of a segment's span that a sampler sees.
func invoking(agent string) []attribute.KeyValue {
	return []attribute.KeyValue{semconv.GenAIOperationNameInvokeAgent, semconv.GenAIAgentName(agent)}
}
