package activities

import (
	"context"
	"sync"
)

// Slots bounds how many steps of a lane a process has in flight, by whichever task queue
// they came. A nil Slots has no bound.
type Slots struct {
	mu        sync.Mutex
	size      int
	used      int           // by steps in flight
	requested int           // requests for work that are under way, each of which may bring a step
	freed     chan struct{} // closed, and made anew, when a slot or a request is over
}

// NewSlots returns n free slots.
func NewSlots(n int) *Slots { return &Slots{size: n, freed: make(chan struct{})} }

// Size is how many slots there are.
func (s *Slots) Size() int { return s.size }

// TryAcquire takes a slot for a step, if one is free. One for which work is asked is not: what
// the request brings has begun when it comes, and could not wait for another slot.
func (s *Slots) TryAcquire() bool { return s == nil || s.tryTo(&s.used) }

// Release gives a step's slot back.
func (s *Slots) Release() {
	if s != nil {
		s.change(-1, 0)
	}
}

// TryReserve notes that work is asked for, if there is a slot for what may come.
func (s *Slots) TryReserve() bool { return s.tryTo(&s.requested) }

// Reserve waits until there is a slot for what may come, and notes that work is asked for. It
// returns the context's error.
func (s *Slots) Reserve(ctx context.Context) error {
	for {
		s.mu.Lock()
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

// ReservationUsed notes that a request has brought a step, which has a slot now.
func (s *Slots) ReservationUsed() { s.change(1, -1) }

// ReservationUnused notes that a request has brought nothing.
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
