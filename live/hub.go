package live

import (
	"context"
	"sync"
)

// Hub hands events from the workers of a process to the readers of the same one.
// A session that nobody hears costs nothing. It is safe for concurrent use
// at once, by many workers and readers.
type Hub struct {
	mu   sync.RWMutex
	subs map[string]map[*Subscription]struct{} // by session
}

// NewHub returns a hub that nobody hears yet.
func NewHub() *Hub { return &Hub{subs: map[string]map[*Subscription]struct{}{}} }

// Publish hands an event to whoever hears its session, and waits for nobody.
func (h *Hub) Publish(e Event) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for s := range h.subs[e.Session] {
		s.Put(e)
	}
}

// Subscribe hears a session's events from now on. It never fails.
func (h *Hub) Subscribe(_ context.Context, session string) (*Subscription, error) {
	var s *Subscription
	s = NewSubscription(func() { h.leave(session, s) })
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.subs[session] == nil {
		h.subs[session] = map[*Subscription]struct{}{}
	}
	h.subs[session][s] = struct{}{}
	return s, nil
}

func (h *Hub) leave(session string, s *Subscription) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.subs[session], s)
	if len(h.subs[session]) == 0 {
		delete(h.subs, session)
	}
}
