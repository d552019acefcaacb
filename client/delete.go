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

// DeleteResult says what [Client.Delete] deleted, as a proof for who asked for it.
type DeleteResult struct {
	Session string `json:"session"`
	// Executions are the Temporal executions that were deleted: of the session's runs and
	// of all runs below them.
	Executions []Execution `json:"executions"`
	// Store says what was deleted from the store, and what is kept because other sessions
	// share it.
	Store store.DeleteResult `json:"store"`
}

// Execution is one Temporal execution. A run that continued as new has several.
type Execution struct {
	Session string `json:"session"`
	ID      string `json:"id"`
}

// lookEvery is the time between two checks whether the server has deleted the executions:
// it does so later.
const lookEvery = 200 * time.Millisecond

// Delete deletes a session and all sessions below it (SESSION/NAME-N). It deletes the
// executions in Temporal first, then the log and the state in the store. It returns when
// a second look finds nothing left, or when the context ends. After an error, the result
// says what was deleted so far, and Delete may be called again.
//
// If a head in the store can't be read, nothing is deleted: the error is
// [agent.CodeChunkDamaged] or [agent.CodeIncompatible], see [store.Log.CheckDelete].
// Other errors are [agent.CodeBusy] if the session has a live run, [agent.CodeNotFound]
// if nobody knows the session, [agent.CodeInvalidInput] if it has a parent, and
// [agent.CodeStale] if a run began meanwhile. [agent.CodeNotSetUp] means that
// [Options.Store] is missing, or that the workers have another store. [agent.CodeTimeout]
// and the errors of the server and of [store.Log.Delete] are possible too.
func (c *Client) Delete(ctx context.Context, session string) (DeleteResult, error) {
	d := deletion{client: c, done: DeleteResult{Session: session, Executions: []Execution{}, Store: store.DeleteResult{Sessions: []string{}, Chunks: []string{}}}}
	if err := d.do(ctx); err != nil {
		return d.done, fmt.Errorf("deleting session %s: %w", session, err)
	}
	return d.done, nil
}

func (d *deletion) do(ctx context.Context) error {
	err := d.check(ctx)
	// Temporal first: left needs the store's heads to find the executions of all sessions.
	if err == nil {
		err = d.temporal(ctx)
	}
	if err == nil {
		err = d.store(ctx)
	}
	if err == nil {
		err = d.verify(ctx)
	}
	return err
}

// deletion is one Delete in progress.
type deletion struct {
	client    *Client
	version   int64 // of the head that was read; zero means any
	namespace string
	done      DeleteResult
}

// check refuses what can't be deleted before anything is deleted.
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
	err := ctx.Err() // neither of the next two calls reports that the context has ended
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

// sameStore refuses a store that the session's workers do not use. The log is in the
// workers' store. It would stay there after Temporal has forgotten the session.
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

// temporal deletes the executions until none is left.
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

// left returns the executions that Temporal still has: those that its listing finds, and
// the last one of each session in the store. The listing alone may be behind.
func (d *deletion) left(ctx context.Context) (left []Execution, err error) {
	sessions := []string{d.done.Session}
	for head, err := range d.client.log.Store().Heads(ctx, d.done.Session+"/") {
		if err == nil {
			sessions = append(sessions, head.Session)
		} else if !errors.Is(err, agent.CodeChunkDamaged) { // CheckDelete accepted it: no known session has it
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

// delete asks the server to delete a closed execution. The server does it later.
func (d *deletion) delete(ctx context.Context, e Execution) error {
	info, err := (&Run{client: d.client, Session: e.Session}).describe(ctx, e.ID)
	if err == nil && !durable.Closed(info) { // it began after the listing
		err = agent.Errorf(agent.CodeBusy, "session %s has a live run (%s); stop or cancel it first", e.Session, info.GetFirstRunId())
	}
	if errors.Is(err, agent.CodeNotFound) {
		return nil // only the listing still has it
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

// store deletes the session from the store.
func (d *deletion) store(ctx context.Context) (err error) {
	d.done.Store, err = d.client.log.DeleteVersion(ctx, d.done.Session, d.version)
	if errors.Is(err, agent.CodeNotFound) && len(d.done.Executions) > 0 {
		return nil // its runs never stored anything
	}
	return err
}

// verify looks once more in Temporal. [store.Log.Delete] has verified the store itself.
func (d *deletion) verify(ctx context.Context) error {
	left, err := d.left(ctx)
	if errors.Is(err, agent.CodeBusy) || len(left) > 0 {
		return agent.Errorf(agent.CodeStale, "a run of it began while it was deleted: end it, and delete the session again")
	}
	return err
}
