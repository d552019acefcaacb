package telemetry

import (
	"context"
	"fmt"

	lru "github.com/hashicorp/golang-lru/v2"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/observe"
)

// scope is what spans and metrics are said to be made by.
const scope = "github.com/fermata-agents/fermata/telemetry"

// Telemetry makes spans and metrics of what the runs of a worker do. One may serve many
// workers of a process, and has to be the same for all that share its providers.
type Telemetry struct {
	tracer trace.Tracer // nil: no spans
	meters instruments
	// told are the events that were heard, and kept which traces are: a task that was
	// lost is done once more, and tells the same again.
	told *lru.Cache[event, struct{}]
	kept *lru.Cache[trace.TraceID, bool]
}

var _ observe.Observer = (*Telemetry)(nil)

// event names an event of a run.
type event struct {
	run string
	seq int64
}

// remembered is how many events and traces are.
const remembered = 8192

// New makes an observer that tells of runs to a tracer provider and a meter provider;
// one that is nil hears nothing. A tracer provider needs the ids of [IDs], and should
// export in batches: a worker waits for what it does with a span. Without them New
// returns an [agent.CodeNotSetUp] error. Both providers stay the caller's, to flush and to
// shut down when the worker has stopped.
func New(tracers trace.TracerProvider, meters metric.MeterProvider) (*Telemetry, error) {
	t := &Telemetry{}
	var err error
	if t.told, err = lru.New[event, struct{}](remembered); err != nil {
		return nil, agent.Errorf(agent.CodeInternal, "making telemetry: %w", err)
	}
	if t.kept, err = lru.New[trace.TraceID, bool](remembered); err != nil {
		return nil, agent.Errorf(agent.CodeInternal, "making telemetry: %w", err)
	}
	if meters == nil {
		meters = metricnoop.NewMeterProvider()
	}
	if t.meters, err = newInstruments(meters.Meter(scope, metric.WithSchemaURL(semconv.SchemaURL))); err != nil {
		return nil, agent.Errorf(agent.CodeNotSetUp, "making telemetry: the meter provider refuses an instrument: %w", err)
	}
	if tracers == nil {
		return t, nil
	}
	t.tracer = tracers.Tracer(scope, trace.WithSchemaURL(semconv.SchemaURL))
	return t, t.checkIDs()
}

// checkIDs begins a span with ids of its own, and never ends it: it is exported nowhere.
func (t *Telemetry) checkIDs() error {
	var own ids
	id, span := own.NewIDs(context.Background())
	want := trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: span})
	_, got := t.tracer.Start(wanting(context.Background(), want), "fermata", trace.WithNewRoot())
	if sc := got.SpanContext(); sc.TraceID() != id || sc.SpanID() != span {
		return agent.Errorf(agent.CodeNotSetUp, "making telemetry: the tracer provider makes ids of its own; make it with sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(telemetry.IDs()), …)")
	}
	return nil
}

// Traceparent is the W3C traceparent of a context's span, empty if it has none. It
// is the Traceparent of the client's options: what a run does hangs below the span that
// started it, then.
func Traceparent(ctx context.Context) string {
	sc := trace.SpanContextFromContext(ctx)
	if !sc.IsValid() {
		return ""
	}
	return fmt.Sprintf("00-%s-%s-%s", sc.TraceID(), sc.SpanID(), sc.TraceFlags()&trace.FlagsSampled)
}
