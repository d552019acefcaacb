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

// span is one that is told when it is over.
type span struct {
	own    string // its traceparent
	parent string // empty: it is a root
	agent  string
	name   string
	from   time.Time
	to     time.Time
	with   []attribute.KeyValue
	links  []trace.Link
	failed string // a code; empty if nothing failed
}

// tell exports a span, if its trace is kept.
func (t *Telemetry) tell(s span) {
	if t.tracer == nil {
		return
	}
	own := t.settled(s.own, s.agent)
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

// latest is the end of a span, which is not before its beginning.
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

// start begins the span of a call, below the span of a run under which the call hangs.
// The context has it, or where the trace is not kept what tells so to everything below.
// A call that is of no run hangs where the context is.
func (t *Telemetry) start(ctx context.Context, at agent.Trace, run, agent string, name string, o ...trace.SpanStartOption) (context.Context, trace.Span) {
	if t.tracer == nil {
		return ctx, tracenoop.Span{}
	}
	if run != "" {
		parent := t.settled(at.Traceparent(run), agent)
		ctx = trace.ContextWithRemoteSpanContext(ctx, parent)
		if !parent.IsSampled() {
			return ctx, tracenoop.Span{}
		}
	}
	return t.tracer.Start(ctx, name, o...)
}

// settled is the span context of a traceparent, with whether its trace is kept. Of a
// trace that begins with a stint that is what the sampler says of its id: the first span
// comes last, and those below it may be made in many processes before. So the span is
// begun here, to see what is said of it, and never ended, which exports nothing.
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

// invoke is the name of a stint's span.
func invoke(agent string) string {
	if agent == "" {
		return "invoke_agent"
	}
	return "invoke_agent " + agent
}

// invoking is what a sampler may see of a stint's span.
func invoking(agent string) []attribute.KeyValue {
	return []attribute.KeyValue{semconv.GenAIOperationNameInvokeAgent, semconv.GenAIAgentName(agent)}
}
