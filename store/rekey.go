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

// RekeyResult says what [Encrypted.Rekey] did.
type RekeyResult struct {
	Key    string `json:"key"`    // the key that encrypts
	Chunks int    `json:"chunks"` // encrypted again
	Heads  int    `json:"heads"`  // encrypted again
	// Remaining counts what was written meanwhile and could not be encrypted. Call Rekey
	// again for it.
	Remaining int `json:"remaining"`
	// Plain counts plain heads and chunks that were left as they are: see [RekeyOptions].
	Plain int `json:"plain"`
}

// RekeyOptions configures [Encrypted.Rekey]; nil means all defaults.
type RekeyOptions struct {
	// Plain also encrypts plain data, and trusts it. Use it once, for a store that was
	// used without keys, while nobody else can write to it.
	Plain bool
}

// Rekey encrypts with the ring's first key what is encrypted with another key, and plain
// data if the options say so. It may be called while processes with the key write
// sessions, and again after an interruption. The result also counts what was done before
// an error. Errors are [agent.CodeNotSetUp] without a key, or if the ring lacks a key,
// and those of the store.
func (e *Encrypted) Rekey(ctx context.Context, o *RekeyOptions) (RekeyResult, error) {
	takes := o != nil && o.Plain
	done := RekeyResult{Key: e.ring.Primary()}
	if done.Key == "" {
		return done, agent.Errorf(agent.CodeNotSetUp, "there is no key to encrypt with: set FERMATA_ENCRYPTION_KEYS")
	}
	// Heads first: readers of a head that is encrypted with the new key have that key, so
	// they can read all chunks that it names.
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
	h.Version++ // a new version: a run that writes next notices it, and continues from there
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
	if errors.Is(err, agent.CodeChunkMissing) { // collected since the listing
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
	// Delete only the chunk as it was listed: if it was put again since, it stays. The new one
	// is stored by now, so a reader finds one of the two at any time.
	gone, err := e.inner.DeleteChunk(ctx, c.Name, c.Put.Add(time.Millisecond))
	switch {
	case err != nil:
		return err
	case gone:
		done.Chunks++
	default: // a process that writes with an older key put it again
		done.Remaining++
	}
	return nil
}
