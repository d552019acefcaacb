package exporters

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/version"
	"github.com/fermata-agents/fermata/telemetry"
)

// flushPatience is how long a command waits at its end until telemetry is sent. The rest
// is lost.
const flushPatience = 5 * time.Second

// Exporters send traces and metrics of the runs of this process. The zero value sends
// none.
type Exporters struct {
	// Observer makes them; nil makes none.
	Observer *telemetry.Telemetry
	// Meters count what clients do; nil counts nothing.
	Meters  *sdkmetric.MeterProvider
	tracers *sdktrace.TracerProvider
}

// Open opens the exporters that the environment names. console is where a person sees
// their output, if the environment says so.
func Open(ctx context.Context, console io.Writer, log *zap.Logger) (e Exporters, err error) {
	// The library's default writes to standard error past our log.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("telemetry", zap.Error(err)) }))
	spans, err := spanExporter(ctx, console)
	if err != nil {
		return e, wrongExport(err)
	}
	reader, err := metricReader(ctx, console)
	if err != nil {
		return e, wrongExport(err)
	}
	if spans == nil && reader == nil {
		return e, nil
	}
	texts, err := suspensionTexts()
	if err != nil {
		return e, wrongExport(err)
	}
	from, err := resource.New(ctx, resource.WithAttributes(semconv.ServiceName("fermata"), semconv.ServiceVersion(version.Program())),
		resource.WithTelemetrySDK(), resource.WithHost(), resource.WithFromEnv())
	if err != nil {
		return e, wrongExport(err)
	}
	// Interface variables stay nil without a provider; a typed nil would look like one.
	var tracers trace.TracerProvider
	var meters metric.MeterProvider
	if spans != nil {
		e.tracers = sdktrace.NewTracerProvider(sdktrace.WithBatcher(spans), sdktrace.WithResource(from), sdktrace.WithIDGenerator(telemetry.IDs()))
		tracers = e.tracers
	}
	if reader != nil {
		e.Meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithResource(from))
		meters = e.Meters
	}
	e.Observer, err = telemetry.New(tracers, meters, &telemetry.Options{SuspensionTexts: texts})
	return e, err
}

// suspensionTexts reports whether the environment says that spans have what a suspension
// asks.
func suspensionTexts() (bool, error) {
	switch v := os.Getenv(env.SuspensionTexts); v {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	default: // a guess could export what nobody meant to export
		return false, agent.Errorf(agent.CodeInvalidInput, "%s is %q; say true or false", env.SuspensionTexts, v)
	}
}

func wrongExport(err error) error {
	return agent.Errorf(agent.CodeInvalidInput, "traces and metrics, by the environment: %w", err)
}

// Flush sends what was collected, and waits a moment for it.
func (e *Exporters) Flush() error {
	// A context of its own: the command's may have ended with Ctrl-C.
	ctx, cancel := context.WithTimeout(context.Background(), flushPatience)
	defer cancel()
	var shutdowns []func(context.Context) error
	if e.tracers != nil {
		shutdowns = append(shutdowns, e.tracers.Shutdown)
	}
	if e.Meters != nil {
		shutdowns = append(shutdowns, e.Meters.Shutdown)
	}
	// Room for all, so a late shutdown does not leak its goroutine.
	done := make(chan error, len(shutdowns))
	for _, shutdown := range shutdowns {
		// Both at once, each with the whole time: one that hangs must not cost the other
		// its time.
		go func() { done <- shutdown(ctx) }()
	}
	var errs []error
	for range shutdowns {
		select {
		case err := <-done:
			errs = append(errs, err)
		case <-ctx.Done():
			errs = append(errs, fmt.Errorf("they were not accepted within %s", flushPatience))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("traces or metrics were lost: %w", err)
	}
	return nil
}
