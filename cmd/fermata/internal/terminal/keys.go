package terminal

import "sync"

// Keys passes Ctrl-C to the code that has taken it; otherwise Ctrl-C ends the command.
type Keys struct {
	end func()

	mu    sync.Mutex
	taken chan struct{}
}

// NewKeys returns keys that nobody has taken. end is called to end the command.
func NewKeys(end func()) *Keys { return &Keys{end: end} }

// Interrupt handles one Ctrl-C.
func (i *Keys) Interrupt() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.taken == nil {
		i.end()
		return
	}
	// Never blocks: the lock is held, and giveBack needs it.
	select {
	case i.taken <- struct{}{}:
	default: // the one before was not received yet
	}
}

// Take sends each Ctrl-C to a channel until giveBack is called.
func (i *Keys) Take() (pressed <-chan struct{}, giveBack func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	// Room for one: a Ctrl-C while the owner is busy is kept for its next look.
	i.taken = make(chan struct{}, 1)
	return i.taken, func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.taken = nil
	}
}
