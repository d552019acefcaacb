package live

import (
	"context"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// Event is a live event (docs/wire.md §9): an [agent.WireEvent] without a cursor.
type Event struct {
	V int `json:"v"`
	// Type is one of [agent.EventDeltaText], [agent.EventDeltaThinking],
	// [agent.EventDeltaReset], [agent.EventDeltaDropped] and [agent.EventCallProgress].
	// There may be more.
	Type    agent.EventType `json:"type"`
	Time    time.Time       `json:"time"`
	Session string          `json:"session"`
	Run     string          `json:"run"`
	Turn    int             `json:"turn,omitempty"`
	Data    Data            `json:"data"`
}

// Data is the content of a live event. The type says which fields are set.
type Data struct {
	// Text continues the reply or the thinking, or is a tool's note.
	Text string `json:"text,omitempty"`
	// At is where the text of a [agent.EventDeltaText] begins in the reply, in bytes from 1.
	// A reader that expects another number has missed something. If it expects a greater one, the
	// reply has begun again.
	At int `json:"at,omitempty"`
	// Call is the tool call of a progress event.
	Call string `json:"call,omitempty"`
	// Dropped is how many events were dropped.
	Dropped int `json:"dropped,omitempty"`
}

// Sink receives live events from workers.
type Sink interface {
	// Publish takes an event. It must return at once: a model call waits for it.
	Publish(Event)
}

// Source passes live events to readers.
type Source interface {
	// Subscribe returns the session's events from now on, until the subscription is
	// closed. The context limits only the call itself.
	Subscribe(ctx context.Context, session string) (*Subscription, error)
}
