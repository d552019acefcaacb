package signals

import (
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
)

// Events returns events of the log's tail in the form for readers (docs/wire.md §9). A
// query cannot read the store; client.Events reads all events.
var Events = durable.Query[EventPage, EventList]{Name: "events"}

// EventPage selects events.
type EventPage struct {
	// After is the cursor of the last known event; empty means from the beginning of the
	// tail.
	After string `json:"after,omitempty"`
	Limit int    `json:"limit,omitempty"` // zero means 100
}

// EventList answers [Events].
type EventList struct {
	V      int               `json:"v"`
	Events []agent.WireEvent `json:"events"`
	// Cursor is where to continue: the cursor of the last event here, or After if there
	// is none.
	Cursor string `json:"cursor"`
	// More means that there are more events after Cursor.
	More bool `json:"more,omitempty"`
	// Sealed is the cursor of the last event that is in the store and not here. A reader
	// whose After is before it has missed the events in between.
	Sealed string `json:"sealed"`
}

// EventsOf answers [Events], given the tail of the session's log and the number of its
// last event. A cursor that is invalid or beyond the end is [agent.CodeInvalidInput].
func EventsOf(session, run string, seq int64, tail []agent.Event, p EventPage) (EventList, error) {
	after, err := CursorSeq(p.After)
	if err != nil {
		return EventList{}, err
	}
	if after > seq {
		return EventList{}, CursorBeyondEnd(after, seq)
	}
	if p.Limit < 0 || p.Limit > maxPage {
		return EventList{}, agent.Errorf(agent.CodeInvalidInput, "limit must be between 1 and %d, not %d", maxPage, p.Limit).WithPath("limit")
	}
	if p.Limit == 0 {
		p.Limit = defaultPage
	}
	// A reader that is behind continues with the tail; Sealed tells it that it missed events.
	sealed := seq - int64(len(tail))
	list := EventList{V: agent.Version, Events: []agent.WireEvent{}, Cursor: agent.Cursor(max(after, sealed)), Sealed: agent.Cursor(sealed)}
	size := 0
	for _, e := range tail {
		if e.Seq <= after {
			continue
		}
		w, err := e.Wire(session, run)
		if err != nil {
			return EventList{}, err
		}
		size += len(w.Data) + wireFrame
		if len(list.Events) == p.Limit || len(list.Events) > 0 && size > maxAnswer {
			list.More = true
			break
		}
		list.Events, list.Cursor = append(list.Events, w), w.Cursor
	}
	return list, nil
}

// wireFrame is about what an event takes beside its data, in bytes.
const wireFrame = 512
