// Package telemetry makes OpenTelemetry traces and metrics of what runs do. A
// [Telemetry] is the observer of a worker:
//
//	tracers := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithIDGenerator(telemetry.IDs()))
//	t, err := telemetry.New(tracers, meters)
//	w, err := worker.New(c, worker.Options{Observer: t, …})
//
// A run is traced in segments: from its start, or from where it went on, to where it
// suspends or ends. A segment's span is told when the segment is over, so that none is open
// while a run waits, for days and on another worker; the next one is a trace of its own
// and links to it. Below a segment are its turns, and below a turn the attempts at its
// model and tool calls, and the runs that it gave work to.
//
// The names are those of OpenTelemetry's semantic conventions 1.41 for generative AI,
// and fermata's own begin with "fermata.". What was said never comes into a span or a
// metric: no message, no arguments, no result, no answer and no reason.
package telemetry
