package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/live"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/store"
)

// reader reads the log of a session: what is sealed from the store, and what is
// not from the run that lives. It is used by one goroutine.
type reader struct {
	client  *Client
	session string
	after   int64  // what the one who reads has already
	only    string // the run with which reading ends; empty for none
	follow  bool
	patient bool // a worker that is away is waited for
	live    *live.Subscription
	yield   func(Event, error) bool

	seq   int64  // the last event that was read
	run   string // whose event that was
	begun int64  // where that run began, as far as was read
	head  string // the last chunk that was read
	gate  liveOrder
	over  bool // the one who reads has had enough, or all
}

// tell reports why reading ended, if not by itself.
func (r *reader) tell(err error) {
	if err != nil && !r.over {
		r.yield(Event{}, fmt.Errorf("reading the events of session %s: %w", r.session, err))
	}
}

// read reads what is stored, and then, as often as there is reason to, what the
// session's last execution has.
func (r *reader) read(ctx context.Context) error {
	if _, err := r.stored(ctx); err != nil || r.over {
		return err
	}
	w := &watch{looks: newPollTimer()}
	defer w.looks.stop()
	defer w.end()
	for {
		was := r.seq
		err := r.look(ctx, w)
		if r.seq > was {
			w.looks.begin()
		}
		if ctx.Err() != nil {
			err = durable.FromRPC(ctx.Err()) // a call that is cut off has many names
		}
		if r.over || err != nil || !r.follow {
			return err
		}
		if err := r.wait(ctx, w); err != nil || r.over {
			return err
		}
	}
}

// look reads what is new in the session's last execution, or in the one run.
func (r *reader) look(ctx context.Context, w *watch) error {
	info, err := w.grown(), error(nil)
	if info == nil {
		info, err = r.execution(ctx)
	}
	w.woken = false
	if errors.Is(err, agent.CodeNotFound) && r.seq > 0 {
		// Temporal has forgotten it: what is stored is all.
		r.over = r.only != ""
		return r.known()
	}
	if err != nil || w.seen(info) {
		return err
	}
	err = r.catchUp(ctx, info, w.history)
	if r.patient && errors.Is(err, agent.CodeNoWorker) {
		return nil // it is not seen
	}
	if err != nil || r.over {
		return err
	}
	w.read = info
	if r.only != "" && (durable.Closed(info) || info.GetFirstRunId() != r.only) {
		r.over = true
	}
	return r.known()
}

// execution finds the one run's latest execution, or the session's.
func (r *reader) execution(ctx context.Context) (*workflowpb.WorkflowExecutionInfo, error) {
	if r.only == "" {
		return r.client.last(ctx, r.session)
	}
	return (&Run{client: r.client, Session: r.session, ID: r.only}).execution(ctx)
}

// known refuses a cursor that nobody was ever given.
func (r *reader) known() error {
	if r.after > r.seq {
		r.over = false
		return signals.CursorBeyondEnd(r.after, r.seq)
	}
	return nil
}

// wait waits for a reason to look: the history grows or ends, or, since a notice
// may be lost in the server, some time has gone by. What comes live meanwhile is
// handed on.
func (r *reader) wait(ctx context.Context, w *watch) error {
	w.begin(r.client, r.session)
	var ready <-chan struct{}
	if r.live != nil {
		ready = r.live.Ready()
	}
	for !r.over {
		select {
		case <-ctx.Done():
			return durable.FromRPC(ctx.Err())
		case <-ready:
			r.hear()
		case _, more := <-w.news:
			w.heard(more)
			return nil
		case <-w.looks.due():
			w.looked()
			return nil
		}
	}
	return nil
}

// catchUp reads what is new of an execution: from the store, where all of it is
// there, else from the run and, where that was sealed meanwhile, from the store.
// Readers of one history ask the run together.
func (r *reader) catchUp(ctx context.Context, info *workflowpb.WorkflowExecutionInfo, history *follower) error {
	if durable.Closed(info) {
		head, err := r.stored(ctx)
		if err != nil || r.over || head.Run == info.GetFirstRunId() && head.Status.Ended() {
			return err
		}
	}
	for more := true; more && !r.over; {
		tail, err := r.tail(ctx, info, history)
		if err != nil {
			return err
		}
		if len(tail.Events) == 0 || tail.Events[0].Seq > r.seq+1 {
			if err := r.sealed(ctx, tail.Head); err != nil || r.over {
				return err
			}
		}
		if err := r.hand(tail.Events, info.GetFirstRunId()); err != nil {
			return err
		}
		more = tail.More
	}
	return nil
}

// tail is what the run has open behind what was read. Of a run that is new to the reader
// it is all that is open, to see that it goes on where the reader is.
func (r *reader) tail(ctx context.Context, info *workflowpb.WorkflowExecutionInfo, history *follower) (signals.OpenTail, error) {
	from := r.seq
	if r.run != info.GetFirstRunId() {
		from = min(from, r.begun)
	}
	ask := func() (signals.OpenTail, error) { return r.ask(ctx, info, from) }
	if history == nil || history.execution != info.GetExecution().GetRunId() {
		return signals.Settled(ctx, r.client.temporal, r.session, info, ask)
	}
	return history.tail(ctx, from, info, ask)
}

// ask asks once.
func (r *reader) ask(ctx context.Context, info *workflowpb.WorkflowExecutionInfo, from int64) (signals.OpenTail, error) {
	tail, err := signals.Tail.Ask(ctx, r.client.temporal, r.session, info.GetExecution().GetRunId(), signals.TailArgs{Seq: from})
	if ctx.Err() == nil && unanswered(err) {
		err = agent.Errorf(agent.CodeNoWorker, "no worker answers for what the run has not stored yet: %w", err)
	}
	return tail, err
}

// unanswered reports whether a query found nobody in its time, or a worker that
// stopped just then.
func unanswered(err error) bool {
	var cut *serviceerror.Canceled
	return errors.Is(err, agent.CodeTimeout) || errors.As(err, &cut)
}

// stored reads what the session's head in the store knows of.
func (r *reader) stored(ctx context.Context) (head store.Head, err error) {
	if r.client.log == nil {
		return head, nil
	}
	head, err = r.client.settledHead(ctx, r.session)
	if errors.Is(err, agent.CodeNotFound) {
		return head, nil
	}
	if err != nil {
		return head, err
	}
	return head, r.sealed(ctx, head.Digest)
}

// settledHead is a session's head, or [agent.CodeNotFound] where it tells of an end that
// Temporal does not know of yet: it was stored within a task that may still be lost, and
// done in another way.
func (c *Client) settledHead(ctx context.Context, session string) (head store.Head, err error) {
	for known := int64(0); ; known = head.Version {
		head, err = c.log.Head(ctx, session)
		if err != nil || !head.Status.Ended() || head.Version == known || c.temporal == nil {
			return head, err
		}
		d, err := c.temporal.DescribeWorkflowExecution(ctx, session, cmp.Or(head.Execution, head.Run))
		switch {
		case errors.As(err, new(*serviceerror.NotFound)):
			return head, nil
		case err != nil:
			return store.Head{}, durable.FromRPC(err)
		case !durable.Closed(d.GetWorkflowExecutionInfo()):
			return store.Head{}, agent.Errorf(agent.CodeNotFound, "run %s of session %s is not at its end yet", head.Run, session)
		}
	}
}

// sealed reads a chain of chunks, from the one on that has the last event that
// is known.
func (r *reader) sealed(ctx context.Context, digest string) error {
	if digest == "" || digest == r.head {
		return nil
	}
	if r.client.log == nil {
		return agent.Errorf(agent.CodeNotSetUp, "a part of them is stored: %w", ErrNoStore)
	}
	chunks, err := r.client.log.Since(ctx, digest, max(r.seq, r.after))
	if err != nil {
		return err
	}
	for _, c := range chunks {
		if r.seq == 0 && len(c.Events) > 0 {
			r.seq = c.Events[0].Seq - 1
			r.begun = r.seq
		}
		if err := r.hand(c.Events, c.Run); err != nil || r.over {
			return err
		}
	}
	r.head = digest
	return nil
}

// hand hands on what is new among events that follow each other. run is whose
// they are where nothing before tells.
func (r *reader) hand(events []agent.Event, run string) error {
	if r.run == "" && len(events) > 0 { // a run that has not opened yet may begin with another's log
		r.run = run
	}
	for _, e := range events {
		switch {
		case e.Seq <= r.seq && e.Started != nil && e.Seq > r.begun:
			return agent.Errorf(agent.CodeStale, "the events after %d that this reader saw were never stored, because their run was terminated first; read again after %q", e.Seq-1, agent.Cursor(e.Seq-1))
		case e.Seq <= r.seq:
			continue
		case e.Seq > r.seq+1:
			return agent.Errorf(agent.CodeChunkMissing, "events %d to %d are neither in the store nor in the run: restore the store from a backup", r.seq+1, e.Seq-1)
		case e.Started != nil && r.only != "" && r.run == r.only && e.Started.Run != r.only:
			r.over = true
			return nil
		}
		r.pass(e)
		if r.over {
			return nil
		}
	}
	return nil
}

// pass passes one event, and what is live before it and behind.
func (r *reader) pass(e agent.Event) {
	r.hear()
	if r.seq = e.Seq; e.Started != nil {
		r.run, r.begun = e.Started.Run, e.Seq
	}
	if e.Seq > r.after && !r.over {
		r.over = !r.yield(Event{Event: e, Session: r.session, Run: r.run}, nil)
	}
	if r.live != nil {
		r.gate.seen(e, r.run)
		r.release(r.gate.due())
	}
}

// hear takes what has come live, and hands on what belongs here.
func (r *reader) hear() {
	if r.live == nil || r.over {
		return
	}
	for _, l := range r.live.Take() {
		r.gate.add(l)
	}
	r.release(r.gate.due())
}

// release hands on live events that are in their place.
func (r *reader) release(list []live.Event) {
	for _, l := range list {
		if r.over {
			return
		}
		r.over = !r.yield(Event{Event: agent.Event{Type: l.Type, Time: l.Time, Turn: l.Turn}, Session: l.Session, Run: l.Run, Live: &l}, nil)
	}
}
