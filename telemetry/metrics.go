package telemetry

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/opentelemetry"
)

// instruments are the metrics. Their attributes have no more values than there are
// agents, models, tools and codes.
type instruments struct {
	duration metric.Float64Histogram
	tokens   metric.Int64Histogram

	stints, ends, suspensions, turns, lost metric.Int64Counter

	cost metric.Float64Counter
}

func newInstruments(m metric.Meter) (i instruments, err error) {
	var errs [8]error
	// The bounds are those of the convention.
	i.duration, errs[0] = m.Float64Histogram("gen_ai.client.operation.duration", metric.WithUnit("s"),
		metric.WithDescription("How long an attempt at a model call or a tool call took."),
		metric.WithExplicitBucketBoundaries(0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92))
	i.tokens, errs[1] = m.Int64Histogram("gen_ai.client.token.usage", metric.WithUnit("{token}"),
		metric.WithDescription("Input and output tokens of a model call."),
		metric.WithExplicitBucketBoundaries(1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864))
	i.stints, errs[2] = m.Int64Counter("fermata.run.segments", metric.WithUnit("{segment}"), metric.WithDescription("Runs that were started or continued."))
	i.ends, errs[3] = m.Int64Counter("fermata.run.ends", metric.WithUnit("{run}"), metric.WithDescription("Runs that ended, by how."))
	i.suspensions, errs[4] = m.Int64Counter("fermata.suspensions", metric.WithUnit("{suspension}"), metric.WithDescription("Runs that suspended, by why."))
	i.turns, errs[5] = m.Int64Counter("fermata.turns", metric.WithUnit("{turn}"), metric.WithDescription("Turns that were started."))
	i.cost, errs[6] = m.Float64Counter("fermata.cost", metric.WithUnit("{USD}"), metric.WithDescription("What model calls cost, in USD, where the price is known."))
	i.lost, errs[7] = m.Int64Counter("fermata.observer.lost", metric.WithUnit("{event}"), metric.WithDescription("Events of runs of which spans and metrics are missing: telemetry was too slow."))
	return i, errors.Join(errs[:]...)
}

// took records the duration of a call that has ended.
func (i instruments) took(ctx context.Context, long time.Duration, failed string, who ...attribute.KeyValue) {
	o := []metric.RecordOption{metric.WithAttributes(who...)}
	if failed != "" {
		o = append(o, metric.WithAttributes(semconv.ErrorTypeKey.String(failed)))
	}
	i.duration.Record(ctx, long.Seconds(), o...)
}

// Prepare sets the metrics handler in the options of a Temporal client. Call it before
// the client is dialled. The SDK's metrics then go to the meter provider too, as
// temporal_….
func Prepare(o *client.Options, meters metric.MeterProvider) {
	o.MetricsHandler = opentelemetry.NewMetricsHandler(opentelemetry.MetricsHandlerOptions{
		Meter: meters.Meter("go.temporal.io/sdk"), OnError: otel.Handle, UseMonotonicCounters: true,
	})
}
