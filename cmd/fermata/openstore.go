package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"gocloud.dev/blob/s3blob"

	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/store/bucket"
	"github.com/fermata-agents/fermata/store/postgres"
)

// storeVariable is the environment variable that says where transcripts are, as
// --store does: an URL with a password is better not in a command line.
const storeVariable = "FERMATA_STORE"

// openedStore is the store of an invocation. The zero value is not open.
type openedStore struct {
	*store.Encrypted
	shut func() // nil where it is in files
}

// close ends its connections, if it has any.
func (o openedStore) close() {
	if o.shut != nil {
		o.shut()
	}
}

// openStore opens the store that all commands share. An invocation has one; it is
// closed at its end.
func (c *cli) openStore(ctx context.Context) (*store.Encrypted, error) {
	if c.kept.Encrypted != nil {
		return c.kept.Encrypted, nil
	}
	if c.lost != nil {
		return nil, c.lost
	}
	ring, err := encryptionKeys()
	if err != nil {
		return nil, err
	}
	plain, err := c.openPlain(ctx)
	if err != nil {
		return nil, err
	}
	c.kept.Encrypted = store.Encrypt(plain, ring)
	return c.kept.Encrypted, nil
}

// openPlain opens the store as it lies there.
func (c *cli) openPlain(ctx context.Context) (store.Store, error) {
	place, err := c.storePlace()
	if err != nil {
		return nil, fmt.Errorf("the store: %w", err)
	}
	if strings.HasPrefix(place, s3blob.Scheme+"://") {
		b, err := bucket.Open(ctx, place)
		if err != nil {
			return nil, err
		}
		c.kept.shut = func() { _ = b.Close() } // nothing is held back that could be lost
		return b, nil
	}
	if strings.Contains(place, "://") {
		db, err := postgres.Open(ctx, place, nil)
		if err != nil {
			return nil, err
		}
		c.kept.shut = db.Close
		return db, nil
	}
	return store.OpenDir(place, &store.DirOptions{Shared: c.storeShared})
}

// storePlace is where the store is: an URL, or the whole path of a folder.
func (c *cli) storePlace() (string, error) {
	place := cmp.Or(c.store, os.Getenv(storeVariable))
	switch {
	case strings.Contains(place, "://"):
		return place, nil
	case place != "":
		return filepath.Abs(place)
	}
	data, err := c.dataDir()
	return filepath.Join(data, "store"), err
}

// identity reads the identity of a folder's store, if it has one. It makes none.
func identity(ctx context.Context, dir *store.Dir) error {
	if !store.IsDir(dir.Root()) {
		return nil
	}
	_, err := store.ID(ctx, dir)
	return err
}
