package telemetry_test

import (
	"context"
	"fmt"
	"log"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	temporal "go.temporal.io/sdk/client"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/observe"
	"github.com/fermata-agents/fermata/telemetry"
)

// An exporter of traces, and here one that keeps them, is given to a tracer provider
// with the ids of telemetry. The observer is one of the worker's; what Temporal's SDK counts
// comes by its client.
func Example() {
	exporter := tracetest.NewInMemoryExporter() // otlptracehttp.New(ctx), to have them elsewhere
	tracers := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithIDGenerator(telemetry.IDs()))
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
	observer, err := telemetry.New(tracers, meters, nil)
	if err != nil {
		log.Fatal(err)
	}
	var dialled temporal.Options
	telemetry.Prepare(&dialled, meters)
	// w, err := worker.New(c, &worker.Options{Observers: []observe.Observer{observer}, …})
	// c := client.New(t, &client.Options{Traceparent: telemetry.Traceparent})

	turn := func(observer observe.Observer) { // what the worker tells of a turn
		observer.Event(context.Background(), observe.RunEvent{
			Run: "01a1", Agent: "payer", Event: agent.Event{Seq: 9, Type: agent.EventTurnEnded},
			TraceSegment: agent.TraceSegment{Trace: agent.Trace{Segment: 1, Turn: 1}},
		})
	}
	turn(observer)
	if err := tracers.ForceFlush(context.Background()); err != nil {
		log.Fatal(err)
	}
	for _, span := range exporter.GetSpans() {
		fmt.Println(span.Name, span.SpanContext.SpanID())
	}
	// Output: turn 872a06c5e6e00963
}
