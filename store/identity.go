package store

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/fermata-agents/fermata/agent"
)

// Keys of the values that a store keeps for its whole life.
const (
	identityKey  = "id"
	namespaceKey = "namespace"
)

// ID returns a store's identity, 32 hexadecimal digits. The first call in the store's
// life chooses it. All workers of a task queue must use one store, and recognise it by
// its identity. If the identity can't be read, the error is [agent.CodeChunkDamaged].
func ID(ctx context.Context, s Store) (string, error) {
	var chosen [16]byte
	_, _ = rand.Read(chosen[:]) // never fails
	id, err := s.PutIfAbsent(ctx, identityKey, hex.EncodeToString(chosen[:]))
	if err == nil {
		err = whole(s, id)
	}
	if err != nil {
		return "", err
	}
	return id, nil
}

// ReadID returns a store's identity; empty if it has none yet. It chooses none. The
// errors are those of [ID].
func ReadID(ctx context.Context, s Store) (string, error) {
	id, err := s.PutIfAbsent(ctx, identityKey, "")
	if err == nil && id != "" {
		err = whole(s, id)
	}
	if err != nil {
		return "", err
	}
	return id, nil
}

func whole(s Store, id string) error {
	if idForm.MatchString(id) {
		return nil
	}
	return agent.Errorf(agent.CodeChunkDamaged, "the identity of the store in %s is damaged: it is %.40q; restore it from a backup of the store", Location(s), id)
}

var idForm = regexp.MustCompile(`^[0-9a-f]{32}$`)

// ClaimNamespace assigns a store to a Temporal namespace, or returns [agent.CodeNotSetUp]
// if it belongs to another one. Sessions are known only by their names, so two namespaces
// on one store would continue each other's sessions. Workers call it when they start.
func ClaimNamespace(ctx context.Context, s Store, namespace string) error {
	return ofNamespace(ctx, s, namespace, namespace)
}

// CheckNamespace returns [agent.CodeNotSetUp] if a store belongs to another Temporal
// namespace. It assigns nothing.
func CheckNamespace(ctx context.Context, s Store, namespace string) error {
	return ofNamespace(ctx, s, namespace, "")
}

func ofNamespace(ctx context.Context, s Store, mine, put string) error {
	kept, err := s.PutIfAbsent(ctx, namespaceKey, put)
	if err != nil || kept == mine || kept == put { // an empty put asks only; kept is then empty if nothing is stored
		return err
	}
	return agent.Errorf(agent.CodeNotSetUp, "the store in %s is that of the namespace %q, and this is %q: two namespaces would continue each other's sessions. Name a separate store (--store, --data, FERMATA_STORE), or the namespace that is meant. To give this store to %q for good, see \"Another namespace\" in docs/store.md", Location(s), kept, mine, mine)
}

// Location returns where a store is, for people: without a password, and never empty.
func Location(s Store) string {
	switch s := s.(type) {
	case *Encrypted:
		return Location(s.inner)
	case *Dir:
		return s.root
	case fmt.Stringer:
		return s.String()
	}
	return fmt.Sprintf("a %T", s)
}

// Missing returns the error for a chunk that is not in a store.
func Missing(name, place string) error {
	return agent.Errorf(agent.CodeChunkMissing, "chunk %s is not in the store, %s: check that this is the store that the session was written to (--store, --data, FERMATA_STORE), and that it was not emptied or restored", name, place)
}

// PutIfAbsent implements [Store]. The value is a file in the store's folder, named after
// the key.
func (d *Dir) PutIfAbsent(ctx context.Context, key, value string) (string, error) {
	if err := over(ctx, "reading the "+key+" of", "the store "+d.root); err != nil {
		return "", err
	}
	path := filepath.Join(d.root, key)
	kept, err := readFile(path)
	if os.IsNotExist(err) {
		if err := d.absent(); err != nil || value == "" {
			return "", err
		}
		kept, err = d.putIfAbsent(ctx, path, value)
	}
	if err != nil {
		return "", agent.Errorf(agent.CodeStoreUnavailable, "reading the %s of the store: %w", key, err)
	}
	found := strings.TrimSpace(string(kept))
	if found == "" {
		return "", agent.Errorf(agent.CodeChunkDamaged, "the store in %s is damaged: its file %s is empty; restore it from a backup of the store", d.root, key)
	}
	if key == identityKey {
		d.id.CompareAndSwap(nil, found) // remembered, to notice if another folder is mounted there later
	}
	return found, nil
}

// IsDir reports whether a folder has a store that was used before. It creates none.
func IsDir(root string) bool {
	_, err := os.Stat(filepath.Join(root, identityKey))
	return err == nil
}

// putIfAbsent writes a file, unless another process just did.
func (d *Dir) putIfAbsent(ctx context.Context, path, value string) ([]byte, error) {
	unlock, err := d.lock(ctx, "id", filepath.Base(path))
	if err != nil {
		return nil, err
	}
	defer unlock()
	// Another process may have written it before this one had the lock.
	if kept, err := readFile(path); !os.IsNotExist(err) {
		return kept, err
	}
	kept := []byte(value + "\n")
	return kept, d.replace(path, kept)
}
