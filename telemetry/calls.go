package telemetry

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/observe"
	"github.com/fermata-agents/fermata/tool"
)

// Model implements [observe.CallObserver]. It is a [model.Middleware].
func (t *Telemetry) Model(next model.Model) model.Model { return observed{next, t} }

type observed struct {
	model.Model
	telemetry *Telemetry
}

// Generate implements [model.Model].
func (m observed) Generate(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
	began, call := time.Now(), req.Call
	who := []attribute.KeyValue{semconv.GenAIOperationNameChat, semconv.GenAIRequestModel(req.Model)}
	if call.Model != "" {
		who = append(who, provider(call.Model))
	}
	ctx, made := m.telemetry.start(ctx, call.Trace, call.Run, call.Agent, "chat "+req.Model, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(who...))
	defer made.End()
	if made.IsRecording() {
		made.SetAttributes(asked(req)...)
	}
	reply, err := m.Model.Generate(ctx, req, emit)
	failed := ""
	switch {
	case err == nil:
		m.answered(ctx, made, who, req, reply)
	// Not a failure of the provider, so that it does not count in error rates.
	case gaveUp(ctx):
		made.SetAttributes(outcomeKey.String(givenUp))
	default:
		failed = faultOf(ctx, err)
		fail(made, failed)
	}
	m.telemetry.meters.took(ctx, time.Since(began), failed, who...)
	return reply, err
}

// asked returns what a request asks for, and for whom.
func asked(req *model.Request) (with []attribute.KeyValue) {
	if c := req.Call; c.Run != "" {
		with = append(with, semconv.GenAIAgentName(c.Agent), semconv.GenAIConversationID(c.Session), runKey.String(c.Run), turnKey.Int(c.Turn), attemptKey.Int(c.Attempt))
	}
	if req.MaxOutputTokens > 0 {
		with = append(with, semconv.GenAIRequestMaxTokens(req.MaxOutputTokens))
	}
	if req.Temperature != nil {
		with = append(with, semconv.GenAIRequestTemperature(*req.Temperature))
	}
	if req.Reasoning != "" {
		with = append(with, levelKey.String(string(req.Reasoning)))
	}
	return with
}

// answered records what a reply used.
func (m observed) answered(ctx context.Context, made trace.Span, who []attribute.KeyValue, req *model.Request, reply *model.Reply) {
	u, meters := reply.Usage, m.telemetry.meters
	made.SetAttributes(semconv.GenAIResponseFinishReasons(string(reply.Finish)))
	for _, c := range []struct {
		tokens int64
		key    attribute.Key
	}{
		{u.Input, semconv.GenAIUsageInputTokensKey}, {u.Output, semconv.GenAIUsageOutputTokensKey},
		{u.CacheRead, semconv.GenAIUsageCacheReadInputTokensKey}, {u.CacheWrite, semconv.GenAIUsageCacheCreationInputTokensKey},
		{u.Reasoning, semconv.GenAIUsageReasoningOutputTokensKey},
	} {
		if c.tokens > 0 {
			made.SetAttributes(c.key.Int64(c.tokens))
		}
	}
	with := metric.WithAttributes(who...)
	if u.Input > 0 {
		meters.tokens.Record(ctx, u.Input, with, metric.WithAttributes(semconv.GenAITokenTypeInput))
	}
	if u.Output > 0 {
		meters.tokens.Record(ctx, u.Output, with, metric.WithAttributes(semconv.GenAITokenTypeOutput))
	}
	if cost := m.Info(req.Model).Price.Of(u); cost > 0 {
		meters.cost.Add(ctx, float64(cost)/float64(agent.Dollar), with, metric.WithAttributes(semconv.GenAIAgentName(req.Call.Agent)))
	}
}

// gaveUp reports whether somebody cancelled a call: by a hold, the run's end, or a worker
// that shuts down. That is no failure.
func gaveUp(ctx context.Context) bool {
	return errors.Is(ctx.Err(), context.Canceled) && providerFault(context.Cause(ctx)) == ""
}

// faultOf returns the class of a failed model call: the kind of the provider's fault, or
// a code.
func faultOf(ctx context.Context, err error) string {
	// The cause first: one of the runtime's timeouts ended the call, and err says only
	// that the context is over.
	if kind := providerFault(context.Cause(ctx)); kind != "" {
		return kind
	}
	if ctx.Err() != nil {
		return string(agent.FaultTimeout)
	}
	if kind := providerFault(err); kind != "" {
		return kind
	}
	return string(agent.CodeOf(err))
}

func providerFault(err error) string {
	if e, ok := errors.AsType[*agent.Error](err); ok && e.Provider != nil {
		return string(e.Provider.Kind)
	}
	return ""
}

// Tool implements [observe.CallObserver].
func (t *Telemetry) Tool(ctx context.Context, call *tool.Call, at agent.Trace) (_ context.Context, over func(agent.CallStatus)) {
	began := time.Now()
	who := executing(call.Tool)
	ctx, made := t.start(ctx, at, call.Run, call.Agent, execute(call.Tool), trace.WithAttributes(who...), trace.WithAttributes(
		semconv.GenAIToolCallID(call.ID), semconv.GenAIToolType("function"), semconv.GenAIAgentName(call.Agent), semconv.GenAIConversationID(call.Session),
		runKey.String(call.Run), turnKey.Int(call.Turn), attemptKey.Int(call.Attempt),
	))
	return ctx, func(status agent.CallStatus) {
		outcome, failed := endOf(status, errors.Is(ctx.Err(), context.Canceled))
		if outcome != "" {
			made.SetAttributes(outcomeKey.String(outcome))
		}
		if failed != "" {
			fail(made, failed)
		}
		made.End()
		t.meters.took(ctx, time.Since(began), failed, who...)
	}
}

// execute returns the name of a tool call's span.
func execute(tool string) string { return "execute_tool " + tool }

// executing returns the attributes of a tool call in spans and metrics.
func executing(tool string) []attribute.KeyValue {
	return []attribute.KeyValue{semconv.GenAIOperationNameExecuteTool, semconv.GenAIToolName(tool)}
}

// endOf returns how a tool call's span says that it ended: by an outcome, or as a failure.
// Both are empty for a success.
func endOf(status agent.CallStatus, gaveUp bool) (outcome, failed string) {
	switch {
	case status == agent.CallOK:
		return "", ""
	case gaveUp:
		return givenUp, ""
	case status == agent.CallFailed:
		return "", string(agent.CodeToolFailed)
	case status == agent.CallUnknown:
		return "", string(status)
	}
	return string(status), ""
}

// outside exports the span of a call that the run's workflow has made. Attempts and their
// workers are Temporal's, so there is one span for all of them. It begins and ends at the
// times of the run's log.
func (t *Telemetry) outside(s observe.RunEvent) {
	call, who := s.Event.Call, executing(s.Event.Call.Tool)
	with := append(append(whose(s), who...), semconv.GenAIToolCallID(call.Call), semconv.GenAIToolType("function"), turnKey.Int(s.Event.Turn), outsideKey.String(string(s.Outside.Kind)))
	outcome, failed := endOf(call.Status, s.Outside.GaveUp)
	if outcome != "" {
		with = append(with, outcomeKey.String(outcome))
	}
	t.tell(span{
		own: s.TraceSegment.EventTraceparent(s.Run, s.Event.Seq), parent: s.TraceSegment.Traceparent(s.Run), agent: s.Agent, name: execute(call.Tool), from: s.Outside.Began, to: s.Event.Time, with: with, failed: failed,
	})
	t.meters.took(context.Background(), s.Event.Time.Sub(s.Outside.Began), failed, who...)
}
