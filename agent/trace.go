package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/fermata-agents/fermata/internal/w3ctrace"
)

// Trace identifies the spans of a run's work. Every process computes the same ids from
// it. A run is traced in segments. A segment begins at the run's start or at a resume,
// and ends at the next suspension or the end. Each segment is a trace of its own. But the
// first segment of a run that was started within a trace is a part of that trace.
type Trace struct {
	// Segment is the number of the event with which the segment began.
	Segment int64 `json:"segment,omitempty"`
	// Turn is the current turn; zero between two turns.
	Turn int `json:"turn,omitempty"`
	// Parent is the W3C traceparent of what started the run; empty if there is none, and
	// in later segments.
	Parent string `json:"parent,omitempty"`
}

// TraceSegment is the current segment of a run.
type TraceSegment struct {
	Trace
	// After is the traceparent of the segment before this one; empty for the first.
	After string    `json:"after,omitempty"`
	Began time.Time `json:"began,omitzero"`
	// TurnBegan is since when the current turn runs within the segment; zero between two
	// turns.
	TurnBegan time.Time `json:"turn_began,omitzero"`
	// Over means that the run is suspended. What happens now belongs to no segment.
	Over bool `json:"over,omitempty"`
	// Suspension is what the run waited for before the segment, and Cause is who resumed
	// it. GotInput means that it got an answer, a message or an event then. All three are
	// zero in the first segment.
	Suspension string    `json:"suspension,omitempty"`
	Cause      Initiator `json:"cause,omitempty"`
	GotInput   bool      `json:"got_input,omitempty"`
}

// Next returns the segment after one of the run's events.
func (s TraceSegment) Next(run string, e Event) TraceSegment {
	switch e.Type {
	case EventRunStarted:
		// An imported run's segment belongs to the trace of its own cluster.
		if s.Segment > 0 { // one that came from elsewhere, where its trace is
			s = TraceSegment{}
		}
		s.Segment, s.Began = e.Seq, e.Time
	case EventRunSuspended:
		s.Over = true
	case EventRunResumed:
		return s.resumed(run, e)
	case EventTurnStarted:
		s.Turn, s.TurnBegan = e.Turn, e.Time
	case EventTurnEnded:
		s.Turn, s.TurnBegan = 0, time.Time{}
	case EventRequestAnswered:
		s.GotInput = s.GotInput || s.Over
	case EventMessage: // the words that came with a resume stand behind it, at the same time
		// A resume's message follows it at the same time, so equal times tell it from a
		// later message.
		with := s.After != "" && e.Time.Equal(s.Began)
		s.GotInput = s.GotInput || with && e.Message != nil && e.Message.Role == RoleUser && e.Message.Note == ""
	}
	return s
}

func (s TraceSegment) resumed(run string, e Event) TraceSegment {
	next := TraceSegment{Trace: Trace{Segment: e.Seq, Turn: s.Turn}, After: s.SegmentTraceparent(run), Began: e.Time, GotInput: s.GotInput && s.Over}
	if s.Turn > 0 {
		next.TurnBegan = e.Time
	}
	if e.Resumed != nil {
		next.Suspension, next.Cause = e.Resumed.Suspension, e.Resumed.Cause
	}
	return next
}

// Traceparent returns the traceparent of the span above a run's work: the current turn's,
// or the segment's between two turns.
func (t Trace) Traceparent(run string) string {
	segment := sha256.Sum256(fmt.Appendf(nil, "%s/%d", run, t.Segment))
	trace, span, flags := hex.EncodeToString(segment[:16]), segment[16:24], fmt.Sprintf("%02x", w3ctrace.FlagUndecided|1)
	if t.Parent != "" {
		trace, flags = t.Parent[3:35], t.Parent[53:]
	}
	if t.Turn > 0 {
		// A hash instead of a random id, so that activities on other workers compute the
		// same parent.
		own := sha256.Sum256(fmt.Appendf(nil, "%s/%d/%d", run, t.Segment, t.Turn))
		span = own[:8]
	}
	return fmt.Sprintf("00-%s-%x-%s", trace, span, flags)
}

// EventTraceparent returns the traceparent of a span below that of [Trace.Traceparent], which
// an event of the run ends.
func (t Trace) EventTraceparent(run string, seq int64) string {
	above, own := t.Traceparent(run), sha256.Sum256(fmt.Appendf(nil, "%s/%d/event/%d", run, t.Segment, seq))
	return above[:36] + hex.EncodeToString(own[:8]) + above[52:]
}

// SegmentTraceparent returns the traceparent of the segment's own span.
func (t Trace) SegmentTraceparent(run string) string {
	t.Turn = 0
	return t.Traceparent(run)
}
