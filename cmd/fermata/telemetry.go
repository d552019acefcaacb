package main

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/fermata-agents/fermata/telemetry"
)

// flushPatience is how long a command waits, at its end, until what it has told is
// taken. What nobody took by then is lost.
const flushPatience = 5 * time.Second

// exports is where a process with a worker tells what runs do; zero if nowhere.
type exports struct {
	observer *telemetry.Telemetry
	tracers  *sdktrace.TracerProvider
	meters   *sdkmetric.MeterProvider
}

// observe makes traces and metrics of what the runs of this process do, where the
// environment says where to: before the server is dialled, whose client counts too.
func (c *cli) observe(ctx context.Context) error {
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { c.Log.Warn("telemetry", zap.Error(err)) }))
	spans, err := spanExporter(ctx, c.Err)
	if err != nil {
		return wrongExport(err)
	}
	reader, err := metricReader(ctx, c.Err)
	if err != nil {
		return wrongExport(err)
	}
	if spans == nil && reader == nil {
		return nil
	}
	from, err := resource.New(ctx, resource.WithAttributes(semconv.ServiceName("fermata"), semconv.ServiceVersion(version())),
		resource.WithTelemetrySDK(), resource.WithHost(), resource.WithFromEnv())
	if err != nil {
		return wrongExport(err)
	}
	var tracers trace.TracerProvider
	var meters metric.MeterProvider
	if spans != nil {
		c.exports.tracers = sdktrace.NewTracerProvider(sdktrace.WithBatcher(spans), sdktrace.WithResource(from), sdktrace.WithIDGenerator(telemetry.IDs()))
		tracers = c.exports.tracers
	}
	if reader != nil {
		c.exports.meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithResource(from))
		meters, c.Meters = c.exports.meters, c.exports.meters
	}
	c.exports.observer, err = telemetry.New(tracers, meters)
	return err
}

func wrongExport(err error) error {
	return agent.Errorf(agent.CodeInvalidInput, "traces and metrics, by the environment: %w", err)
}

// flush hands over what was told, and waits for a moment until it is taken.
func (e *exports) flush() error {
	ctx, cancel := context.WithTimeout(context.Background(), flushPatience)
	defer cancel()
	var shutdowns []func(context.Context) error
	if e.tracers != nil {
		shutdowns = append(shutdowns, e.tracers.Shutdown)
	}
	if e.meters != nil {
		shutdowns = append(shutdowns, e.meters.Shutdown)
	}
	done := make(chan error, len(shutdowns))
	for _, shutdown := range shutdowns {
		go func() { done <- shutdown(ctx) }()
	}
	var errs []error
	for range shutdowns {
		select {
		case err := <-done:
			errs = append(errs, err)
		case <-ctx.Done():
			errs = append(errs, fmt.Errorf("nobody took them within %s", flushPatience))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("traces or metrics were lost: %w", err)
	}
	return nil
}
