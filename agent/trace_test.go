package agent

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/internal/w3ctrace"
)

const service = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"

func at(minute int) time.Time { return time.Date(2026, 11, 21, 8, minute, 0, 0, time.UTC) }

// A run is traced in stints, which begin where it starts and where it continues: each
// knows the one before it, the turn that is on, and what the run was told in between.
func TestStints(t *testing.T) {
	const run = "01a1"
	first := TraceSegment{Trace: Trace{Segment: 1, Parent: service}, Began: at(1)}
	turn := TraceSegment{Trace: Trace{Segment: 1, Parent: service, Turn: 1}, Began: at(1), TurnBegan: at(2)}
	over := turn
	over.Over = true
	told := over
	told.GotInput = true
	resumed := Resumed{Suspension: "s-1", Cause: InitiatorOperator, By: "ana@acme.com"}
	on := TraceSegment{
		Trace: Trace{Segment: 9, Turn: 1}, After: Trace{Segment: 1, Parent: service}.SegmentTraceparent(run), Began: at(9), TurnBegan: at(9),
		Suspension: "s-1", Cause: InitiatorOperator,
	}
	answered := on
	answered.GotInput = true
	rests := on
	rests.Trace.Turn, rests.TurnBegan = 0, time.Time{}
	next := rests
	next.Trace.Turn, next.TurnBegan = 2, at(9)
	user := TextMessage(RoleUser, "Go on.")
	note := TextMessage(RoleUser, "It is late.")
	note.Note = NoteResumed
	for name, c := range map[string]struct {
		before TraceSegment
		event  Event
		after  TraceSegment
	}{
		"a start":                        {TraceSegment{Trace: Trace{Parent: service}}, Event{Seq: 1, Time: at(1), Type: EventRunStarted}, first},
		"a start from elsewhere":         {over, Event{Seq: 7, Time: at(1), Type: EventRunStarted}, TraceSegment{Trace: Trace{Segment: 7}, Began: at(1)}},
		"a turn":                         {first, Event{Seq: 2, Time: at(2), Type: EventTurnStarted, Turn: 1}, turn},
		"its end":                        {turn, Event{Seq: 3, Time: at(3), Type: EventTurnEnded, Turn: 1}, first},
		"a suspension in it":             {turn, Event{Seq: 8, Time: at(8), Type: EventRunSuspended, Turn: 1}, over},
		"an answer while it waits":       {over, Event{Seq: 8, Time: at(8), Type: EventRequestAnswered}, told},
		"an answer while it works":       {turn, Event{Seq: 8, Time: at(8), Type: EventRequestAnswered}, turn},
		"going on in the turn":           {over, Event{Seq: 9, Time: at(9), Type: EventRunResumed, Resumed: &resumed, Turn: 1}, on},
		"going on after an answer":       {told, Event{Seq: 9, Time: at(9), Type: EventRunResumed, Resumed: &resumed, Turn: 1}, answered},
		"going on between two turns":     {TraceSegment{Trace: first.Trace, Began: at(1), Over: true}, Event{Seq: 9, Time: at(9), Type: EventRunResumed, Resumed: &resumed}, rests},
		"words with which it goes on":    {on, Event{Seq: 10, Time: at(9), Type: EventMessage, Message: &user}, answered},
		"a note with which it goes on":   {on, Event{Seq: 10, Time: at(9), Type: EventMessage, Message: &note}, on},
		"words that come later":          {on, Event{Seq: 11, Time: at(10), Type: EventMessage, Message: &user}, on},
		"the words with which it begins": {first, Event{Seq: 2, Time: at(1), Type: EventMessage, Message: &user}, first},
		"the next turn":                  {rests, Event{Seq: 12, Time: at(9), Type: EventTurnStarted, Turn: 2}, next},
		"anything else":                  {turn, Event{Seq: 3, Time: at(3), Type: EventCallDone, Turn: 1}, turn},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.after, c.before.Next(run, c.event))
		})
	}
}

// Every process finds the same ids: of a segment and a turn of a run, and of no other.
func TestTraceparentsAreKnownEverywhere(t *testing.T) {
	seen := map[string]bool{}
	for _, run := range []string{"01a1", "01a2"} {
		for _, tr := range []Trace{{Segment: 1}, {Segment: 1, Turn: 1}, {Segment: 1, Turn: 2}, {Segment: 9}, {Segment: 9, Turn: 2}} {
			p := tr.Traceparent(run)
			require.Equal(t, p, tr.Traceparent(run))
			require.True(t, w3ctrace.Valid(p), p)
			require.True(t, strings.HasSuffix(p, "-81"), "whether it is kept is not known: %s", p)
			require.Equal(t, tr.SegmentTraceparent(run)[:35], p[:35], "a turn is in its segment's trace")
			require.False(t, seen[p], p)
			seen[p] = true
		}
	}
	require.Equal(t, "00-6674bcecbf620ed8a76032e84c7a8507-fa63f75742b2d8b8-81", Trace{Segment: 1}.Traceparent("01a1"))
	p := Trace{Segment: 1, Parent: service}.Traceparent("01a1")
	require.Equal(t, service[:35], p[:35], "it is a part of what started it")
	require.Equal(t, "-00", p[52:], "and kept where that is")
	require.NotEqual(t, service, p)
}
