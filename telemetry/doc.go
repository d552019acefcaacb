// Package telemetry makes OpenTelemetry traces and metrics of what runs do. A [Telemetry]
// is one of a worker's observers:
//
//	tracers := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithIDGenerator(telemetry.IDs()))
//	t, err := telemetry.New(tracers, meters, nil)
//	w, err := worker.New(c, &worker.Options{Observers: []observe.Observer{t}, …})
//
// A run is traced in segments: from its start, or from where it continued, until it
// suspends or ends. A segment's span is exported when the segment is over. So no span is
// open while a run waits, for days and maybe on another worker. The next segment is a
// trace of its own, with a link to the one before. Below a segment are its turns. Below a
// turn are the attempts at its model and tool calls, and the runs of its sub-agents. A
// suspension has a span that says what the run waits for, and ends before the wait.
//
// Names follow OpenTelemetry's semantic conventions 1.41 for generative AI; our own begin
// with "fermata.". No text of a run is in a span or metric: no message, argument, result,
// answer or reason. Only [Options.SuspensionTexts] adds what a suspension asks.
package telemetry
