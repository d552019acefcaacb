package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/store"
)

// DeleteResult is what a [Client.Delete] did, as a proof for who asked for it.
type DeleteResult struct {
	Session string `json:"session"`
	// Executions are those that Temporal has deleted: of the session's runs and of
	// the runs below it.
	Executions []Execution `json:"executions"`
	// Store is what was deleted of the log, and what other sessions keep of it.
	Store store.DeleteResult `json:"store"`
}

// Execution is one Temporal execution; a run that was continued as new has several.
type Execution struct {
	Session string `json:"session"`
	ID      string `json:"id"`
}

// lookEvery is how often it is looked whether a server has deleted what it was told to.
const lookEvery = 200 * time.Millisecond

// Delete deletes a session with all below it (SESSION/NAME-N): the executions of
// its runs in Temporal, then its log and its state in the store. It returns when
// both have been looked at again and nothing is left, or with the context's end.
// What it did before an error is in the result; then it may be called again.
//
// Nothing is deleted if a head in the store can't be read: [agent.CodeChunkDamaged] and
// [agent.CodeIncompatible], see [store.Log.CheckDelete]. Other errors are [agent.CodeBusy] for a session that has a live run, [agent.CodeNotFound] for
// one that nobody knows, [agent.CodeInvalidInput] for one that has a parent,
// [agent.CodeStale] where a run begins meanwhile, [agent.CodeNotSetUp] without
// [Options.Store] or if the session's workers have another store, [agent.CodeTimeout],
// and those of the server and of [store.Log.Delete].
func (c *Client) Delete(ctx context.Context, session string) (DeleteResult, error) {
	d := deletion{client: c, done: DeleteResult{Session: session, Executions: []Execution{}, Store: store.DeleteResult{Sessions: []string{}, Chunks: []string{}}}}
	err := d.check(ctx)
	if err == nil {
		err = d.temporal(ctx)
	}
	if err == nil {
		err = d.store(ctx)
	}
	if err == nil {
		err = d.verify(ctx)
	}
	if err != nil {
		return d.done, fmt.Errorf("deleting session %s: %w", session, err)
	}
	return d.done, nil
}

// deletion is one Delete in progress.
type deletion struct {
	client    *Client
	namespace string
	done      DeleteResult
}

// check refuses what can't be deleted, before anything is.
func (d *deletion) check(ctx context.Context) error {
	if d.client.log == nil {
		return agent.Errorf(agent.CodeNotSetUp, "its log is stored: %w", ErrNoStore)
	}
	if parent, _, child := strings.Cut(d.done.Session, "/"); child {
		return agent.Errorf(agent.CodeInvalidInput, "it is below session %s, and is deleted with that", parent).WithPath("session")
	}
	if err := agent.CheckSession(d.done.Session); err != nil {
		return err
	}
	err := ctx.Err() // neither of the next two says that the time is over
	if err != nil {
		return durable.FromRPC(err)
	}
	if d.namespace, err = durable.Namespace(ctx, d.client.temporal); err != nil {
		return err
	}
	if err := store.CheckNamespace(ctx, d.client.log.Store(), d.namespace); err != nil {
		return err
	}
	if err := d.sameStore(ctx); err != nil {
		return err
	}
	return d.client.log.CheckDelete(ctx, d.done.Session)
}

// sameStore refuses a store that the session's workers do not have: the session's log is
// elsewhere, and would stay there when Temporal knows nothing of the session any more.
func (d *deletion) sameStore(ctx context.Context) error {
	queue := d.client.taskQueue
	if info, err := d.client.last(ctx, d.done.Session); err == nil {
		queue = info.GetTaskQueue()
	} else if !errors.Is(err, agent.CodeNotFound) {
		return err
	}
	recorded, err := signals.ReadStore(ctx, d.client.temporal, queue)
	if errors.Is(err, agent.CodeNotFound) {
		return nil // no worker has recorded one
	}
	if err != nil {
		return err
	}
	here := d.client.log.Store()
	id, err := store.ReadID(ctx, here)
	if err != nil {
		return err
	}
	return signals.CheckStore(queue, recorded, signals.StoreRecord{ID: id, Place: store.Location(here)})
}

// temporal deletes the executions, until there are none.
func (d *deletion) temporal(ctx context.Context) error {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		left, err := d.left(ctx)
		if err != nil || len(left) == 0 {
			return err
		}
		for _, e := range left {
			if err := d.delete(ctx, e); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return durable.FromRPC(ctx.Err())
		case <-look.C:
		}
	}
}

// left lists the executions that Temporal has: those that its listing finds, and,
// since that may be behind, the last of each session that the store knows.
func (d *deletion) left(ctx context.Context) (left []Execution, err error) {
	sessions := []string{d.done.Session}
	for head, err := range d.client.log.Store().Heads(ctx, d.done.Session+"/") {
		if err == nil {
			sessions = append(sessions, head.Session)
		} else if !errors.Is(err, agent.CodeChunkDamaged) { // Deletable let it pass: it is of no known session
			return nil, err
		}
	}
	for _, session := range sessions {
		info, err := d.client.last(ctx, session)
		switch {
		case errors.Is(err, agent.CodeNotFound):
			continue
		case err != nil:
			return nil, err
		case !durable.Closed(info):
			e := agent.Errorf(agent.CodeBusy, "session %s has a live run (%s); stop or cancel it first", session, info.GetFirstRunId())
			e.Session, e.Run = session, info.GetFirstRunId()
			return nil, e
		}
		left = append(left, Execution{session, info.GetExecution().GetRunId()})
	}
	for info, err := range d.client.executions(ctx, ours+" AND "+within(d.done.Session)) {
		if err != nil {
			return nil, err
		}
		e := Execution{info.GetExecution().GetWorkflowId(), info.GetExecution().GetRunId()}
		if !slices.Contains(left, e) {
			left = append(left, e)
		}
	}
	return left, nil
}

// delete tells the server to delete an execution that is closed. It does so later.
func (d *deletion) delete(ctx context.Context, e Execution) error {
	info, err := (&Run{client: d.client, Session: e.Session}).describe(ctx, e.ID)
	if err == nil && !durable.Closed(info) { // it began since it was looked for
		err = agent.Errorf(agent.CodeBusy, "session %s has a live run (%s); stop or cancel it first", e.Session, info.GetFirstRunId())
	}
	if errors.Is(err, agent.CodeNotFound) {
		return nil // only the listing has it still
	}
	if err != nil {
		return err
	}
	_, err = d.client.temporal.WorkflowService().DeleteWorkflowExecution(ctx, &workflowservice.DeleteWorkflowExecutionRequest{
		Namespace: d.namespace, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: e.Session, RunId: e.ID},
	})
	if gone := (*serviceerror.NotFound)(nil); errors.As(err, &gone) {
		err = nil
	}
	if err == nil && !slices.Contains(d.done.Executions, e) {
		d.done.Executions = append(d.done.Executions, e)
	}
	return durable.FromRPC(err)
}

// store deletes what is stored.
func (d *deletion) store(ctx context.Context) (err error) {
	d.done.Store, err = d.client.log.Delete(ctx, d.done.Session)
	if errors.Is(err, agent.CodeNotFound) && len(d.done.Executions) > 0 {
		return nil // its runs have stored nothing
	}
	return err
}

// verify looks once more in Temporal; the store has looked for itself.
func (d *deletion) verify(ctx context.Context) error {
	left, err := d.left(ctx)
	if errors.Is(err, agent.CodeBusy) || len(left) > 0 {
		return agent.Errorf(agent.CodeStale, "a run of it began while it was deleted: end it, and delete the session again")
	}
	return err
}
