package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/live"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/store"
)

// EventsOptions says which events are read; nil means all present events of the session.
type EventsOptions struct {
	// After is the cursor of the last event that the reader has; empty means the
	// session's beginning.
	After string
	// Follow continues as events come, also over the ends of runs, until the context
	// ends.
	Follow bool
	// UntilEnd lets Follow end with the run that is the last one when reading begins.
	UntilEnd bool
	// Live adds events that are not recorded: pieces of replies and the progress of
	// tools. It needs Follow and [Options.Live]. A piece comes after the event that
	// begins its turn, and never after the complete message.
	Live bool
	// Tree adds the events of all runs below. The events of each run are in order,
	// between its parent's child.started and child.ended. Its cursors work only with
	// Tree.
	Tree bool
}

// Event is an event of a session. Its JSON is the wire form (docs/wire.md §9).
type Event struct {
	// Event is the recorded event. Of a live event only Type, Time and Turn are set.
	agent.Event
	Session string
	Run     string
	// Live is the live event; nil if the event is recorded.
	Live *live.Event

	tree []treePlace // set if the event was read with Tree; its last entry is the event's own place
}

// Cursor returns what to pass as [EventsOptions.After] to continue after this event;
// empty for a live event. With Tree it contains the places of all open runs.
func (e Event) Cursor() string {
	switch {
	case e.Live != nil:
		return ""
	case e.tree != nil:
		return treeCursor(e.tree)
	}
	return agent.Cursor(e.Seq)
}

// MarshalJSON writes the wire form (docs/wire.md §9).
func (e Event) MarshalJSON() ([]byte, error) {
	if e.Live != nil {
		return json.Marshal(e.Live)
	}
	w, err := e.Wire(e.Session, e.Run)
	if err != nil {
		return nil, err
	}
	return json.Marshal(w)
}

// Events yields the events of a session in the order of its log, over all its runs. It
// yields each event once, and leaves out none. It works while runs are live and after, in
// any process, and after Temporal has forgotten them. Without Follow it ends at the log's
// present end. It only reads, so no run waits for a reader.
//
// Events that a run has not stored yet come from a worker; stored events come first in
// any case. Without a worker, Follow waits, and otherwise the error is
// [agent.CodeNoWorker].
//
// Other errors are [agent.CodeNotSetUp] without [Options.Store], [agent.CodeInvalidInput]
// for a cursor that is invalid or beyond the log's end, and [agent.CodeNotFound] if
// nobody knows the session. [agent.CodeStale] means that the last events that the reader
// got were never stored, since their run was terminated. Its message says from where to
// read again. An error ends the iteration: continue with the cursor of the last event.
func (c *Client) Events(ctx context.Context, session string, o *EventsOptions) iter.Seq2[Event, error] {
	if o == nil {
		o = &EventsOptions{}
	}
	return func(yield func(Event, error) bool) {
		if o.Tree {
			t := &treeReader{client: c, options: *o, out: make(chan treeStep), ends: map[string]chan struct{}{}}
			t.events(ctx, session, yield)
			return
		}
		r := &reader{client: c, session: session, follow: o.Follow, patient: o.Follow, yield: yield}
		r.tell(c.events(ctx, r, o))
	}
}

func (c *Client) events(ctx context.Context, r *reader, o *EventsOptions) (err error) {
	if c.log == nil {
		return agent.Errorf(agent.CodeNotSetUp, "they are stored: %w", ErrNoStore)
	}
	if r.after, err = signals.CursorSeq(o.After); err != nil {
		return err
	}
	if o.Follow && o.UntilEnd {
		run, err := c.Get(ctx, r.session)
		switch {
		case errors.Is(err, agent.CodeNotFound):
			r.follow = false // nothing comes any more: all there is is stored
		case err != nil:
			return err
		default:
			r.only = run.ID
		}
	}
	if !o.Live {
		return r.read(ctx)
	}
	return r.readLive(ctx)
}

// readLive reads the live events too.
func (r *reader) readLive(ctx context.Context) (err error) {
	if r.client.live == nil {
		return agent.Errorf(agent.CodeNotSetUp, "live events have no source: set client.Options.Live")
	}
	// Before reading: a piece that comes while the log is read must not be missed.
	if r.live, err = r.client.live.Subscribe(ctx, r.session); err != nil {
		return fmt.Errorf("subscribing to live events: %w", err)
	}
	defer r.live.Close()
	return r.read(ctx)
}

// StoredEvents yields the events of a session that a store has, after a cursor (empty:
// from its beginning). It needs no server. If the session's last run has ended, these are
// all events. The errors are those of [Client.Events].
func StoredEvents(ctx context.Context, s store.Store, session, after string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		r := &reader{client: &Client{log: store.NewLog(s)}, session: session, yield: yield}
		r.tell(r.readStored(ctx, after))
	}
}

func (r *reader) readStored(ctx context.Context, after string) (err error) {
	if r.after, err = signals.CursorSeq(after); err != nil {
		return err
	}
	_, err = r.stored(ctx)
	switch {
	case err != nil || r.over:
		return err
	case r.seq == 0:
		return agent.Errorf(agent.CodeNotFound, "the store has nothing of it")
	}
	return r.known()
}

// Follow yields the events of the session's log after a cursor (empty: from its
// beginning), until the run or the context ends. It is [Client.Events] for one run.
// Stored events need [Options.Store], else the error is [agent.CodeNotSetUp]. If no
// worker answers, the error is [agent.CodeNoWorker], and the reader may continue later
// with its last cursor.
func (r *Run) Follow(ctx context.Context, after string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		f := &reader{client: r.client, session: r.Session, only: r.ID, follow: true, yield: yield}
		seq, err := signals.CursorSeq(after)
		if f.after = seq; err == nil {
			err = f.read(ctx)
		}
		f.tell(err)
	}
}
