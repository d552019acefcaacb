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

// NewID returns an identity for a new store.
func NewID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}

// CheckID refuses what is no identity, with [agent.ChunkDamaged] and where it was read.
func CheckID(id, place string) (string, error) {
	if !idForm.MatchString(id) {
		return "", agent.Errorf(agent.ChunkDamaged, "the identity of the store is damaged: %s has %.40q; restore it from a backup of the store", place, id)
	}
	return id, nil
}

var idForm = regexp.MustCompile(`^[0-9a-f]{32}$`)

// Place tells people where a store is: without a password, and never empty.
func Place(s Store) string {
	switch s := s.(type) {
	case *Encrypted:
		return Place(s.inner)
	case *Dir:
		return s.root
	case fmt.Stringer:
		return s.String()
	}
	return fmt.Sprintf("a %T", s)
}

// Missing is the error of a chunk that is not in a store.
func Missing(name, place string) error {
	return agent.Errorf(agent.ChunkMissing, "chunk %s is not in the store, %s: look whether this is the store that the session was written to (--store, --data, FERMATA_STORE), and whether it was emptied or restored", name, place)
}

// identityFile has the identity of a store in a folder.
const identityFile = "id"

// ID implements [Store].
func (d *Dir) ID(ctx context.Context) (string, error) {
	if err := over(ctx, "reading the identity of", "the store "+d.root); err != nil {
		return "", err
	}
	path := filepath.Join(d.root, identityFile)
	id, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		if err := d.absent(); err != nil {
			return "", err
		}
		id, err = d.choose(ctx, path)
	}
	if err != nil {
		return "", agent.Errorf(agent.StoreUnavailable, "reading the identity of the store: %w", err)
	}
	found, err := CheckID(strings.TrimSpace(string(id)), path)
	if err == nil {
		d.id.CompareAndSwap(nil, found) // the one that was opened
	}
	return found, err
}

// IsDir reports whether a folder has a store that somebody used. It makes none.
func IsDir(root string) bool {
	_, err := os.Stat(filepath.Join(root, identityFile))
	return err == nil
}

// choose gives a folder its identity, unless somebody else just did.
func (d *Dir) choose(ctx context.Context, path string) ([]byte, error) {
	unlock, err := d.lock(ctx, "id", identityFile)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if id, err := os.ReadFile(path); !os.IsNotExist(err) {
		return id, err
	}
	id := []byte(NewID() + "\n")
	return id, d.replace(path, id)
}
