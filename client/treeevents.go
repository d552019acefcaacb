package client

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"sync"

	"github.com/fermata-agents/fermata/agent"
)

// treeReader reads the events of a session and of all sessions below it. Each session has
// its own reader, and one goroutine yields what they read.
type treeReader struct {
	client  *Client
	options EventsOptions
	out     chan treeStep // unbuffered: a step that was sent was received
	readers sync.WaitGroup

	mu   sync.Mutex
	ends map[string]chan struct{} // closed when the session's reader has ended
}

// treeStep is what a reader sends: an event, an error, or its end.
type treeStep struct {
	place treePlace
	event Event
	child *treePlace // the child that began with the event, and is read next
	err   error
}

// treePlace is how far a session has been read.
type treePlace struct {
	Session string `json:"s"`
	Run     string `json:"r,omitempty"` // the run that is read; empty means all runs of the session
	Seq     int64  `json:"n"`
	ended   bool   // all of it was read; never true for the top session
}

// events reads the tree until all readers have ended, the context ends, or the caller has
// enough.
func (t *treeReader) events(ctx context.Context, session string, yield func(Event, error) bool) {
	places, err := treePlaces(session, t.options.After)
	if err != nil {
		yield(Event{}, err)
		return
	}
	ctx, stop := context.WithCancel(ctx)
	defer t.readers.Wait()
	defer stop()
	for _, p := range places {
		if end := t.reserve(p.Session); end != nil {
			t.begin(ctx, p, end)
		}
	}
	go func() {
		t.readers.Wait()
		close(t.out)
	}()
	full := minCompact
	for step := range t.out {
		if step.err != nil {
			yield(Event{}, step.err)
			return
		}
		// A tree may be followed for months, so places that newer ones replace are
		// dropped.
		if len(places) >= full {
			places = openPlaces(places)
			full = max(minCompact, 2*len(places))
		}
		// All events share this slice: an append only writes behind the part that each
		// event has.
		if step.child != nil {
			places = append(places, *step.child)
		}
		places = append(places, step.place)
		if step.event.tree = places; step.event.Type != "" && !yield(step.event, nil) {
			return
		}
	}
}

// reserve returns a channel to close when a session is fully read; nil if another reader
// already has the session.
func (t *treeReader) reserve(session string) chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ends[session] != nil {
		return nil
	}
	end := make(chan struct{})
	t.ends[session] = end
	return end
}

// begin starts to read a reserved session.
func (t *treeReader) begin(ctx context.Context, p treePlace, end chan struct{}) {
	t.readers.Go(func() {
		defer close(end)
		t.read(ctx, p)
	})
}

// read reads one session. If nobody knows a session below, it was deleted or never began.
func (t *treeReader) read(ctx context.Context, p treePlace) {
	r := &reader{client: t.client, session: p.Session, only: p.Run, follow: t.options.Follow, patient: t.options.Follow}
	below := p.Run != ""
	r.yield = func(e Event, err error) bool {
		if below && errors.Is(err, agent.CodeNotFound) {
			p.ended = true
			return false
		}
		if err == nil && e.Type == agent.EventChildEnded {
			t.await(ctx, e.Child.Session)
		}
		p.Seq = max(p.Seq, e.Seq)
		step := treeStep{place: p, event: e, err: err}
		var end chan struct{}
		if err == nil && e.Type == agent.EventChildStarted {
			if end = t.reserve(e.Child.Session); end != nil {
				step.child = &treePlace{Session: e.Child.Session, Run: e.Child.Run}
			}
		}
		// The child's reader starts only now: its events must come after child.started.
		more := t.send(ctx, step)
		if end != nil && more {
			t.begin(ctx, *step.child, end)
		}
		return more
	}
	o := t.options
	o.After, o.UntilEnd = agent.Cursor(p.Seq), o.UntilEnd && !below
	r.tell(t.client.events(ctx, r, &o))
	if p.ended = p.ended || below && r.over; p.ended {
		t.send(ctx, treeStep{place: p})
	}
}

// await waits until a session is fully read, if it is read at all: a child's events come
// before its parent's child.ended. A child that began before the cursor is in the cursor,
// or was read before.
func (t *treeReader) await(ctx context.Context, session string) {
	end := t.end(session)
	if end == nil {
		return
	}
	select {
	case <-end:
	case <-ctx.Done():
	}
}

// end returns a channel that is closed when a session is fully read; nil if it is not
// read.
func (t *treeReader) end(session string) chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ends[session]
}

func (t *treeReader) send(ctx context.Context, s treeStep) bool {
	select {
	case t.out <- s:
		return true
	case <-ctx.Done():
		return false
	}
}

// minCompact is how many places are kept before any is dropped.
const minCompact = 32

// openPlaces returns the last place of each session that is not fully read, in the order
// in which they began.
func openPlaces(places []treePlace) []treePlace {
	last := map[string]treePlace{}
	for _, p := range places {
		last[p.Session] = p
	}
	var open []treePlace
	for _, p := range places {
		if l, ok := last[p.Session]; ok && !l.ended {
			open = append(open, l)
		}
		delete(last, p.Session)
	}
	return open
}

// treeCursor returns a cursor with the places of all sessions that are not fully read.
func treeCursor(places []treePlace) string {
	raw, _ := json.Marshal(openPlaces(places)) // only strings and numbers: it can't fail
	return base64.RawURLEncoding.EncodeToString(raw)
}

// maxTreeCursor is the largest cursor of a tree, in bytes.
const maxTreeCursor = 1 << 20

// treePlaces decodes a cursor of treeCursor. An empty one means the session's beginning.
func treePlaces(session, cursor string) ([]treePlace, error) {
	if cursor == "" {
		return []treePlace{{Session: session}}, nil
	}
	var places []treePlace
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil && len(cursor) <= maxTreeCursor {
		err = json.Unmarshal(raw, &places)
	}
	if err != nil || len(places) == 0 || places[0].Session != session || places[0].Run != "" {
		return nil, agent.Errorf(agent.CodeInvalidInput, "after: it is no cursor of the tree of session %s; a cursor is that of one of its events, read with the tree", session).WithPath("after")
	}
	for _, p := range places {
		if p.Seq < 0 || checkPath(p.Session) != nil || p.Session != session && !strings.HasPrefix(p.Session, session+"/") {
			return nil, agent.Errorf(agent.CodeInvalidInput, "after: the cursor names session %q, which is not below session %s", p.Session, session).WithPath("after")
		}
	}
	return places, nil
}
