package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/export"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/store"
)

// ImportOptions says how a session is imported. Keys is required.
type ImportOptions struct {
	// Keys verify: that of the one that signed has to be among them. Old ones may stay.
	Keys signals.Keys
	// By is who imports: a claim, recorded as one.
	By string
}

// Import makes an exported session live here, once. A suspended run comes up
// suspended, as a new run with the same suspension and the same requests; its
// deadlines stay, and what has passed decides at once. Of a session at an end the
// log is brought, and its next run goes on there.
//
// Import returns when a worker has taken the run up, or refused it. It is refused,
// in this order and before anything is changed, with [agent.CodeNotSetUp] without keys
// or a store, [agent.CodeInvalidInput] for what is no export, [agent.CodeBadSignature],
// [agent.CodeIncompatible] for one of a newer version, [agent.CodeExpired], [agent.CodeUsed]
// where it was imported into this store before, [agent.CodeBusy] where the session has
// a live run here, and [agent.CodeStale] where it has a log of its own. Later errors are
// those of the store and of a start, [agent.CodeUnknownAgent], [agent.CodeUnknownModel] and
// [agent.CodeIncompatible] where the worker's build does not have what the run needs,
// and [agent.CodeBadSignature] where it lacks the key. After any of these the same file
// can be imported again; so it can after [agent.CodeTimeout], which tells that no worker
// came before the context ended, unless one comes later.
func (c *Client) Import(ctx context.Context, file io.ReadSeeker, o *ImportOptions) (ExportInfo, error) {
	o = cmp.Or(o, &ImportOptions{})
	if len(o.Keys) == 0 {
		return ExportInfo{}, agent.Errorf(agent.CodeNotSetUp, "import refused: there is no key to verify with; there is none by default")
	}
	if c.log == nil {
		return ExportInfo{}, agent.Errorf(agent.CodeNotSetUp, "importing a session: %w", ErrNoStore)
	}
	f, err := export.Read(file, o.Keys)
	if err == nil {
		err = f.Fresh(time.Now())
	}
	if err != nil {
		return ExportInfo{}, err
	}
	a := importRun{Client: c, file: f, by: o.By}
	if err := a.run(ctx); err != nil {
		return ExportInfo{}, fmt.Errorf("importing session %s: %w", f.Session, err)
	}
	return exported(f.Content, a.chunks), nil
}

// importRun is one Import in progress.
type importRun struct {
	*Client
	file   *export.File
	by     string
	chunks int
}

func (a *importRun) run(ctx context.Context) error {
	before, again, err := a.unused(ctx)
	if err != nil {
		return err
	}
	for p, err := range a.file.Chunks() {
		if err == nil {
			err = a.log.Store().PutChunk(ctx, p.Digest, p.Data)
		}
		if err != nil {
			return err
		}
		a.chunks++
	}
	if err := a.log.Adopt(ctx, a.file.Session, a.file.Head.Digest); err != nil {
		return err
	}
	now := time.Now().UTC().Truncate(time.Millisecond)
	head := a.file.Head
	head.Version, head.Fence, head.Imported, head.Updated = before.Version+1, before.Fence.After(now.UnixMicro()), a.file.ID, now
	head.Fence.N, head.Fence.By = 1, a.file.ID
	if len(a.file.State) > 0 {
		if head.Import, err = a.log.PutBlob(ctx, a.file.Session, a.file.Envelope); err != nil {
			return err
		}
	}
	if !again {
		if err := a.claim(ctx, head); err != nil {
			return err
		}
	}
	if head.Import == "" {
		return nil
	}
	run, err := a.start(ctx, a.file.Session, agent.Start{V: agent.Version, Agent: a.file.Agent, By: a.by, Import: head.Import})
	if errors.Is(err, agent.CodeBusy) {
		err = a.usedError() // somebody else has imported it at the same time
	}
	if err != nil {
		return err
	}
	return a.taken(ctx, run)
}

// unused refuses a session that is here already, and returns where it stands. again
// tells that it came with this very file, and that no run has taken it up: the import
// was cut short, or refused by a worker.
func (a *importRun) unused(ctx context.Context) (head store.Head, again bool, err error) {
	head, err = a.log.Head(ctx, a.file.Session)
	none := errors.Is(err, agent.CodeNotFound) && len(head.Claims) == 0
	switch {
	case err != nil && !errors.Is(err, agent.CodeNotFound):
		return head, false, err
	case !none && head.Imported == a.file.ID && head.Import == "":
		return head, false, a.usedError()
	}
	err = a.checkNoOpenRun(ctx, a.file.Session)
	if errors.Is(err, agent.CodeBusy) { // it may be of this very file, and began just now
		if now, readErr := a.log.Head(ctx, a.file.Session); readErr == nil && now.Imported == a.file.ID {
			return head, false, a.usedError()
		}
		return head, false, agent.Errorf(agent.CodeBusy, "import refused: session %s has a live run here", a.file.Session)
	}
	if again = !none && head.Imported == a.file.ID; err != nil || none || again {
		return head, again, err
	}
	return head, false, a.other()
}

func (a *importRun) usedError() error {
	return agent.Errorf(agent.CodeUsed, "import refused: the export %s is used; session %s lives here", a.file.ID, a.file.Session)
}

func (a *importRun) other() error {
	return agent.Errorf(agent.CodeStale, "import refused: there is a session %s in the store, with a log of its own; delete it first, or use another store", a.file.Session)
}

// claim makes the session this import's own: of several at once one does.
func (a *importRun) claim(ctx context.Context, head store.Head) error {
	_, err := a.log.SwapHead(ctx, head)
	if !errors.Is(err, agent.CodeStale) {
		return err
	}
	if now, readErr := a.log.Head(ctx, head.Session); readErr == nil && now.Imported == head.Imported {
		return a.usedError()
	}
	return a.other()
}

// takenInterval is how often an import looks whether its run was taken up.
const takenInterval = 100 * time.Millisecond

// taken waits until the run goes on from the claimed head, or was refused: then
// nothing of it is stored.
func (a *importRun) taken(ctx context.Context, run *Run) error {
	look := time.NewTicker(takenInterval)
	defer look.Stop()
	for {
		info, err := run.execution(ctx)
		if err == nil && durable.Closed(info) {
			return a.refused(ctx, run)
		}
		var head store.Head
		if err == nil {
			head, err = a.log.Head(ctx, run.Session)
		}
		if err == nil && head.Import == "" {
			return nil
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the run is started, and no worker has taken it up yet: %w", durable.FromRPC(ctx.Err()))
		case <-look.C:
		}
	}
}

// refused is why a run that has closed did not take up what it came with; nil
// where it did, and has ended since.
func (a *importRun) refused(ctx context.Context, run *Run) error {
	head, err := a.log.Head(ctx, run.Session)
	if err != nil || head.Import == "" {
		return err
	}
	out, err := run.Result(ctx)
	if err != nil {
		return err
	}
	return out.Err()
}
