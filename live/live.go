package live

import (
	"context"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// Event is a live event in its wire form (docs/wire.md §9): an [agent.WireEvent] without
// a cursor.
type Event struct {
	V int `json:"v"`
	// Type is one of [agent.EventDeltaText], [agent.EventDeltaThinking], [agent.EventDeltaReset],
	// [agent.EventDeltaDropped] and [agent.EventCallProgress]; the set is open.
	Type    agent.EventType `json:"type"`
	Time    time.Time       `json:"time"`
	Session string          `json:"session"`
	Run     string          `json:"run"`
	Turn    int             `json:"turn,omitempty"`
	Data    Data            `json:"data"`
}

// Data is what a live event says. Of its fields those are set that the type
// speaks of.
type Data struct {
	// Text continues the reply, or the thinking before it; of a progress it is the remark.
	Text string `json:"text,omitempty"`
	// Call is the tool call that makes progress.
	Call string `json:"call,omitempty"`
	// Dropped is how many events were dropped.
	Dropped int `json:"dropped,omitempty"`
}

// Sink takes what workers have to tell.
type Sink interface {
	// Publish takes an event and returns at once: model calls are waiting.
	Publish(Event)
}

// Source lets readers hear.
type Source interface {
	// Subscribe hears a session's events from now on, until the subscription is
	// closed. The context bounds the call alone.
	Subscribe(ctx context.Context, session string) (*Subscription, error)
}
