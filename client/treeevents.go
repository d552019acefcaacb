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
// a reader of its own, and one goroutine hands on what they read.
type treeReader struct {
	client  *Client
	options EventsOptions
	out     chan treeStep // unbuffered: what was sent was taken
	readers sync.WaitGroup

	mu   sync.Mutex
	ends map[string]chan struct{} // closed when the reader of a session is at its end
}

// treeStep is what a reader hands on: an event, an error, or its end.
type treeStep struct {
	place treePlace
	event Event
	err   error
}

// treePlace is how far a session was read.
type treePlace struct {
	Session string `json:"s"`
	Run     string `json:"r,omitempty"` // the run that is read; empty for all of the session's
	Seq     int64  `json:"n"`
	ended   bool   // all of it was read; never of the session at the top
}

// events reads the tree until all readers are at their ends, the context ends, or the
// caller has enough.
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
		t.begin(ctx, p)
	}
	go func() {
		t.readers.Wait()
		close(t.out)
	}()
	for step := range t.out {
		if step.err != nil {
			yield(Event{}, step.err)
			return
		}
		// Events share the slice: what is appended later is behind the part that each has.
		places = append(places, step.place)
		if step.event.tree = places; step.event.Type != "" && !yield(step.event, nil) {
			return
		}
	}
}

// begin begins to read a session, unless it is read already.
func (t *treeReader) begin(ctx context.Context, p treePlace) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ends[p.Session] != nil {
		return
	}
	end := make(chan struct{})
	t.ends[p.Session] = end
	t.readers.Go(func() {
		defer close(end)
		t.read(ctx, p)
	})
}

// read reads one session. A session below that nobody knows was deleted, or never began.
func (t *treeReader) read(ctx context.Context, p treePlace) {
	r := &reader{client: t.client, session: p.Session, only: p.Run, follow: t.options.Follow, patient: t.options.Follow}
	below := p.Run != ""
	r.yield = func(e Event, err error) bool {
		if below && errors.Is(err, agent.CodeNotFound) {
			p.ended = true
			return false
		}
		if err == nil && e.Child != nil {
			t.child(ctx, *e.Child, e.Type)
		}
		p.Seq = max(p.Seq, e.Seq)
		return t.send(ctx, treeStep{p, e, err})
	}
	o := t.options
	o.After, o.UntilEnd = agent.Cursor(p.Seq), o.UntilEnd && !below
	r.tell(t.client.events(ctx, r, &o))
	if p.ended = p.ended || below && r.over; p.ended {
		t.send(ctx, treeStep{place: p})
	}
}

// child begins to read the session of a child, and lets its events come before its end.
func (t *treeReader) child(ctx context.Context, c agent.ChildUpdate, what agent.EventType) {
	if c.Run != "" {
		t.begin(ctx, treePlace{Session: c.Session, Run: c.Run})
	}
	if what != agent.EventChildEnded {
		return
	}
	t.mu.Lock()
	end := t.ends[c.Session]
	t.mu.Unlock()
	if end == nil {
		return
	}
	select {
	case <-end:
	case <-ctx.Done():
	}
}

func (t *treeReader) send(ctx context.Context, s treeStep) bool {
	select {
	case t.out <- s:
		return true
	case <-ctx.Done():
		return false
	}
}

// treeCursor names the places of all sessions that are not read to their ends.
func treeCursor(places []treePlace) string {
	last := map[string]treePlace{}
	for _, p := range places {
		last[p.Session] = p
	}
	var open []treePlace
	for _, p := range places { // in the order in which they began
		if l, ok := last[p.Session]; ok && !l.ended {
			open = append(open, l)
		}
		delete(last, p.Session)
	}
	raw, _ := json.Marshal(open) // strings and numbers
	return base64.RawURLEncoding.EncodeToString(raw)
}

// maxTreeCursor bounds a cursor of a tree, in bytes.
const maxTreeCursor = 1 << 20

// treePlaces reads what treeCursor wrote; of an empty cursor it is the session's beginning.
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
		if p.Seq < 0 || agent.CheckPath(p.Session) != nil || p.Session != session && !strings.HasPrefix(p.Session, session+"/") {
			return nil, agent.Errorf(agent.CodeInvalidInput, "after: the cursor names session %q, which is not below session %s", p.Session, session).WithPath("after")
		}
	}
	return places, nil
}
