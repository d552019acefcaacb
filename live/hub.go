package live

import (
	"context"
	"sync"
)

// Hub passes events from a process's workers to readers in the same process. A session
// without readers costs nothing. It is safe for concurrent use.
type Hub struct {
	mu   sync.RWMutex
	subs map[string]map[*Subscription]struct{} // by session
}

// NewHub returns a hub without readers.
func NewHub() *Hub { return &Hub{subs: map[string]map[*Subscription]struct{}{}} }

// Publish implements [Sink]. It never waits.
func (h *Hub) Publish(e Event) {
	// Many calls publish at once. Only subscribing excludes the others.
	h.mu.RLock()
	defer h.mu.RUnlock()
	for s := range h.subs[e.Session] {
		s.Put(e)
	}
}

// Subscribe implements [Source]. It never fails.
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
	// Otherwise a process would keep one empty map for each session that ever had a reader.
	if len(h.subs[session]) == 0 {
		delete(h.subs, session)
	}
}
