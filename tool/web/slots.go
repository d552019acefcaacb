package web

import (
	"context"
	"sync"
)

const (
	perHost = 4
	inAll   = 32 // bounds the memory of pages that are being read
)

// slots bounds how many requests are under way. It is safe for concurrent use.
type slots struct {
	all   chan struct{}
	mu    sync.Mutex
	hosts map[string]*slot
}

type slot struct {
	free  chan struct{}
	users int // that hold or wait for a place
}

func newSlots() *slots {
	return &slots{all: make(chan struct{}, inAll), hosts: map[string]*slot{}}
}

// take waits for a place. The caller gives it back with done.
func (s *slots) take(ctx context.Context, host string) (done func(), err error) {
	s.mu.Lock()
	own := s.hosts[host]
	if own == nil {
		own = &slot{free: make(chan struct{}, perHost)}
		s.hosts[host] = own
	}
	own.users++
	s.mu.Unlock()
	// The host's place first: those who wait for a slow host then hold no other place.
	if err := enter(ctx, own.free); err != nil {
		s.leave(host, own)
		return nil, err
	}
	if err := enter(ctx, s.all); err != nil {
		<-own.free
		s.leave(host, own)
		return nil, err
	}
	return func() {
		<-s.all
		<-own.free
		s.leave(host, own)
	}, nil
}

func enter(ctx context.Context, places chan struct{}) error {
	select {
	case places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// leave forgets a host that nobody asks any more.
func (s *slots) leave(host string, own *slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if own.users--; own.users == 0 {
		delete(s.hosts, host)
	}
}
