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
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/secret"
	"github.com/fermata-agents/fermata/signals"
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

// OpenStore opens the store that all commands share, and waits a moment until a database
// answers. An invocation has one; it is closed at its end.
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

// nameStore is openStore for who may not need the store: a database is asked when something
// is read or written.
func (c *Connector) nameStore(ctx context.Context) (*store.Encrypted, error) {
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

// OpenExistingStore is openStore for who looks after a store: a folder that has none is a wrong
// name or a mount that is away, and an empty store in its place would look whole.
func (c *Connector) OpenExistingStore(ctx context.Context) (*store.Encrypted, error) {
	place, err := c.StorePlace()
	if err != nil || strings.Contains(place, "://") || store.IsDir(place) {
		return c.OpenStore(ctx)
	}
	// A store that was restored without its identity is looked after, too.
	if _, err := os.Stat(filepath.Join(place, "heads")); err != nil {
		return nil, agent.Errorf(agent.CodeNotSetUp, "there is no store in %s, and none was made: name it with --store, --data or %s, or mount it", place, env.Store)
	}
	return c.OpenStore(ctx)
}

// StorePatience is how long a command waits for the store's first answer: longer than the
// 6 s that a client of S3 may take to try three times, whose last error says more than that
// nothing came, and no longer than a probe that calls doctor.
const StorePatience = 8 * time.Second

// openPlain opens the store as it lies there.
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
	return store.OpenDir(place, &store.DirOptions{Shared: c.StoreShared})
}

// storeSchemes are those of the URLs that name a store.
var storeSchemes = []string{"postgres", "postgresql", s3blob.Scheme}

// notAStore does not repeat what was said: there may be a password in it.
func notAStore() error {
	return agent.Errorf(agent.CodeInvalidInput, "--store or %s names no store: it is a folder, postgres://USER:PASSWORD@HOST:PORT/NAME or s3://BUCKET", env.Store)
}

// StorePlace is where the store is: an URL, or the whole path of a folder.
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
	case colon && slices.Contains(storeSchemes, scheme):
		return "", notAStore() // a folder of that name would have a password in its path
	case place != "":
		return filepath.Abs(place)
	}
	data, err := c.DataDir()
	return filepath.Join(data, "store"), err
}

// NoteWaiting says after a while that the command waits for the store, unless what it
// returns is called before.
func (c *Connector) NoteWaiting() (done func()) {
	t := time.AfterFunc(StorePatience, func() {
		c.Notify("waiting for the store in %s; Ctrl-C gives up", store.Location(c.openedStore.Encrypted))
	})
	return func() { t.Stop() }
}

// Silent says in words that a store did not answer within [storePatience], if that is
// why it failed, and not that the command ends.
func Silent(ctx context.Context, err error) error {
	if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return agent.Errorf(agent.CodeOf(err), "%w: it did not answer within %v", err, StorePatience)
}

// WithLog gives a command what reads a session's log: from the store and from the
// run that lives, or, where no server runs, from the store alone, and says so.
func (c *Connector) WithLog(ctx context.Context, session string, do func(*fermata.Client) error) error {
	s, err := c.Look(ctx)
	if err != nil {
		return err
	}
	if s != nil {
		defer s.Close()
		runs, err := c.Client(ctx, s)
		if err != nil {
			return err
		}
		if _, err := c.OpenStore(ctx); err != nil {
			return err
		}
		return c.WithQueueHint(ctx, s, session, do(runs))
	}
	transcripts, err := c.OpenStore(ctx)
	if err != nil {
		return err
	}
	head, err := transcripts.Head(ctx, session)
	if errors.Is(err, agent.CodeNotFound) {
		_, none := c.Find(ctx)
		return errors.Join(none, err)
	}
	if err != nil {
		return err
	}
	c.noteStoreOnly(head)
	return do(fermata.New(nil, &fermata.Options{Store: transcripts}))
}

// noteStoreOnly says what the store alone can know of a session.
func (c *Connector) noteStoreOnly(head store.Head) {
	when := head.Updated.Local().Format(time.DateTime)
	if head.Status.Ended() {
		c.Notify("no Temporal server runs: this is what the store has, up to the run that was %s at %s", head.Status, when)
	} else {
		c.Notify("no Temporal server runs: this is what the store had at %s of a run that is not at its end", when)
	}
}

// CheckLostStore is why there is no store: nobody knows where it would be, or the folder has none
// and the workers of the task queue have had one, there or elsewhere: to open it would make
// an empty one. What can't be known in a moment is not told.
func (c *Connector) CheckLostStore(ctx context.Context, s *Server) error {
	place, err := c.StorePlace()
	if err != nil && s.Embedded == nil && agent.CodeOf(err) != agent.CodeInvalidInput {
		return agent.Errorf(agent.CodeNotSetUp, "%w, and no store is named (--store, %s)", err, env.Store)
	}
	if err != nil || strings.Contains(place, "://") || store.IsDir(place) {
		return nil // opening it tells the error
	}
	ctx, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	recorded, err := signals.ReadStore(ctx, s.Client, c.Queue())
	switch {
	case err != nil:
		return nil
	case recorded.Place != place:
		return agent.Errorf(agent.CodeNotSetUp, "there is no store in %s, and none was made: that of the task queue %s is in %s. Name that one (--store, --data, %s), or use another task queue",
			place, c.Queue(), recorded.Place, env.Store)
	}
	return agent.Errorf(agent.CodeStoreUnavailable, "the store of the task queue %s is not in %s: is it mounted? Nothing was made in its place. Mount or restore it; if it is gone for good, stop all workers and terminate the workflow %s",
		c.Queue(), place, signals.StoreRecordID(c.Queue()))
}

// CheckStore tells that the workers of the task queue have another store, or the store is
// that of another namespace. What can't be known in a moment is not told: a worker looks
// again.
func (c *Connector) CheckStore(ctx context.Context, s *Server, transcripts store.Store) error {
	ctx, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	if err := store.CheckNamespace(ctx, transcripts, s.Namespace); err != nil {
		return err
	}
	recorded, err := signals.ReadStore(ctx, s.Client, c.Queue())
	if err != nil {
		return err
	}
	id, err := store.ReadID(ctx, transcripts)
	if err != nil {
		return err
	}
	return signals.CheckStore(c.Queue(), recorded, signals.StoreRecord{ID: id, Place: store.Location(transcripts)})
}
