package store

import (
	"context"
	"errors"

	"github.com/fermata-agents/fermata/agent"
)

// Fault is a session whose log can't be read to its beginning.
type Fault struct {
	Session string `json:"session"` // empty where the head itself does not tell it
	// Chunk is the one that is missing, damaged or of a newer version; empty where
	// the head is.
	Chunk   string     `json:"chunk,omitempty"`
	Code    agent.Code `json:"code"` // ChunkMissing, ChunkDamaged or Incompatible
	Message string     `json:"message"`
}

// walker follows chains. What it has read once it does not read again: sessions
// share their beginnings.
type walker struct {
	store Store
	prev  map[string]string // by the digest of the chunk that names it
}

func newWalker(s Store) *walker { return &walker{store: s, prev: map[string]string{}} }

// chain visits the chunks of a chain from its last to its first, each before it
// is read. It returns the one that can't be read, with the error.
func (w *walker) chain(ctx context.Context, head string, visit func(digest string)) (string, error) {
	for at := head; at != ""; {
		visit(at)
		prev, ok := w.prev[at]
		if !ok {
			data, err := w.store.Chunk(ctx, at)
			if err == nil {
				prev, err = link(at, data)
			}
			if err != nil {
				return at, err
			}
			w.prev[at] = prev
		}
		at = prev
	}
	return "", nil
}

// session visits the chunks of a session. A fault is only one if the session's
// head is still the same: it may have been deleted, or written, meanwhile.
func (w *walker) session(ctx context.Context, h Head, visit func(digest string)) (*Fault, error) {
	for {
		if h.Import != "" {
			visit(h.Import)
		}
		if err := newer(h); err != nil {
			return faultOf(h.Session, "", err), nil
		}
		at, err := w.chain(ctx, h.Digest, visit)
		if err == nil || !lasting(err) {
			return nil, err
		}
		now, gone := w.store.Head(ctx, h.Session)
		switch {
		case errors.Is(gone, agent.NotFound):
			return nil, nil
		case gone != nil:
			return nil, gone
		case now.Digest == h.Digest:
			return faultOf(h.Session, at, err), nil
		}
		h = now
	}
}

// sessions visits the chunks of every session but those that are left out, which
// may be nil. It returns how many sessions there are, and which can't be read.
func (w *walker) sessions(ctx context.Context, without func(session string) bool, visit func(session, digest string)) (n int, faults []Fault, err error) {
	for h, err := range w.store.Heads(ctx, "") {
		if without != nil && without(h.Session) {
			continue
		}
		n++
		if err != nil && !lasting(err) {
			return n, faults, err
		}
		fault := (*Fault)(nil)
		if err != nil {
			fault = faultOf(h.Session, "", err)
		} else if fault, err = w.session(ctx, h, func(digest string) { visit(h.Session, digest) }); err != nil {
			return n, faults, err
		}
		if fault != nil {
			faults = append(faults, *fault)
		}
	}
	return n, faults, nil
}

// newer is the error of a head that a newer build wrote: what it refers to is not
// known to this one.
func newer(h Head) error {
	if h.V > agent.Version {
		return agent.Errorf(agent.Incompatible, "the head of session %s has version %d; this build reads up to %d", h.Session, h.V, agent.Version)
	}
	return nil
}

// lasting tells whether an error is about what is stored, and not about the store.
func lasting(err error) bool {
	return errors.Is(err, agent.ChunkMissing) || errors.Is(err, agent.ChunkDamaged) || errors.Is(err, agent.Incompatible)
}

func faultOf(session, chunk string, err error) *Fault {
	return &Fault{Session: session, Chunk: chunk, Code: agent.CodeOf(err), Message: err.Error()}
}
