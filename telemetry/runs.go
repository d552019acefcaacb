package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/observe"
)

// Gap implements [observe.Observer]: it counts the lost events. Their spans are lost with them.
func (t *Telemetry) Gap(_ context.Context, g observe.Gap) {
	t.meters.lost.Add(context.Background(), g.Events)
}

// Event implements [observe.Observer].
func (t *Telemetry) Event(_ context.Context, s observe.RunEvent) {
	// A lost task is run again, and its events must not count twice.
	if again, _ := t.seen.ContainsOrAdd(event{s.Run, s.Event.Seq}, struct{}{}); again {
		return
	}
	of := metric.WithAttributes(semconv.GenAIAgentName(s.Agent))
	switch s.Event.Type {
	case agent.EventRunStarted, agent.EventRunResumed:
		t.meters.stints.Add(context.Background(), 1, of)
	case agent.EventTurnStarted:
		t.meters.turns.Add(context.Background(), 1, of)
	case agent.EventTurnEnded:
		t.turn(s, turnEnded)
	case agent.EventCallDone, agent.EventCallUnknown:
		if s.Outside != nil {
			t.outside(s)
		}
	case agent.EventRunSuspended:
		t.suspended(s, of)
	case agent.EventRunCompleted, agent.EventRunFailed, agent.EventRunCancelled, agent.EventRunStopped:
		t.ended(s, of)
	}
}

func (t *Telemetry) ended(s observe.RunEvent, of metric.AddOption) {
	outcome, failed := ends[s.Event.Type], ""
	with := []attribute.KeyValue{outcomeKey.String(outcome)}
	if o := s.Event.Outcome; o != nil && o.Error != nil {
		failed = string(o.Error.Code)
		with = append(with, semconv.ErrorTypeKey.String(failed))
	}
	t.meters.ends.Add(context.Background(), 1, of, metric.WithAttributes(with...))
	t.turn(s, outcome)
	if s.TraceSegment.Over { // what it suspended is exported; its end is a segment of its own
		s.TraceSegment = agent.TraceSegment{Trace: agent.Trace{Segment: s.Event.Seq}, After: s.TraceSegment.SegmentTraceparent(s.Run), Began: s.Event.Time}
	}
	t.segment(s, outcome, failed)
}

var ends = map[agent.EventType]string{
	agent.EventRunCompleted: string(agent.StatusCompleted), agent.EventRunFailed: string(agent.StatusFailed),
	agent.EventRunCancelled: string(agent.StatusCancelled), agent.EventRunStopped: string(agent.StatusStopped),
}

// turn exports the turn in progress, if it began in this segment.
func (t *Telemetry) turn(s observe.RunEvent, outcome string) {
	// A turn that began in an earlier segment was exported with that one.
	if s.TraceSegment.Over || s.TraceSegment.Turn == 0 {
		return
	}
	t.tell(span{
		own: s.TraceSegment.Traceparent(s.Run), parent: s.TraceSegment.SegmentTraceparent(s.Run), agent: s.Agent, name: "turn", from: s.TraceSegment.TurnBegan, to: s.Event.Time,
		with: append(whose(s), turnKey.Int(s.TraceSegment.Turn), outcomeKey.String(outcome)),
	})
}

// segment exports the segment that is over.
func (t *Telemetry) segment(s observe.RunEvent, outcome, failed string) {
	from := s.TraceSegment.Began
	// A run may end before its first segment has begun. Then its outcome has the start.
	if o := s.Event.Outcome; from.IsZero() && o != nil {
		from = o.Started
	}
	if from.IsZero() {
		from = s.Event.Time
	}
	with := append(invoking(s.Agent), whose(s)[1:]...)
	with = append(with, outcomeKey.String(outcome), provider(s.Model), semconv.GenAIRequestModel(bare(s.Model)))
	made := span{
		own: s.TraceSegment.SegmentTraceparent(s.Run), parent: s.TraceSegment.Parent, agent: s.Agent, name: invoke(s.Agent), from: from, to: s.Event.Time, with: with, failed: failed,
	}
	if s.TraceSegment.Suspension != "" {
		made.with = append(made.with, resumedKey.String(s.TraceSegment.Suspension), resumedCauseKey.String(string(s.TraceSegment.Cause)), resumedInputKey.Bool(s.TraceSegment.GotInput))
	}
	if s.TraceSegment.After != "" && t.tracer != nil {
		made.links = []trace.Link{{SpanContext: t.settled(s.TraceSegment.After, s.Agent), Attributes: []attribute.KeyValue{linkKey.String("suspension")}}}
	}
	t.tell(made)
}

// whose returns the attributes that say whose a span is, the agent first.
func whose(s observe.RunEvent) []attribute.KeyValue {
	return []attribute.KeyValue{semconv.GenAIAgentName(s.Agent), semconv.GenAIConversationID(s.Session), runKey.String(s.Run)}
}
