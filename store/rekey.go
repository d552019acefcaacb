package store

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/keyring"
)

// RekeyResult is what became of a store that was encrypted anew.
type RekeyResult struct {
	Key    string `json:"key"`    // that writes
	Chunks int    `json:"chunks"` // encrypted anew
	Heads  int    `json:"heads"`  // encrypted anew
	// Remaining is what could not be, for it was written meanwhile: the next time finds it.
	Remaining int `json:"remaining"`
	// Plain are plain heads and chunks that were left as they are: see [RekeyOptions].
	Plain int `json:"plain"`
}

// RekeyOptions says more of what is encrypted anew; nil means all defaults.
type RekeyOptions struct {
	// Plain takes what is plain as it is. Say it once, for a store that was used without
	// keys, while nobody else could write to it: whoever wrote something plain is
	// believed.
	Plain bool
}

// Rekey encrypts anew, with the first key of the ring, what is under another key and, if
// the options say so, what is plain. It may be called while sessions are written, by
// processes that have the key, and again after it was interrupted. What was done before
// an error is told beside it: [agent.CodeNotSetUp] without a key, or for what is under a key
// that the ring lacks, and those of the store.
func (e *Encrypted) Rekey(ctx context.Context, o *RekeyOptions) (RekeyResult, error) {
	takes := o != nil && o.Plain
	done := RekeyResult{Key: e.ring.Primary()}
	if done.Key == "" {
		return done, agent.Errorf(agent.CodeNotSetUp, "there is no key to encrypt with: set FERMATA_ENCRYPTION_KEYS")
	}
	// Heads first: what they name is then under a key that their readers have.
	for h, err := range e.inner.Heads(ctx, "") {
		if err != nil {
			return done, err
		}
		if err := e.rekeyHead(ctx, h, takes, &done); err != nil {
			return done, err
		}
	}
	for c, err := range e.inner.Chunks(ctx, "") {
		if err != nil {
			return done, err
		}
		if err := e.rekeyChunk(ctx, c, takes, &done); err != nil {
			return done, err
		}
	}
	return done, nil
}

func (e *Encrypted) rekeyHead(ctx context.Context, stored Head, takesPlain bool, done *RekeyResult) error {
	if keyring.KeyID(stored.Encrypted) == done.Key {
		return nil
	}
	h := stored
	if len(stored.Encrypted) > 0 {
		var err error
		if h, err = e.open(stored); err != nil {
			return err
		}
	} else if !takesPlain {
		done.Plain++
		return nil
	}
	h.Version++ // a run that writes it next finds its own and goes on from there
	switch err := e.PutHead(ctx, h); {
	case errors.Is(err, agent.CodeStale):
		done.Remaining++
	case err != nil:
		return err
	default:
		done.Heads++
	}
	return nil
}

func (e *Encrypted) rekeyChunk(ctx context.Context, c ChunkInfo, takesPlain bool, done *RekeyResult) error {
	digest, key, _ := strings.Cut(c.Name, ".")
	if key == done.Key || isEdge(c.Name) {
		return nil
	}
	if key != "" && !slices.Contains(e.ring.IDs(), key) {
		return damaged(e.ring.MissingKey(key), "chunk "+digest)
	}
	if key == "" && !takesPlain {
		done.Plain++
		return nil
	}
	data, err := e.inner.Chunk(ctx, c.Name)
	if errors.Is(err, agent.CodeChunkMissing) { // collected meanwhile
		return nil
	}
	if err == nil && key != "" {
		data, err = e.decrypt(digest, data)
	}
	if err == nil {
		err = e.PutChunk(ctx, digest, data)
	}
	if err != nil {
		return err
	}
	gone, err := e.inner.DeleteChunk(ctx, c.Name, c.Put.Add(time.Millisecond))
	switch {
	case err != nil:
		return err
	case gone:
		done.Chunks++
	default: // put again by a process that writes with an older key
		done.Remaining++
	}
	return nil
}
