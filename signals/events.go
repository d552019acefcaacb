package signals

import (
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
)

// Events asks for events of the log's open part, in the form for readers (wire
// §9). A query can't read the store: all events are client.Events' to read.
var Events = durable.Query[EventPage, EventList]{Name: "events"}

// EventPage asks for events.
type EventPage struct {
	// After is the cursor of the last event that is known; empty means from the
	// beginning of the open part.
	After string `json:"after,omitempty"`
	Limit int    `json:"limit,omitempty"` // zero means 100
}

// EventList answers [Events].
type EventList struct {
	V      int               `json:"v"`
	Events []agent.WireEvent `json:"events"`
	// Cursor is where to go on: that of the last event here, or the one asked after.
	Cursor string `json:"cursor"`
	// More means that there are more after Cursor.
	More bool `json:"more,omitempty"`
	// Sealed is the cursor up to which events are in the store and not here. One
	// who asked after an earlier one has missed those between.
	Sealed string `json:"sealed"`
}

// EventsOf answers [Events] for a run, from the tail of its session's log and the
// number of the log's last event. A cursor that is none, or beyond the end, is
// [agent.CodeInvalidInput].
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

// wireFrame is about what an event takes beside its data.
const wireFrame = 512
