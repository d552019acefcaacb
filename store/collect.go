package store

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// Collected is what a collection found and did.
type Collected struct {
	Sessions int `json:"sessions"` // whose chains were followed
	Chunks   int `json:"chunks"`   // that were in the store
	// Deleted are the chunks that no session needs and that were put long enough
	// ago, and Bytes what they took; of a dry collection, what it would delete.
	Deleted int   `json:"deleted"`
	Bytes   int64 `json:"bytes"`
	// Young are the other chunks that no session needs, or not yet.
	Young int `json:"young"`
	// Faults are the sessions that can't be read: nothing is deleted then.
	Faults []Fault `json:"faults,omitempty"`
}

// Collect deletes the chunks that are in no session's chain and that were last
// put longer ago than older; a dry collection only counts them. It may be called
// while sessions are written: older is then the longest time between the putting
// of a chunk and the head that names it, with the difference of clocks; an hour
// is plenty.
//
// Where a session can't be read to its beginning, any chunk may be a part of it:
// nothing is deleted, and the error has the code of the first fault. Other errors
// are [agent.StoreUnavailable], and [agent.InvalidInput] for a negative time.
// What was done before an error is told beside it.
func (l *Log) Collect(ctx context.Context, older time.Duration, dry bool) (Collected, error) {
	var done Collected
	if older < 0 {
		return done, agent.Errorf(agent.InvalidInput, "collecting chunks that are older than %s: name a time that is not negative", older)
	}
	before := time.Now().Add(-older)
	// Listed before the sessions are: what a session comes to need later is either
	// a part of a chain already or put after this, and so too young.
	left := map[string]ChunkInfo{}
	for c, err := range l.store.Chunks(ctx) {
		if err != nil {
			return done, err
		}
		left[c.Digest] = c
	}
	done.Chunks = len(left)
	if err := l.mark(ctx, left, &done); err != nil {
		return done, err
	}
	return done, l.sweep(ctx, left, before, dry, &done)
}

// mark takes away from the chunks that are left what is in a chain. It looks until
// it finds no more: a chunk may come into the chain of a session that was looked at
// and out of one that was not, as when a session is forked and deleted.
func (l *Log) mark(ctx context.Context, left map[string]ChunkInfo, done *Collected) error {
	w := newWalker(l.store)
	for found := -1; found != len(left); {
		found = len(left)
		var err error
		done.Sessions, done.Faults, err = w.sessions(ctx, nil, func(_, digest string) { delete(left, digest) })
		if err != nil {
			return err
		}
	}
	if n := len(done.Faults); n > 0 {
		f := done.Faults[0]
		return agent.Errorf(f.Code, "no chunk was deleted, for any may be a part of the sessions that can't be read, %d of %d: session %s: %s; fermata store check tells all", n, done.Sessions, f.Session, f.Message)
	}
	return nil
}

func (l *Log) sweep(ctx context.Context, left map[string]ChunkInfo, before time.Time, dry bool, done *Collected) error {
	if !dry {
		defer l.forget()
	}
	for _, digest := range slices.Sorted(maps.Keys(left)) {
		c := left[digest]
		gone := c.Put.Before(before)
		if gone && !dry {
			var err error
			if gone, err = l.store.DeleteChunk(ctx, digest, before); err != nil {
				return err
			}
		}
		if !gone {
			done.Young++
			continue
		}
		done.Deleted++
		done.Bytes += c.Size
	}
	return nil
}

// Checked is what a check found.
type Checked struct {
	Sessions int     `json:"sessions"` // whose chains were followed
	Chunks   int     `json:"chunks"`   // of all chains, each counted once
	Faults   []Fault `json:"faults,omitempty"`
}

// Check reads all sessions to their beginnings and tells which can't be read. It
// changes nothing. Its errors are those of the store, [agent.StoreUnavailable]:
// a fault is none.
func (l *Log) Check(ctx context.Context) (Checked, error) {
	w := newWalker(l.store)
	n, faults, err := w.sessions(ctx, nil, func(string, string) {})
	return Checked{Sessions: n, Chunks: len(w.prev), Faults: faults}, err
}
