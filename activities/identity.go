package activities

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	"golang.org/x/sync/singleflight"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/store"
)

// Identity refuses a store that is not the task queue's. With another store a session
// would continue without its history. The zero value refuses nothing. It is safe for
// concurrent use.
type Identity struct {
	Client client.Client
	Store  store.Store
	Queue  string

	mu        sync.Mutex
	checkedAt time.Time // when the store and its namespace were last found right
	checkedID string    // the store's identity then
	looks     singleflight.Group

	namespace string // of the client, once known; only one look runs at a time
}

// identityCheckAge is how long a store that was right is not checked again, and
// identityTimeout how long a check may take.
const (
	identityCheckAge = time.Minute
	identityTimeout  = 10 * time.Second
)

// Check returns [agent.CodeNotSetUp], with both places, if the task queue has another
// store, or if the store belongs to another namespace. The first worker of a task queue
// records its store there, and the first user of a store records its namespace. Any other
// code means that the answer is unknown. It reads the store's identity each time, and what
// Temporal has recorded at most once a minute.
func (i *Identity) Check(ctx context.Context) error {
	if i == nil || i.Client == nil {
		return nil
	}
	if known := i.checked(); known != "" {
		soon, cancel := context.WithTimeout(ctx, identityTimeout)
		id, err := store.ReadID(soon, i.Store)
		if cancel(); err == nil && id == known {
			return nil
		}
	}
	return i.lookOnce(ctx)
}

// checkCached is Check, but trusts a result of the last minute.
func (i *Identity) checkCached(ctx context.Context) error {
	if i == nil || i.Client == nil || i.checked() != "" {
		return nil
	}
	return i.lookOnce(ctx)
}

// checked returns the identity of the store that was right within the last minute; empty if
// none was.
func (i *Identity) checked() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	if time.Since(i.checkedAt) < identityCheckAge {
		return i.checkedID
	}
	return ""
}

// lookOnce is look for all that ask meanwhile.
func (i *Identity) lookOnce(ctx context.Context) error {
	// All workers meet at one workflow: those of this process share a look.
	look := i.looks.DoChan("", func() (any, error) {
		// The check is shared, so the end of one caller's context must not end it for the
		// others.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), identityTimeout)
		defer cancel()
		return nil, i.look(ctx)
	})
	select {
	case done := <-look:
		return done.Err
	case <-ctx.Done():
		return durable.FromRPC(ctx.Err())
	}
}

// look compares the store with the recorded one, and its namespace with the client's.
func (i *Identity) look(ctx context.Context) error {
	recorded, err := signals.ReadStore(ctx, i.Client, i.Queue)
	first := errors.Is(err, agent.CodeNotFound)
	if err != nil && !first {
		return err
	}
	mine := signals.StoreRecord{Place: store.Location(i.Store)}
	if mine.ID, err = store.ReadID(ctx, i.Store); err != nil {
		return err
	}
	if !first {
		if err := signals.CheckStore(i.Queue, recorded, mine); err != nil {
			return err // and the store is left unchanged: it may be somebody else's
		}
	}
	if i.namespace == "" {
		if i.namespace, err = durable.Namespace(ctx, i.Client); err != nil {
			return err
		}
	}
	// Before the record: a worker of another namespace would leave a record that refuses
	// the right store.
	if err := store.ClaimNamespace(ctx, i.Store, i.namespace); err != nil {
		return err
	}
	if first {
		if mine.ID, err = store.ID(ctx, i.Store); err != nil {
			return err
		}
		if err := i.record(ctx, mine); err != nil {
			return err
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.checkedAt, i.checkedID = time.Now(), mine.ID
	return nil
}

// record makes the store the task queue's, unless another worker was faster.
func (i *Identity) record(ctx context.Context, mine signals.StoreRecord) error {
	recorded, err := signals.RecordStore(ctx, i.Client, i.Queue, mine)
	if err != nil {
		return err
	}
	return signals.CheckStore(i.Queue, recorded, mine)
}

// checkStoreKnows returns [agent.CodeChunkMissing] if Temporal has a run of the session
// whose log the store lacks, wholly or at its end. Then the store was emptied, restored,
// or is a copy of one that other workers write. The session must not continue as if nothing
// had been said.
func (d *Activities) checkStoreKnows(ctx context.Context, in OpenInput, head store.Head) error {
	// A child's session is its own; an import brings its log with it.
	if in.Child || d.Client == nil || head.Import != "" {
		return nil
	}
	has := "not its end"
	if head.Version == 0 {
		has = "nothing"
		if err := d.Identity.Check(ctx); err != nil { // an empty folder may stand where the store should be
			return err
		}
	}
	missed, knows, err := d.lastUnstoredRun(ctx, in, head)
	if missed == "" || err != nil {
		return err
	}
	switch {
	case head.Version == 0:
	case knows.Head == "":
		return nil
	case head.Version < knows.Version && store.IsEncrypted(d.Log.Store()): // versions only grow, so somebody has put an older head back
		has = "an older head"
	default:
		if _, err := d.Log.Store().ChunkStart(ctx, knows.Head, 1); !errors.Is(err, agent.CodeChunkMissing) {
			return err
		}
	}
	return agent.Errorf(agent.CodeChunkMissing, "session %s has run %s in Temporal, and the store %s has %s: what was said in it is missing. Look whether the store was restored, emptied, replaced, or copied while workers wrote to the other copy; fermata delete %s lets the session begin anew",
		in.Session, missed, store.Location(d.Log.Store()), has, in.Session)
}

// lastUnstoredRun returns the session's last earlier run that has written to the store,
// and what it knows of the stored log. It returns no run if the head has that log, or if
// Temporal knows of no such run.
//
// Runs in between failed before they wrote: a schedule may leave one for each tick, over
// days. A run that this build cannot replay may have written, so the search ends there;
// recover says what is lost. The same holds for a run that no worker answers for, if the
// store has the session.
func (d *Activities) lastUnstoredRun(ctx context.Context, in OpenInput, head store.Head) (run string, knows loop.Log, err error) {
	for run = in.After; run != "" && !(run == head.Run && head.Status.Ended()); {
		if in.onRun != nil {
			in.onRun(run)
		}
		execution := run
		if run == head.Run {
			execution = cmp.Or(head.Execution, run) // after a reset, the run continued in another execution
		}
		last, _, err := d.lastOf(ctx, in.Session, execution)
		if last == "" || err != nil {
			return "", knows, err // Temporal has removed it meanwhile
		}
		state, err := d.machineState(ctx, in.Session, last)
		switch {
		case errors.Is(err, agent.CodeNotFound):
			return "", knows, nil
		case errors.Is(err, agent.CodeInvalidInput), errors.Is(err, agent.CodeIncompatible), head.Version > 0 && in.attempts >= recoverTries && mayPass(err):
			return run, knows, nil
		case err != nil:
			return "", knows, err
		case run == head.Run && state.Log.Version <= head.Version:
			return run, knows, nil // the store has all that the run knew to be stored, and maybe more
		case state.Log.Version > 0:
			return run, state.Log, nil
		case state.Origin.Start == nil:
			return "", knows, nil
		}
		run = state.Origin.Start.After
	}
	return "", knows, nil
}
