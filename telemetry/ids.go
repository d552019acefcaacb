package telemetry

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"strconv"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/fermata-agents/fermata/internal/w3ctrace"
)

// IDs returns the generator of span ids. [New] refuses a tracer provider without it:
// every worker must know the ids of segments and turns before their spans are made.
//
//	sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(telemetry.IDs()), …)
//
// The ids of all other spans, including the user's, are random.
func IDs() sdktrace.IDGenerator { return ids{} }

type ids struct{}

// wanted is the context key of the next span's ids.
type wanted struct{}

// wanting returns a context whose next span gets these ids.
func wanting(ctx context.Context, sc trace.SpanContext) context.Context {
	return context.WithValue(ctx, wanted{}, sc)
}

// NewIDs implements [sdktrace.IDGenerator].
func (ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if sc, ok := ctx.Value(wanted{}).(trace.SpanContext); ok {
		return sc.TraceID(), sc.SpanID()
	}
	var id trace.TraceID
	binary.NativeEndian.PutUint64(id[:8], rand.Uint64())
	binary.NativeEndian.PutUint64(id[8:], random())
	return id, randomSpan()
}

// NewSpanID implements [sdktrace.IDGenerator].
func (ids) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	if sc, ok := ctx.Value(wanted{}).(trace.SpanContext); ok {
		return sc.SpanID()
	}
	return randomSpan()
}

func randomSpan() (id trace.SpanID) {
	binary.NativeEndian.PutUint64(id[:], random())
	return id
}

// random returns a number that is not zero: a zero id is invalid.
func random() uint64 { return rand.Uint64N(1<<64-1) + 1 }

// parse parses a traceparent. unsettled means that nobody has decided yet whether the
// trace is kept.
func parse(traceparent string) (sc trace.SpanContext, unsettled bool) {
	if !w3ctrace.Valid(traceparent) {
		return sc, false
	}
	id, _ := trace.TraceIDFromHex(traceparent[3:35])
	span, _ := trace.SpanIDFromHex(traceparent[36:52])
	flags, _ := strconv.ParseUint(traceparent[53:], 16, 8)
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: id, SpanID: span, TraceFlags: trace.TraceFlags(flags) & trace.FlagsSampled, Remote: true,
	}), flags&w3ctrace.FlagUndecided != 0
}
