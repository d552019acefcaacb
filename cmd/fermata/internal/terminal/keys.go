package terminal

import "sync"

// Keys hands Ctrl-C to whoever has taken it; where nobody has, it ends the command.
type Keys struct {
	end func()

	mu    sync.Mutex
	taken chan struct{}
}

// NewKeys returns keys that nobody has taken; end ends the command.
func NewKeys(end func()) *Keys { return &Keys{end: end} }

// Interrupt is one Ctrl-C.
func (i *Keys) Interrupt() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.taken == nil {
		i.end()
		return
	}
	select {
	case i.taken <- struct{}{}:
	default: // the one before was not heard yet
	}
}

// Take lets Ctrl-C be heard from a channel, until it is given back.
func (i *Keys) Take() (pressed <-chan struct{}, giveBack func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.taken = make(chan struct{}, 1)
	return i.taken, func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.taken = nil
	}
}
