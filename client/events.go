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

// EventsOptions says which events are read; nil means those that there are, from
// the session's beginning.
type EventsOptions struct {
	// After is the cursor of the last event that the reader has; empty means from
	// the session's beginning.
	After string
	// Follow goes on as events come, over the ends of runs, until the context ends.
	Follow bool
	// UntilEnd lets Follow end with the run that is the session's last when reading
	// begins.
	UntilEnd bool
	// Live adds, with Follow, what is not recorded: pieces of replies and progress
	// of tools, from [Options.Live]. A piece comes after the event that opens its
	// turn, and never after the message that says all of it.
	Live bool
	// Tree adds the events of all runs below: those of one run in their order, after the
	// child.started and before the child.ended of the parent. Its cursors are its own.
	Tree bool
}

// Event is an event of a session. Its JSON is the wire form (docs/wire.md §9).
type Event struct {
	// Event is what the log has, with the fields that its Type speaks of. Of a live
	// event only Type, Time and Turn are set.
	agent.Event
	Session string
	Run     string
	// Live is set where the event is live, and not recorded.
	Live *live.Event

	tree []treePlace // of an event that was read with its tree; the last is the event's own
}

// Cursor is where a reader that has the event comes back; empty for a live event. The
// cursor of an event that was read with its tree names the places of all open runs.
func (e Event) Cursor() string {
	switch {
	case e.Live != nil:
		return ""
	case e.tree != nil:
		return treeCursor(e.tree)
	}
	return agent.Cursor(e.Seq)
}

// MarshalJSON writes the wire form.
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

// Events yields the events of a session in the order of its log, each once and
// none left out, over all its runs: while they run and after, in any process, and
// when Temporal has forgotten them. Without Follow it ends at the log's present
// end. It only ever asks: no run waits for a reader.
//
// It needs [Options.Store], else its error is [agent.CodeNotSetUp]; for what a run
// has not stored yet it needs a worker, for which Follow waits, and which is
// [agent.CodeNoWorker] without. What is stored comes first in any case. A cursor that
// is none, or beyond the log's end, is [agent.CodeInvalidInput], and a session that
// nobody knows [agent.CodeNotFound]. [agent.CodeStale] tells a reader that what it was
// told last was never stored, since the run was terminated; the message says
// from where to read again. An error ends the iteration; the cursor of the last
// event is where to come back.
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
			r.follow = false // all that there can be is stored
		case err != nil:
			return err
		default:
			r.only = run.ID
		}
	}
	if !o.Live {
		return r.read(ctx)
	}
	if c.live == nil {
		return agent.Errorf(agent.CodeNotSetUp, "live events have no source: set client.Options.Live")
	}
	if r.live, err = c.live.Subscribe(ctx, r.session); err != nil {
		return fmt.Errorf("subscribing to live events: %w", err)
	}
	defer r.live.Close()
	return r.read(ctx)
}

// StoredEvents yields the events of a session that a store has, after a cursor
// (empty: from its beginning), where there is no server to ask: all of them, if
// the session's last run is at its end. The errors are those of [Client.Events].
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
// beginning) and goes on as they come, until the run or the context ends. It is
// [Client.Events] for one run. It reads stored events from [Options.Store]; without a
// store that is [agent.CodeNotSetUp]. If no worker answers, the error is
// [agent.CodeNoWorker], and the reader may come back with its last cursor.
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
