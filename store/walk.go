package store

import (
	"context"
	"errors"

	"github.com/fermata-agents/fermata/agent"
)

// Fault is a session or an entry in a store that can't be read.
type Fault struct {
	Session string `json:"session"` // empty if the head itself does not say it
	// Chunk is the chunk that is missing, damaged or of another version; empty if the
	// head is.
	Chunk   string     `json:"chunk,omitempty"`
	Code    agent.Code `json:"code"` // CodeChunkMissing, CodeChunkDamaged or CodeIncompatible
	Message string     `json:"message"`
}

func faultOf(session, chunk string, err error) *Fault {
	return &Fault{Session: session, Chunk: chunk, Code: agent.CodeOf(err), Message: err.Error()}
}

// CheckResult says what [Log.Check] found.
type CheckResult struct {
	Sessions int     `json:"sessions"` // the sessions whose chains were read
	Chunks   int     `json:"chunks"`   // the chunks of all chains, each counted once
	Faults   []Fault `json:"faults,omitempty"`
}

// Check reads all sessions to their beginnings, and reports those that can't be read as
// faults. It changes nothing. A fault is no error: errors are those of the store,
// [agent.CodeStoreUnavailable].
func (l *Log) Check(ctx context.Context) (CheckResult, error) {
	c := &check{Log: l, read: map[string]bool{}}
	for h, err := range l.store.Heads(ctx, "") {
		if err != nil && !lasting(err) {
			return c.done, err
		}
		if !isMemory(h.Session) {
			c.done.Sessions++
		}
		fault := (*Fault)(nil)
		if err != nil {
			fault = faultOf(h.Session, "", err)
		} else if fault, err = c.session(ctx, h); err != nil {
			return c.done, err
		}
		if fault != nil {
			c.done.Faults = append(c.done.Faults, *fault)
		}
	}
	c.done.Chunks = len(c.read)
	return c.done, nil
}

// check is one Check in progress. It reads each chunk once, although sessions share
// beginnings.
type check struct {
	*Log
	read map[string]bool
	done CheckResult
}

// session reads the chunks of a session. It reports a fault only if the session's head is
// still the same: the session may have been deleted or written meanwhile.
func (c *check) session(ctx context.Context, h Head) (*Fault, error) {
	for {
		if err := h.sound(); err != nil {
			return faultOf(h.Session, "", err), nil
		}
		if h.Deleting { // a part of it is gone already
			return nil, nil
		}
		at, err := c.chain(ctx, h.Digest)
		if err == nil && h.Memory != nil {
			at, err = c.memory(ctx, h)
		}
		if err == nil || !lasting(err) {
			return nil, err
		}
		// The session may have been deleted, or its chunks merged, while it was read.
		now, gone := c.store.Head(ctx, h.Session)
		switch {
		case errors.Is(gone, agent.CodeNotFound):
			return nil, nil
		case gone != nil:
			return nil, gone
		case now.Digest == h.Digest && now.Version == h.Version || now.Digest == h.Digest && h.Memory == nil:
			return faultOf(h.Session, at, err), nil
		}
		h = now
	}
}

// memory reads the files of a memory.
func (c *check) memory(ctx context.Context, h Head) (at string, err error) {
	for _, name := range h.Memory.chunks() {
		if _, err := c.Blob(ctx, name); err != nil {
			return name, err
		}
		c.read[name] = true
	}
	return "", nil
}

// chain reads the chunks of a chain, and keeps only their names in memory. It returns the
// chunk that can't be read, with the error: without a file, the log itself goes on.
func (c *check) chain(ctx context.Context, name string) (at string, err error) {
	for s := NewSequence(name); s.Next() != ""; {
		next, file := s.Next(), !s.inLog()
		if c.read[next] {
			if !file { // and so were those before it
				break
			}
			s.skip()
			continue
		}
		data, bad := c.store.Chunk(ctx, next)
		if bad == nil {
			bad = s.Take(data)
		}
		switch {
		case bad == nil:
			c.read[next] = true
		case file && lasting(bad):
			at, err = next, bad
			s.skip()
		default:
			return next, bad
		}
	}
	return at, err
}
