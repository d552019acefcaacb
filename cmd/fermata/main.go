package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

func main() {
	ctx, restore := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGHUP)
	ctx, end := context.WithCancel(ctx)
	defer end()
	keys := &interruptKeys{end: end}
	pressed := make(chan os.Signal, 2)
	signal.Notify(pressed, os.Interrupt)
	go func() {
		for range pressed {
			keys.interrupt()
		}
	}()
	// The first signal stops cleanly; from then on the second ends the process.
	context.AfterFunc(ctx, func() { restore(); signal.Stop(pressed) })
	c := newCLI(os.Stdin, os.Stdout, os.Stderr)
	c.keys = keys
	if err := protectMemory(); err != nil {
		c.note("fermata: other programs of this user can read this one's memory: %v", err)
	}
	os.Exit(c.execute(ctx, os.Args[1:]))
}

// interruptKeys hands Ctrl-C to whoever has taken it; where nobody has, it ends the
// command.
type interruptKeys struct {
	end func()

	mu    sync.Mutex
	taken chan struct{}
}

// interrupt is one Ctrl-C.
func (i *interruptKeys) interrupt() {
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

// take lets Ctrl-C be heard from a channel, until it is given back.
func (i *interruptKeys) take() (pressed <-chan struct{}, giveBack func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.taken = make(chan struct{}, 1)
	return i.taken, func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.taken = nil
	}
}
