package activities

import (
	"context"
	"sync"
)

// Slots limits how many activities of a lane are in flight in a process, whichever task
// queue they came by. A nil Slots has no limit in TryAcquire and Release. It is safe for
// concurrent use.
type Slots struct {
	mu        sync.Mutex
	size      int
	used      int           // by activities in flight
	requested int           // by polls under way, each of which may bring an activity
	freed     chan struct{} // closed and replaced whenever a slot may be free
}

// NewSlots returns n free slots.
func NewSlots(n int) *Slots { return &Slots{size: n, freed: make(chan struct{})} }

// Size returns the number of slots.
func (s *Slots) Size() int { return s.size }

// TryAcquire takes a slot for an activity if one is free. A slot that a poll has reserved
// is not free: an activity that the poll brings has started already and cannot wait.
func (s *Slots) TryAcquire() bool { return s == nil || s.tryTo(&s.used) }

// Release returns an activity's slot.
func (s *Slots) Release() {
	if s != nil {
		s.change(-1, 0)
	}
}

// TryReserve reserves a slot for what a poll may bring, if one is free.
func (s *Slots) TryReserve() bool { return s.tryTo(&s.requested) }

// Reserve waits until it has reserved a slot for what a poll may bring. It returns the
// context's error.
func (s *Slots) Reserve(ctx context.Context) error {
	for {
		s.mu.Lock()
		// Read before TryReserve: a slot that is freed between the two would otherwise go
		// unnoticed.
		freed := s.freed
		s.mu.Unlock()
		if s.TryReserve() {
			return nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// ReservationUsed turns a reserved slot into an activity's.
func (s *Slots) ReservationUsed() { s.change(1, -1) }

// ReservationUnused returns a reserved slot: the poll has brought nothing.
func (s *Slots) ReservationUnused() { s.change(0, -1) }

func (s *Slots) tryTo(count *int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used+s.requested >= s.size {
		return false
	}
	*count++
	return true
}

func (s *Slots) change(taken, asked int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used += taken
	s.requested += asked
	close(s.freed)
	s.freed = make(chan struct{})
}
