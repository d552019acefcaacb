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

// scope is the instrumentation scope of all spans and metrics.
const scope = "github.com/fermata-agents/fermata/telemetry"

// Telemetry makes spans and metrics of what a worker's runs do. It may serve many workers
// of a process. All that share its providers must use the same one.
type Telemetry struct {
	tracer trace.Tracer // nil: no spans
	meters instruments
	texts  bool // see Options.SuspensionTexts
	// seen has the events that were received, and kept which traces are sampled. A
	// workflow task that was lost is run again, and repeats its events.
	seen *lru.Cache[event, struct{}]
	kept *lru.Cache[trace.TraceID, bool]
}

var _ observe.CallObserver = (*Telemetry)(nil)

// event identifies an event of a run.
type event struct {
	run string
	seq int64
}

// remembered is the size of both caches.
const remembered = 8192

// Options configures a [Telemetry]; nil means all defaults.
type Options struct {
	// SuspensionTexts adds what a suspension says to its span: questions with their context
	// and choices, the arguments of calls that wait for approval, approvers, reasons, who
	// holds the run, and the schemas of awaited events. These may contain secrets, and
	// whoever reads the traces reads them. The spans have the first 1024 bytes of each text,
	// and 32 texts of a kind. False adds nothing. Answers are never in a span.
	SuspensionTexts bool
}

// New returns an observer for a tracer provider and a meter provider; either may be nil.
// The tracer provider needs the ids of [IDs]; without them the error is
// [agent.CodeNotSetUp]. It should export in batches, since a model or tool call waits for the
// end of its span. Both providers stay the caller's: flush and shut them down when the worker
// has stopped.
func New(tracers trace.TracerProvider, meters metric.MeterProvider, o *Options) (*Telemetry, error) {
	t := &Telemetry{texts: o != nil && o.SuspensionTexts}
	var err error
	if t.seen, err = lru.New[event, struct{}](remembered); err != nil {
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

// checkIDs starts a span with known ids and never ends it, so nothing is exported.
func (t *Telemetry) checkIDs() error {
	var own ids
	id, span := own.NewIDs(context.Background())
	want := trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: span})
	_, got := t.tracer.Start(wanting(context.Background(), want), "fermata", trace.WithNewRoot())
	// With other ids, spans would have parents that nobody exports.
	if sc := got.SpanContext(); sc.TraceID() != id || sc.SpanID() != span {
		return agent.Errorf(agent.CodeNotSetUp, "making telemetry: the tracer provider does not use the ids that telemetry needs; make it with sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(telemetry.IDs()), …)")
	}
	return nil
}

// Traceparent returns the W3C traceparent of the context's span; empty if it has none.
// Pass it in the client's options: what a run does is then below the span that started
// it.
func Traceparent(ctx context.Context) string {
	sc := trace.SpanContextFromContext(ctx)
	if !sc.IsValid() {
		return ""
	}
	return fmt.Sprintf("00-%s-%s-%s", sc.TraceID(), sc.SpanID(), sc.TraceFlags()&trace.FlagsSampled)
}
