package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/fermata-agents/fermata/internal/w3ctrace"
)

// Trace is what the spans of a run's work are found by, in every process the same. A
// run is traced in stints: from its start, or from where it went on, to where it
// suspends or ends. Each is a trace of its own, except for the first of a run that was
// started from within a trace: it is a part of that.
type Trace struct {
	// Segment is the number of the event with which it began.
	Segment int64 `json:"segment,omitempty"`
	// Turn is the turn that is on; zero between two turns.
	Turn int `json:"turn,omitempty"`
	// Parent is the W3C traceparent of what started the run; empty if there is none,
	// and in later stints.
	Parent string `json:"parent,omitempty"`
}

// TraceSegment is a run's stint as it goes on.
type TraceSegment struct {
	Trace
	// After is the traceparent of the stint before this one; empty for the first.
	After string    `json:"after,omitempty"`
	Began time.Time `json:"began,omitzero"`
	// TurnBegan is since when its turn is on within the stint; zero between two turns.
	TurnBegan time.Time `json:"turn_began,omitzero"`
	// Over means that the run has suspended: what comes now belongs to no stint.
	Over bool `json:"over,omitempty"`
	// Suspension is what the run waited on before the stint, Cause is who let it go on,
	// and GotInput is set where it was told something then: an answer, a message, an event.
	// They are zero in the first.
	Suspension string    `json:"suspension,omitempty"`
	Cause      Initiator `json:"cause,omitempty"`
	GotInput   bool      `json:"got_input,omitempty"`
}

// Next is the stint of a run after one of its events.
func (s TraceSegment) Next(run string, e Event) TraceSegment {
	switch e.Type {
	case EventRunStarted:
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

// Traceparent is that of the span under which a run's work hangs: its turn's, or its
// stint's between two turns.
func (t Trace) Traceparent(run string) string {
	stint := sha256.Sum256(fmt.Appendf(nil, "%s/%d", run, t.Segment))
	trace, span, flags := hex.EncodeToString(stint[:16]), stint[16:24], fmt.Sprintf("%02x", w3ctrace.FlagUndecided|1)
	if t.Parent != "" {
		trace, flags = t.Parent[3:35], t.Parent[53:]
	}
	if t.Turn > 0 {
		own := sha256.Sum256(fmt.Appendf(nil, "%s/%d/%d", run, t.Segment, t.Turn))
		span = own[:8]
	}
	return fmt.Sprintf("00-%s-%x-%s", trace, span, flags)
}

// SegmentTraceparent is the traceparent of the stint's own span.
func (t Trace) SegmentTraceparent(run string) string {
	t.Turn = 0
	return t.Traceparent(run)
}
