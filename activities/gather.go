package activities

import (
	"context"
	"time"

	"github.com/fermata-agents/fermata/internal/durable"
)

// Gather waits, for a moment, until this process has no step of a session in
// flight any more. It runs within the workflow's task, whose end then brings the
// steps' results at once, in place of a place behind all the runs below.
var Gather = durable.Activity[string, bool]{Name: "fermata.gather"}

// How long Gather waits at most, and how long for what has ended to be reported.
const (
	gatherTime = 100 * time.Millisecond
	reportTime = 20 * time.Millisecond
)

func (d *Deeds) gather(ctx context.Context, session string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, gatherTime)
	defer cancel()
	gone := d.Flights.landed(ctx, session)
	if gone {
		select {
		case <-ctx.Done():
		case <-time.After(reportTime):
		}
	}
	return gone, nil
}

// landed waits until no step of a session is in flight, or the context ends.
func (f *Flights) landed(ctx context.Context, session string) bool {
	for {
		next := f.flying(session)
		if next == nil {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-next.done:
		}
	}
}

// flying is a step of a session that is in flight; nil where none is.
func (f *Flights) flying(session string) *flight {
	f.mu.Lock()
	defer f.mu.Unlock()
	for s := range f.steps {
		if s.session == session {
			return s
		}
	}
	return nil
}
