package connect

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
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/store/bucket"
	"github.com/fermata-agents/fermata/store/postgres"
)

// openedStore is an invocation's store. The zero value is not open.
type openedStore struct {
	*store.Encrypted
	shut func() // nil for a store in files
	// ready waits until a database answers; nil without a database.
	ready func(context.Context) error
}

// close closes its connections, if it has any.
func (o openedStore) close() {
	if o.shut != nil {
		o.shut()
	}
}

// OpenStore opens the store that all commands share, and waits a moment until a database
// answers. An invocation opens it once, and Close closes it.
func (c *Connector) OpenStore(ctx context.Context) (*store.Encrypted, error) {
	s, err := c.nameStore(ctx)
	if err != nil || c.openedStore.ready == nil {
		return s, err
	}
	soon, cancel := context.WithTimeout(ctx, StorePatience)
	defer cancel()
	if err := c.openedStore.ready(soon); err != nil {
		return nil, Silent(ctx, err)
	}
	return s, nil
}

// nameStore is OpenStore for a command that may not need the store. A database is
// contacted only when something is read or written.
func (c *Connector) nameStore(ctx context.Context) (*store.Encrypted, error) {
	// Opened once: a second pool of connections would not be closed.
	if c.openedStore.Encrypted != nil {
		return c.openedStore.Encrypted, nil
	}
	// A store that was found lost must not be opened, because that creates it.
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

// OpenExistingStore is OpenStore for commands that maintain a store. A folder without a
// store is a wrong name or a missing mount. An empty store in its place would look
// complete.
func (c *Connector) OpenExistingStore(ctx context.Context) (*store.Encrypted, error) {
	place, err := c.StorePlace()
	if err != nil || strings.Contains(place, "://") || store.IsDir(place) {
		return c.OpenStore(ctx)
	}
	// A store that was restored without its identity is a store, too.
	if _, err := os.Stat(filepath.Join(place, "heads")); err != nil {
		return nil, agent.Errorf(agent.CodeNotSetUp, "there is no store in %s, and none was created: name it with --store, --data or %s, or mount it", place, env.Store)
	}
	return c.OpenStore(ctx)
}

// StorePatience is how long a command waits for the store's first answer. It is longer
// than the 6 s that an S3 client may take for three tries, whose last error says more
// than a timeout. It is shorter than the timeout of a probe that calls doctor.
const StorePatience = 8 * time.Second

// openPlain opens the store without encryption.
func (c *Connector) openPlain(ctx context.Context) (store.Store, error) {
	place, err := c.StorePlace()
	if err != nil {
		return nil, fmt.Errorf("the store: %w", err)
	}
	if strings.HasPrefix(place, s3blob.Scheme+"://") {
		b, err := bucket.Open(ctx, place)
		if err != nil {
			return nil, err
		}
		c.openedStore.shut = func() { _ = b.Close() } // nothing is buffered that could be lost
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
		// A database connects lazily, so its first answer is waited for.
		c.openedStore.shut, c.openedStore.ready = db.Close, db.Ready
		return db, nil
	}
	return store.OpenDir(place, &store.DirOptions{Shared: c.StoreShared})
}

// storeSchemes are the schemes of URLs that name a store.
var storeSchemes = []string{"postgres", "postgresql", s3blob.Scheme}

// notAStore does not repeat the input, which may contain a password.
func notAStore() error {
	return agent.Errorf(agent.CodeInvalidInput, "--store or %s names no store: it is a folder, postgres://USER:PASSWORD@HOST:PORT/NAME or s3://BUCKET", env.Store)
}

// StorePlace returns where the store is: a URL, or the absolute path of a folder.
func (c *Connector) StorePlace() (string, error) {
	place := c.Store
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
	// Such as postgres:… without slashes: a folder of that name would have a password in
	// its path.
	case colon && slices.Contains(storeSchemes, scheme):
		return "", notAStore()
	case place != "":
		return filepath.Abs(place)
	}
	data, err := c.DataDir()
	return filepath.Join(data, "store"), err
}

// NoteWaiting tells people after a while that the command waits for the store, or for a worker to say what a
// live run has not stored yet, unless done is called before.
func (c *Connector) NoteWaiting() (done func()) {
	t := time.AfterFunc(StorePatience, func() {
		c.Notify("waiting for the store in %s, or for a worker of the run; Ctrl-C gives up", store.Location(c.openedStore.Encrypted))
	})
	return func() { t.Stop() }
}

// Silent says in words that a store did not answer within [StorePatience], if that is why
// it failed. It leaves the error alone if the command itself ends.
func Silent(ctx context.Context, err error) error {
	if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return agent.Errorf(agent.CodeOf(err), "%w: it did not answer within %v", err, StorePatience)
}

// CheckLostStore returns why there is no store. Either nobody knows where it is, or the
// folder has none and the workers of the task queue had one. Opening it would create an
// empty one. What is not known in a moment is not reported.
func (c *Connector) CheckLostStore(ctx context.Context, s *Server) error {
	place, err := c.StorePlace()
	if err != nil && s.Embedded == nil && agent.CodeOf(err) != agent.CodeInvalidInput {
		return agent.Errorf(agent.CodeNotSetUp, "%w, and no store is named (--store, %s)", err, env.Store)
	}
	if err != nil || strings.Contains(place, "://") || store.IsDir(place) {
		return nil // opening it returns the error
	}
	ctx, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	recorded, err := signals.ReadStore(ctx, s.Client, c.Queue())
	switch {
	case err != nil:
		// Without a record nothing shows that a store was lost.
		return nil
	case recorded.Place != place:
		return agent.Errorf(agent.CodeNotSetUp, "there is no store in %s, and none was created: the task queue %s has its store in %s. Name that one (--store, --data, %s), or use another task queue",
			place, c.Queue(), recorded.Place, env.Store)
	}
	return agent.Errorf(agent.CodeStoreUnavailable, "the store of the task queue %s is not in %s: is it mounted? Nothing was created in its place. Mount or restore it; if it is gone for good, stop all workers and terminate the workflow %s",
		c.Queue(), place, signals.StoreRecordID(c.Queue()))
}

// CheckStore returns an error if the workers of the task queue have another store, or the
// store belongs to another namespace. What is not known in a moment is not reported: a
// worker checks again.
func (c *Connector) CheckStore(ctx context.Context, s *Server, transcripts store.Store) error {
	return s.checkStore(ctx, c.Queue(), transcripts)
}

func (s *Server) checkStore(ctx context.Context, queue string, transcripts store.Store) error {
	ctx, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	if err := store.CheckNamespace(ctx, transcripts, s.Namespace); err != nil {
		return err
	}
	recorded, err := signals.ReadStore(ctx, s.Client, queue)
	if err != nil {
		return err
	}
	id, err := store.ReadID(ctx, transcripts)
	if err != nil {
		return err
	}
	return signals.CheckStore(queue, recorded, signals.StoreRecord{ID: id, Place: store.Location(transcripts)})
}
