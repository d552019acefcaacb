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

// reader reads the log of a session: sealed events from the store, and the others from
// the live run. One goroutine uses it.
type reader struct {
	client  *Client
	session string
	after   int64  // the last event that the caller has already
	only    string // reading ends with this run; empty for none
	follow  bool
	patient bool // waits for a worker that is away
	live    *live.Subscription
	yield   func(Event, error) bool

	seq      int64  // the last event that was read
	run      string // the run of that event
	startSeq int64  // the first event of that run, as far as it was read
	head     string // the last chunk that was read
	gate     liveOrder
	over     bool // the caller has enough, or everything was read
}

// tell yields the error that ended reading, if there is one.
func (r *reader) tell(err error) {
	if err != nil && !r.over {
		r.yield(Event{}, fmt.Errorf("reading the events of session %s: %w", r.session, err))
	}
}

// read reads the stored events, and then, whenever there is a reason to, those of the
// session's last execution.
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
			err = durable.FromRPC(ctx.Err()) // a cancelled call returns many kinds of errors
		}
		if r.over || err != nil || !r.follow {
			return err
		}
		if err := r.wait(ctx, w); err != nil || r.over {
			return err
		}
	}
}

// look reads what is new in the session's last execution, or in the only run.
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
		return nil // it stays unread, so the next look tries again
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

// execution returns the latest execution of the only run, or of the session.
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

// wait waits until there is a reason to look: the history grows or ends. The server may
// lose a notice, so a timer is a reason too. Live events are yielded meanwhile.
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
			r.takeLive()
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

// catchUp reads what is new in an execution. If the store has all of it, it reads the
// store. Otherwise it asks the run, and reads the store for events that were sealed
// meanwhile. Readers of one history share the query.
func (r *reader) catchUp(ctx context.Context, info *workflowpb.WorkflowExecutionInfo, history *follower) error {
	if durable.Closed(info) {
		head, err := r.stored(ctx)
		if err != nil || r.over || head.Run == info.GetFirstRunId() && head.Status.Ended() {
			return err
		}
		if ReadMemo(info).Status == agent.StatusPending { // it was ended before it began: no worker has anything of it
			return r.missesNothing(ctx, head, info)
		}
	}
	for more := true; more && !r.over; {
		tail, err := r.tail(ctx, info, history)
		if err != nil {
			return err
		}
		// The run's answer begins after what is known: the events between were sealed
		// meanwhile.
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

// missesNothing returns an error if the last run that began, before this execution, may have events that are
// not stored.
func (r *reader) missesNothing(ctx context.Context, head store.Head, info *workflowpb.WorkflowExecutionInfo) error {
	complete := head.Run == "" || head.Status.Ended()
	for before, err := range r.client.executions(ctx, ours+" AND WorkflowId = "+signals.Quote(r.session)) {
		if err != nil {
			return err
		}
		if before.GetExecution().GetRunId() != info.GetExecution().GetRunId() && ReadMemo(before).Status != agent.StatusPending {
			complete = complete && runOf(before) == head.Run
			break
		}
	}
	if complete {
		return nil
	}
	return agent.Errorf(agent.CodeNoWorker, "the session's last run was ended before it began, and the run before it before it stored its end: the session's next run recovers what it can of it")
}

// tail returns the run's open events after the last one that was read. For a run that is
// new to the reader it asks for all open events, to check that they continue what was
// read.
func (r *reader) tail(ctx context.Context, info *workflowpb.WorkflowExecutionInfo, history *follower) (signals.OpenTail, error) {
	from := r.seq
	if r.run != info.GetFirstRunId() {
		from = min(from, r.startSeq)
	}
	ask := func() (signals.OpenTail, error) { return r.ask(ctx, info, from) }
	if history == nil || history.execution != info.GetExecution().GetRunId() {
		return signals.Settled(ctx, r.client.temporal, r.session, info, ask)
	}
	return history.tail(ctx, from, info, ask)
}

// ask sends one query.
func (r *reader) ask(ctx context.Context, info *workflowpb.WorkflowExecutionInfo, from int64) (signals.OpenTail, error) {
	tail, err := signals.Tail.Ask(ctx, r.client.temporal, r.session, info.GetExecution().GetRunId(), signals.TailArgs{Seq: from})
	if ctx.Err() == nil && (unanswered(err) || errors.Is(err, agent.CodeNoWorker)) {
		err = agent.Errorf(agent.CodeNoWorker, "no worker of the task queue %s answers for what the run has not stored yet; start one, or try again: %w", info.GetTaskQueue(), err)
	}
	return tail, err
}

// unanswered reports whether no worker answered a query in time, or a worker stopped
// meanwhile.
func unanswered(err error) bool {
	var cut *serviceerror.Canceled
	return errors.Is(err, agent.CodeTimeout) || errors.As(err, &cut)
}

// stored reads the events up to the session's head in the store.
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

// settledHead returns a session's head. It returns [agent.CodeNotFound] if the head says
// that the run has ended and Temporal does not know that yet. Such an end was stored
// within a workflow task that may still be lost, and the run may then end otherwise.
func (c *Client) settledHead(ctx context.Context, session string) (head store.Head, err error) {
	for known := int64(0); ; known = head.Version {
		head, err = c.log.Head(ctx, session)
		if err != nil || !head.Status.Ended() || head.Version == known || c.temporal == nil {
			return head, err
		}
		info, err := c.describe(ctx, session, cmp.Or(head.Execution, head.Run))
		switch {
		case errors.Is(err, agent.CodeNotFound):
			return head, nil
		case err != nil:
			return store.Head{}, err
		case !durable.Closed(info):
			return store.Head{}, agent.Errorf(agent.CodeNotFound, "run %s of session %s is not at its end yet", head.Run, session)
		}
	}
}

// sealed reads a chain of chunks, from the chunk that holds the last known event.
func (r *reader) sealed(ctx context.Context, digest string) error {
	if digest == "" || digest == r.head {
		return nil
	}
	if r.client.log == nil {
		return agent.Errorf(agent.CodeNotSetUp, "a part of them is stored: %w", ErrNoStore)
	}
	// From the later of both: events that the caller has already need not be read again.
	chunks, err := r.client.log.Since(ctx, digest, max(r.seq, r.after))
	if err != nil {
		return err
	}
	for _, c := range chunks {
		if r.seq == 0 && len(c.Events) > 0 {
			r.seq = c.Events[0].Seq - 1
			r.startSeq = r.seq
		}
		if err := r.hand(c.Events, c.Run); err != nil || r.over {
			return err
		}
	}
	r.head = digest
	return nil
}

// hand yields the new ones of some consecutive events. run is their run, if no event
// before says so.
func (r *reader) hand(events []agent.Event, run string) error {
	if r.run == "" && len(events) > 0 { // a run that has not begun may start with another run's events
		r.run = run
	}
	for _, e := range events {
		switch {
		// A later run starts at a number that was read already: those events were never
		// stored.
		case e.Seq <= r.seq && e.Started != nil && e.Seq > r.startSeq:
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

// pass yields one event, and the live events before and after it.
func (r *reader) pass(e agent.Event) {
	// Live events first: those before the event in the log may come too late afterwards.
	r.takeLive()
	if r.seq = e.Seq; e.Started != nil {
		r.run, r.startSeq = e.Started.Run, e.Seq
	}
	if e.Seq > r.after && !r.over {
		r.over = !r.yield(Event{Event: e, Session: r.session, Run: r.run}, nil)
	}
	if r.live != nil {
		r.gate.seen(e, r.run)
		r.release(r.gate.due())
	}
}

// takeLive takes the live events that have arrived, and yields those that fit here.
func (r *reader) takeLive() {
	if r.live == nil || r.over {
		return
	}
	for _, l := range r.live.Take() {
		r.gate.add(l)
	}
	r.release(r.gate.due())
}

// release yields live events that are in order.
func (r *reader) release(list []live.Event) {
	for _, l := range list {
		if r.over {
			return
		}
		r.over = !r.yield(Event{Event: agent.Event{Type: l.Type, Time: l.Time, Turn: l.Turn}, Session: l.Session, Run: l.Run, Live: &l}, nil)
	}
}
