package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/export"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/store"
)

// ImportOptions configures an import. Keys is required.
type ImportOptions struct {
	// Keys verify the signature. The signer's key has to be among them; old keys may
	// stay.
	Keys signals.Keys
	// By says who imports, and who gives the answers. It is logged, and not authenticated.
	By string
	// Answers decide open requests of the suspended run, all or none, as the first thing
	// that happens to it here; nil answers none. A request that names approvers, or whose
	// answer a policy binds, needs a token, which is made for the run here: answer it after
	// the import. So does an answer with files.
	Answers []agent.AnswerTo
}

// Import makes an exported session live in this namespace and store, once. A suspended
// run becomes a new run with the same suspension and the same requests. Its deadlines
// stay, and those that have passed decide at once, unless Answers has decided before. If
// the exported run had ended, only the log is imported, and the session's next run
// continues from it.
//
// Import returns when a worker has taken over the run, or refused it. The following
// refusals come in this order, before anything is changed: [agent.CodeNotSetUp] without
// keys or a store, [agent.CodeInvalidInput] and [agent.CodeTooLarge] for an answer that is
// blank, too long or malformed, [agent.CodeInvalidInput] if the file is no export,
// [agent.CodeBadSignature], [agent.CodeIncompatible] for a newer version,
// [agent.CodeExpired], the errors of [Client.AnswerAll] for an answer that does not fit
// what the run waits for, [agent.CodeUsed] if the file was imported into this store
// before, [agent.CodeBusy] if the session has a live run here, and [agent.CodeStale] if
// it has its own log here.
//
// Later errors are those of the store and of a start. [agent.CodeUnknownAgent],
// [agent.CodeUnknownModel] and [agent.CodeIncompatible] mean that the worker's build
// lacks what the run needs, and [agent.CodeBadSignature] that the worker lacks the key.
// After any of these the same file can be imported again. [agent.CodeTimeout] means that
// no worker came before the context ended. The file can then be imported again too,
// unless a worker comes later.
func (c *Client) Import(ctx context.Context, file io.ReadSeeker, o *ImportOptions) (ExportInfo, error) {
	o = cmp.Or(o, &ImportOptions{})
	if len(o.Keys) == 0 {
		return ExportInfo{}, agent.Errorf(agent.CodeNotSetUp, "import refused: there is no key to verify with; there is none by default")
	}
	if c.log == nil {
		return ExportInfo{}, agent.Errorf(agent.CodeNotSetUp, "importing a session: %w", ErrNoStore)
	}
	answers, err := answersOf(o)
	if err != nil {
		return ExportInfo{}, fmt.Errorf("import refused: %w", err)
	}
	f, err := export.Read(file, o.Keys)
	now := time.Now()
	if err == nil {
		err = f.Fresh(now)
	}
	if err == nil {
		err = f.CheckAnswers(now, o.By, answers)
	}
	if err != nil {
		return ExportInfo{}, err
	}
	a := importRun{Client: c, file: f, by: o.By, answers: answers}
	if err := a.run(ctx); err != nil {
		return ExportInfo{}, fmt.Errorf("importing session %s: %w", f.Session, err)
	}
	return exported(f.Content, a.chunks), nil
}

// startFrame is more than what a start has beside its answers, in bytes.
const startFrame = 1 << 10

// answersOf returns the answers as the start of the run has them. An error is about the answers
// alone: nothing is known yet of what they answer.
func answersOf(o *ImportOptions) ([]agent.AnswerTo, error) {
	if len(o.Answers) == 0 {
		return nil, nil
	}
	order := agent.AnswersCommand{CommandHeader: agent.CommandHeader{By: o.By}, Answers: make([]agent.AnswerTo, len(o.Answers))}
	for i, a := range o.Answers {
		order.Answers[i], _ = about(a)
	}
	size, err := checkCommand(order)
	if err == nil && size > agent.MaxPayload-startFrame {
		err = agent.Errorf(agent.CodeTooLarge, "answers have %d bytes; at most %d come with an import", size, agent.MaxPayload-startFrame)
	}
	if err == nil {
		err = signals.CheckImportAnswers(order.Answers)
	}
	return order.Answers, err
}

// importRun is one Import in progress.
type importRun struct {
	*Client
	file    *export.File
	by      string
	answers []agent.AnswerTo
	chunks  int
}

// put stores a chunk of the export. One without data is a file that was missing there. If it is here,
// and another session's, then the export would get bytes that its writer did not have.
func (a *importRun) put(ctx context.Context, p store.Packed) error {
	if len(p.Data) > 0 {
		return a.log.Store().PutChunk(ctx, p.Digest, p.Data)
	}
	if strings.HasPrefix(p.Digest, store.ChunkPrefix(a.file.Session)) {
		return nil
	}
	_, err := a.log.Store().ChunkStart(ctx, p.Digest, 1)
	switch {
	case errors.Is(err, agent.CodeChunkMissing):
		return nil
	case err != nil:
		return err
	}
	return agent.Errorf(agent.CodeInvalidInput, "import refused: session %s shows a file of another session, and the export does not have its bytes", a.file.Session)
}

func (a *importRun) run(ctx context.Context) error {
	before, again, err := a.unused(ctx)
	if err != nil {
		return err
	}
	// Chunks before the head: a head must never name a chunk that is not there.
	for p, err := range a.file.Chunks() {
		if err == nil {
			err = a.put(ctx, p)
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
	head.Counters.Principal, head.Memory = "", nil // a memory stays where it is, and is its principal's
	head.Counters.Grants = nil                     // what was approved there is asked for here
	// A higher fence than the old head's, so that a late write of an earlier run here is
	// refused.
	head.Version, head.Fence, head.Imported, head.Updated = before.Version+1, before.Fence.After(now.UnixMicro()), a.file.ID, now
	head.Fence.N, head.Fence.By = 1, a.file.ID
	if len(a.file.State) > 0 {
		if head.Import, err = a.log.PutBlob(ctx, a.file.Session, a.file.Envelope); err != nil {
			return err
		}
	}
	// A repeated import finds its own claim, and only has to start the run.
	if !again {
		if err := a.claim(ctx, head); err != nil {
			return err
		}
	}
	if head.Import == "" {
		return nil
	}
	run, err := a.start(ctx, a.file.Session, agent.Start{V: agent.Version, Agent: a.file.Agent, By: a.by, Import: head.Import, Answers: a.answers}, nil)
	if errors.Is(err, agent.CodeBusy) {
		err = a.usedError() // somebody else imported it at the same time
	}
	if err != nil {
		return err
	}
	return a.taken(ctx, run)
}

// unused refuses a session that exists here already, and returns its head. again is true
// if it was made by this very file and no run has taken over yet: an import was
// interrupted, or a worker refused it.
func (a *importRun) unused(ctx context.Context) (head store.Head, again bool, err error) {
	head, err = a.log.Vacate(ctx, a.file.Session)
	none := errors.Is(err, agent.CodeNotFound) && len(head.Claims) == 0
	switch {
	case err != nil && !errors.Is(err, agent.CodeNotFound):
		return head, false, err
	case !none && head.Imported == a.file.ID && head.Import == "":
		return head, false, a.usedError()
	}
	err = a.checkNoOpenRun(ctx, a.file.Session)
	if errors.Is(err, agent.CodeBusy) { // it may be this very import, which began just now
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

// claim writes the session's head for this import. Of several imports at once, one
// succeeds.
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

// takenInterval is the time between two checks whether the run was taken over.
const takenInterval = 100 * time.Millisecond

// taken waits until the run has taken over the claimed head, or was refused. After a
// refusal nothing of the run is stored.
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
		// The run clears Import with its first write.
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

// refused returns why a closed run did not take over the head; nil if it did and has
// ended since.
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
