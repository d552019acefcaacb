package store

import (
	"context"
	"errors"
	"slices"

	"github.com/fermata-agents/fermata/agent"
)

// putTries is how often a head is put again after another write came between the check
// and the put. Each time, that other write was stored.
const putTries = 10

// MaxChain is the highest chain that a clock can give: the end of the year 9999, in
// microseconds since 1970. A higher chain has to be exactly one more than the stored one,
// so that there is always a higher fence.
const MaxChain = 253_402_300_799_999_999

// beyond reports whether no run can have this fence after the stored one, because its
// chain skips numbers.
func beyond(f, stored agent.Fence) bool {
	return f.Chain > MaxChain && f.Chain-1 > stored.Chain
}

// PutHead stores the head that a run has decided, if its fence is higher than the stored
// head's, and returns what is stored then. h.Version is one more than the version that
// the run knows. If the stored head has changed since, the fences decide. A repeated
// write that is stored already changes nothing and is no error.
//
// [agent.CodeStale] refuses a lower fence, or a head of a deleted session. Such a write
// can never succeed, because stored fences only rise. [agent.CodeInvalidInput] refuses a
// head without a fence, and a chain that skips numbers above [MaxChain]. Other errors are
// those of the store.
func (l *Log) PutHead(ctx context.Context, h Head) (Head, error) {
	for range putTries {
		stored, err := l.swap(ctx, h)
		switch {
		case err == nil || !errors.Is(err, agent.CodeStale):
			return stored.Head, err
		case stored.gone:
			return Head{}, agent.Errorf(agent.CodeStale, "session %s is not in the store any more: a run that started before its deletion writes nothing to it", h.Session)
		case h.Fence.Compare(stored.Fence) <= 0:
			return Head{}, agent.Errorf(agent.CodeStale, "a write of session %s came too late: it is number %d of chain %d, and number %d of chain %d is stored", h.Session, h.Fence.N, h.Fence.Chain, stored.Fence.N, stored.Fence.Chain)
		}
		// The higher fence wins over the head that was stored in the meantime.
		h.Version = stored.Version + 1
	}
	return Head{}, agent.Errorf(agent.CodeStoreUnavailable, "the head of session %s is written as fast as it is read; try again", h.Session)
}

// SwapHead stores a head that was made from the stored one, if that still has the version
// h.Version-1. A head that is stored already is no error.
//
// [agent.CodeStale] means that another head was stored meanwhile: read it before you try
// again. Other errors are those of [Log.PutHead].
func (l *Log) SwapHead(ctx context.Context, h Head) (Head, error) {
	stored, err := l.swap(ctx, h)
	if err != nil {
		return Head{}, err
	}
	return stored.Head, nil
}

// index copies the envelope of the last chunk into a head. A head that was made from the
// stored one has it already.
func (l *Log) index(ctx context.Context, h *Head) error {
	h.Blobs = nil
	for _, k := range h.BacklogBlobs {
		if !slices.Contains(h.Blobs, k.Blob) {
			h.Blobs = append(h.Blobs, k.Blob)
		}
	}
	if h.Digest == "" || len(h.Recent) > 0 && h.Recent[0].Chunk == h.Digest {
		return nil
	}
	// Copied, so that nobody has to read an envelope to find the last chunks.
	e, err := l.envelope(ctx, h.Digest)
	if err != nil {
		return err
	}
	h.Recent = append([]Ref{e.ref(h.Digest)}, e.Before...)
	h.Origins = originsOf(h.Session, h.Digest, e)
	h.Knows = e.Knows
	if h.Knows != nil && h.Knows.Chunk == "" {
		h.Knows = &Known{h.Digest, e.Knows.From, e.Knows.Since}
	}
	return nil
}

// CheckReplaces returns [agent.CodeStale] if h may not replace the stored head: if that
// has another version than h.Version-1 or a higher fence, or if h's chain skips numbers
// above [MaxChain]. Every store's PutHead calls it, or does the same, atomically with the
// write. stored is what [Store].Head returns for the session, also beside
// [agent.CodeNotFound].
func (h Head) CheckReplaces(stored Head) error {
	switch {
	case stored.Version != h.Version-1:
		return agent.Errorf(agent.CodeStale, "the stored head of session %s has version %d, not %d: another run wrote it", h.Session, stored.Version, h.Version-1)
	case h.Fence.Compare(stored.Fence) < 0:
		return agent.Errorf(agent.CodeStale, "session %s was last written by number %d of chain %d: number %d of chain %d comes too late", h.Session, stored.Fence.N, stored.Fence.Chain, h.Fence.N, h.Fence.Chain)
	case beyond(h.Fence, stored.Fence):
		return agent.Errorf(agent.CodeStale, "the stored head of session %s has chain %d: the next chain can't have number %d", h.Session, stored.Fence.Chain, h.Fence.Chain)
	}
	return nil
}

// seen is what a swap found in the store.
type seen struct {
	Head
	gone bool // the session has no head, or is being deleted
}

// swap replaces the previous version by a head. If the stored head has another version,
// the error is [agent.CodeStale], and the stored head is returned with it. If the stored
// head is of the same decision, there is no error.
func (l *Log) swap(ctx context.Context, h Head) (seen, error) {
	if h.Fence.Chain <= 0 || h.Fence.N < 0 {
		return seen{}, agent.Errorf(agent.CodeInvalidInput, "the head of session %s has no fence: without it, a late write can't be told from a new one", h.Session)
	}
	if err := l.index(ctx, &h); err != nil {
		return seen{}, err
	}
	// The put first: usually it succeeds, and then nothing has to be read.
	stale := l.store.PutHead(ctx, h)
	if !errors.Is(stale, agent.CodeStale) {
		return seen{Head: h}, stale
	}
	stored, err := l.store.Head(ctx, h.Session)
	gone := errors.Is(err, agent.CodeNotFound) || stored.Deleting
	switch {
	case err != nil && !errors.Is(err, agent.CodeNotFound):
		return seen{}, err
	// An earlier attempt at the same write has succeeded.
	case !gone && stored.Fence == h.Fence:
		return seen{Head: stored}, nil
	case beyond(h.Fence, stored.Fence):
		return seen{}, agent.Errorf(agent.CodeInvalidInput, "the head of session %s has the fence of chain %d, which no run after chain %d can have", h.Session, h.Fence.Chain, stored.Fence.Chain)
	}
	return seen{stored, gone}, stale
}
