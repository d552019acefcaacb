package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// Vault keeps secrets in a store, such as a session's sign-ins. They are always
// encrypted. [Log.Delete] deletes those of a session.
type Vault struct{ store Store }

// NewVault returns the vault of a store. It returns nil if the store has no keys to
// encrypt with, because secrets must not be stored in plain text.
func NewVault(s Store) *Vault {
	if !IsEncrypted(s) {
		return nil
	}
	return &Vault{s}
}

// A secret is a chunk that no collection takes for a session's, and that is never
// overwritten: the highest number is the current one. Its name is the mark, the session's
// tag, a digest of the secret's name, the number, and a digest of the value.
const (
	vaultMark   = "secret"
	vaultDigits = 16
)

func vaultPrefix(session string) string { return vaultMark + ChunkPrefix(session) }

func (v *Vault) prefix(session, name string) string {
	return vaultPrefix(session) + digestOf([]byte(name))[:vaultDigits]
}

// last returns the current secret, and all stored ones of its name.
func (v *Vault) last(ctx context.Context, prefix string) (last string, all []string, err error) {
	for c, err := range v.store.Chunks(ctx, prefix) {
		if err != nil {
			return "", nil, err
		}
		if len(c.Name) == len(prefix)+2*vaultDigits { // numbers have a fixed width, so names compare like them
			all, last = append(all, c.Name), max(last, c.Name)
		}
	}
	return last, all, nil
}

// Secret returns the value that was last put under a name; nil if there is none. session
// is empty for a secret that belongs to no session. Errors are those of [Store].
func (v *Vault) Secret(ctx context.Context, session, name string) ([]byte, error) {
	for range 3 { // a newer one may replace it between the listing and the read
		last, _, err := v.last(ctx, v.prefix(session, name))
		if err != nil || last == "" {
			return nil, err
		}
		value, err := v.store.Chunk(ctx, last)
		if !errors.Is(err, agent.CodeChunkMissing) {
			return value, err
		}
	}
	return nil, agent.Errorf(agent.CodeStoreUnavailable, "reading a secret of session %s: it changes all the time", session)
}

// PutSecret replaces the value under a name. If two are put at once, either may win.
func (v *Vault) PutSecret(ctx context.Context, session, name string, value []byte) error {
	prefix := v.prefix(session, name)
	last, all, err := v.last(ctx, prefix)
	if err != nil {
		return err
	}
	number := uint64(0)
	if last != "" {
		if _, err := fmt.Sscanf(last[len(prefix):len(prefix)+vaultDigits], "%x", &number); err != nil {
			return agent.Errorf(agent.CodeChunkDamaged, "the secret %s has no number; delete it", last)
		}
	}
	// The new one first: a crash between the two must not lose both.
	if err := v.store.PutChunk(ctx, fmt.Sprintf("%s%0*x%s", prefix, vaultDigits, number+1, digestOf(value)[:vaultDigits]), value); err != nil {
		return err
	}
	for _, old := range all {
		if _, err := v.store.DeleteChunk(ctx, old, time.Now().Add(clocks)); err != nil {
			return err
		}
	}
	return nil
}
