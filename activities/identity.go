package activities

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	"golang.org/x/sync/singleflight"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/store"
)

// Identity refuses a store that is not the one of the task queue: with another one a
// session would go on without what was said in it. The zero value refuses nothing.
type Identity struct {
	Client client.Client
	Store  store.Store
	Queue  string

	mu    sync.Mutex
	seen  time.Time // when the store was last found to be the right one
	looks singleflight.Group
}

// believed is how long a store that was the right one is not looked at again, and
// lookPatience how long a look may take.
const (
	believed     = time.Minute
	lookPatience = 10 * time.Second
)

// Check returns [agent.NotSetUp] if the task queue has another store, with both places.
// The first worker of a task queue records its store. An error with another code tells that
// it can't be known.
func (i *Identity) Check(ctx context.Context) error { return i.check(ctx, 0) }

// soon is Check, and believes what was seen within the last minute.
func (i *Identity) soon(ctx context.Context) error { return i.check(ctx, believed) }

func (i *Identity) check(ctx context.Context, within time.Duration) error {
	if i == nil || i.Client == nil {
		return nil
	}
	i.mu.Lock()
	known := time.Since(i.seen) < within
	i.mu.Unlock()
	if known {
		return nil
	}
	// All workers meet at one workflow: those of this process share a look.
	look := i.looks.DoChan("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookPatience)
		defer cancel()
		return nil, i.look(ctx)
	})
	select {
	case done := <-look:
		return done.Err
	case <-ctx.Done():
		return durable.ArriveRPC(ctx.Err())
	}
}

// look compares the store with the one that is recorded.
func (i *Identity) look(ctx context.Context) error {
	id, err := i.Store.ID(ctx)
	if err != nil {
		return err
	}
	mine := signals.StoreRecord{ID: id, Place: store.Place(i.Store)}
	r, err := signals.RecordStore(ctx, i.Client, i.Queue, mine)
	if err != nil {
		return err
	}
	if err := signals.OtherStore(i.Queue, r, mine); err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.seen = time.Now()
	return nil
}

// before tells that a session without a head has a run in Temporal that had one: the store
// has lost it, and the session must not begin anew as if nothing had been said.
func (d *Deeds) before(ctx context.Context, in OpenInput) error {
	if in.Child || d.Client == nil {
		return nil
	}
	if err := d.Identity.Check(ctx); err != nil { // an empty folder may stand where the store was
		return err
	}
	missed, err := d.stored(ctx, in)
	if missed == "" || err != nil {
		return err
	}
	return agent.Errorf(agent.ChunkMissing, "session %s has run %s in Temporal, and nothing in the store %s: what was said in it is missing. Look whether the store was restored, emptied or replaced; fermata delete %s lets the session begin anew",
		in.Session, missed, store.Place(d.Log.Store()), in.Session)
}

// stored finds the session's last run before one that has written to the store; empty if
// there is none, as far as Temporal knows. Those between failed before they could.
func (d *Deeds) stored(ctx context.Context, in OpenInput) (run string, err error) {
	for run = in.After; run != ""; {
		state, err := d.machine(ctx, in.Session, run)
		switch {
		case errors.Is(err, agent.NotFound):
			return "", nil // Temporal has forgotten it meanwhile
		case err != nil:
			return "", err
		case state.Log.Version > 0:
			return run, nil
		case state.Origin.Start == nil:
			return "", nil
		}
		run = state.Origin.Start.After
	}
	return "", nil
}
