package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gocloud.dev/blob/s3blob"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/secret"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/store/bucket"
	"github.com/fermata-agents/fermata/store/postgres"
)

// openedStore is the store of an invocation. The zero value is not open.
type openedStore struct {
	*store.Encrypted
	shut func() // nil where it is in files
	// ready waits until a database answers; nil if there is none.
	ready func(context.Context) error
}

// close ends its connections, if it has any.
func (o openedStore) close() {
	if o.shut != nil {
		o.shut()
	}
}

// openStore opens the store that all commands share, and waits a moment until a database
// answers. An invocation has one; it is closed at its end.
func (c *cli) openStore(ctx context.Context) (*store.Encrypted, error) {
	s, err := c.nameStore(ctx)
	if err != nil || c.openedStore.ready == nil {
		return s, err
	}
	soon, cancel := context.WithTimeout(ctx, storePatience)
	defer cancel()
	if err := c.openedStore.ready(soon); err != nil {
		return nil, silent(ctx, err)
	}
	return s, nil
}

// nameStore is openStore for who may not need the store: a database is asked when something
// is read or written.
func (c *cli) nameStore(ctx context.Context) (*store.Encrypted, error) {
	if c.openedStore.Encrypted != nil {
		return c.openedStore.Encrypted, nil
	}
	if c.storeErr != nil {
		return nil, c.storeErr
	}
	ring, err := env.Keyring()
	if err != nil {
		return nil, err
	}
	plain, err := c.openPlain(ctx)
	if err != nil {
		return nil, err
	}
	c.openedStore.Encrypted = store.Encrypt(plain, ring)
	return c.openedStore.Encrypted, nil
}

// storeThere is openStore for who looks after a store: a folder that has none is a wrong
// name or a mount that is away, and an empty store in its place would look whole.
func (c *cli) storeThere(ctx context.Context) (*store.Encrypted, error) {
	place, err := c.storePlace()
	if err != nil || strings.Contains(place, "://") || store.IsDir(place) {
		return c.openStore(ctx)
	}
	// A store that was restored without its identity is looked after, too.
	if _, err := os.Stat(filepath.Join(place, "heads")); err != nil {
		return nil, agent.Errorf(agent.CodeNotSetUp, "there is no store in %s, and none was made: name it with --store, --data or %s, or mount it", place, env.Store)
	}
	return c.openStore(ctx)
}

// storePatience is how long a command waits for the store's first answer: longer than the
// 6 s that a client of S3 may take to try three times, whose last error says more than that
// nothing came, and no longer than a probe that calls doctor.
const storePatience = 8 * time.Second

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
		c.openedStore.shut = func() { _ = b.Close() } // nothing is held back that could be lost
		return b, nil
	}
	if scheme, _, isURL := strings.Cut(place, "://"); isURL {
		if !slices.Contains(storeSchemes, scheme) {
			return nil, notAStore()
		}
		db, err := postgres.New(place, nil)
		if err != nil {
			return nil, err
		}
		c.openedStore.shut, c.openedStore.ready = db.Close, db.Ready
		return db, nil
	}
	return store.OpenDir(place, &store.DirOptions{Shared: c.storeShared})
}

// storeSchemes are those of the URLs that name a store.
var storeSchemes = []string{"postgres", "postgresql", s3blob.Scheme}

// notAStore does not repeat what was said: there may be a password in it.
func notAStore() error {
	return agent.Errorf(agent.CodeInvalidInput, "--store or %s names no store: it is a folder, postgres://USER:PASSWORD@HOST:PORT/NAME or s3://BUCKET", env.Store)
}

// storePlace is where the store is: an URL, or the whole path of a folder.
func (c *cli) storePlace() (string, error) {
	place := c.store
	if place == "" {
		var err error
		if place, err = secret.Get(env.Store); err != nil {
			return "", err
		}
	}
	scheme, _, colon := strings.Cut(place, ":")
	switch {
	case strings.Contains(place, "://"):
		return place, nil
	case colon && slices.Contains(storeSchemes, scheme):
		return "", notAStore() // a folder of that name would have a password in its path
	case place != "":
		return filepath.Abs(place)
	}
	data, err := c.dataDir()
	return filepath.Join(data, "store"), err
}

// tellsOfWaiting says after a while that the command waits for the store, unless what it
// returns is called before.
func (c *cli) tellsOfWaiting() (done func()) {
	t := time.AfterFunc(storePatience, func() {
		c.Note("waiting for the store in %s; Ctrl-C gives up", store.Location(c.openedStore.Encrypted))
	})
	return func() { t.Stop() }
}

// silent says in words that a store did not answer within [storePatience], if that is
// why it failed, and not that the command ends.
func silent(ctx context.Context, err error) error {
	if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return agent.Errorf(agent.CodeOf(err), "%w: it did not answer within %v", err, storePatience)
}
