package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/store/postgres"
)

// storeVariable is the environment variable that says where transcripts are, as
// --store does: an URL with a password is better not in a command line.
const storeVariable = "FERMATA_STORE"

// openedStore is the store of an invocation. The zero value is not open.
type openedStore struct {
	store.Store
}

// close ends its connections, if it has any.
func (o openedStore) close() {
	if db, ok := o.Store.(*postgres.Store); ok {
		db.Close()
	}
}

// openStore opens the store that all commands share. An invocation has one; it is
// closed at its end.
func (c *cli) openStore(ctx context.Context) (store.Store, error) {
	if c.kept.Store != nil {
		return c.kept.Store, nil
	}
	place := cmp.Or(c.store, os.Getenv(storeVariable))
	if strings.Contains(place, "://") {
		db, err := postgres.Open(ctx, place, nil)
		if err != nil {
			return nil, err
		}
		c.kept.Store = db
		return db, nil
	}
	if place == "" {
		data, err := c.dataDir()
		if err != nil {
			return nil, fmt.Errorf("the store: %w", err)
		}
		place = filepath.Join(data, "store")
	}
	dir, err := store.OpenDir(place, &store.DirOptions{Shared: c.storeShared})
	if err != nil {
		return nil, err
	}
	c.kept.Store = dir
	return dir, nil
}

// placeOf tells people where a store is.
func placeOf(s store.Store) string {
	if dir, ok := s.(*store.Dir); ok {
		return dir.Root()
	}
	return fmt.Sprint(s)
}
