package loopback

import (
	"strings"
	"sync"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/live"
)

// Limits of what is kept of open turns, in bytes. An event counts as its text and
// overhead.
const (
	overhead = 256
	maxTurn  = 4 << 20
	maxAll   = 32 << 20
	maxPiece = 64 << 10 // of joined texts
)

// numbered is an event with its number. Numbers increase, and belong to one endpoint.
type numbered struct {
	Seq   int64      `json:"seq"`
	Event live.Event `json:"event"`
}

// turns are the open turns of all sessions. If there is too much, the oldest events of a
// turn are dropped, or the turn that was silent for longest.
type turns struct {
	mu       sync.Mutex
	seq      int64
	bytes    int
	sessions map[string]*turn
}

// turn is what is kept of a session. Its turns' lock guards it.
type turn struct {
	run     string
	number  int
	events  []numbered
	bytes   int
	lost    int   // how many events of the turn were dropped
	lostTo  int64 // the number of the last of them
	last    int64 // the number of the last event, dropped or not
	readers int
	changed chan struct{} // closed and replaced when an event comes
}

func newTurns() *turns { return &turns{sessions: map[string]*turn{}} }

func size(e live.Event) int { return overhead + len(e.Data.Text) }

func (t *turns) of(session string) *turn {
	s := t.sessions[session]
	if s == nil {
		s = &turn{changed: make(chan struct{})}
		t.sessions[session] = s
	}
	return s
}

// put adds an event to its session's turn. It never waits for a reader.
func (t *turns) put(e live.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.of(e.Session)
	switch {
	case e.Run != s.run || e.Turn > s.number:
		t.clear(s)
		s.run, s.number = e.Run, e.Turn
	// The text so far is invalid: the model is called again.
	case e.Type == agent.EventDeltaReset:
		t.clear(s)
	}
	t.seq++
	s.last = t.seq
	s.events = append(s.events, numbered{t.seq, e})
	s.bytes, t.bytes = s.bytes+size(e), t.bytes+size(e)
	for s.bytes > maxTurn {
		t.drop(s)
	}
	if t.bytes > maxAll {
		t.forget()
	}
	// Closing wakes every reader at once; each takes the new channel with its next look.
	close(s.changed)
	s.changed = make(chan struct{})
}

func (t *turns) clear(s *turn) {
	t.bytes -= s.bytes
	s.events, s.bytes, s.lost, s.lostTo = nil, 0, 0, 0
}

// drop drops the oldest event of a turn.
func (t *turns) drop(s *turn) {
	oldest := s.events[0]
	// Otherwise the array would keep the dropped event's text alive.
	s.events[0] = numbered{}
	s.events = s.events[1:]
	s.bytes, t.bytes = s.bytes-size(oldest.Event), t.bytes-size(oldest.Event)
	s.lost, s.lostTo = s.lost+max(1, oldest.Event.Data.Dropped), oldest.Seq
}

// forget drops the turn that was silent for longest.
func (t *turns) forget() {
	var name string
	var oldest *turn
	for n, s := range t.sessions {
		// Turns without events have nothing to drop.
		if len(s.events) > 0 && (oldest == nil || s.last < oldest.last) {
			name, oldest = n, s
		}
	}
	for len(oldest.events) > 0 {
		t.drop(oldest)
	}
	// A reader still holds this turn, and its numbers must continue.
	if oldest.readers == 0 {
		delete(t.sessions, name)
	}
}

// enter adds a reader of a session; leave removes it.
func (t *turns) enter(session string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of(session).readers++
}

func (t *turns) leave(session string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.of(session)
	if s.readers--; s.readers == 0 && len(s.events) == 0 {
		delete(t.sessions, session)
	}
}

// take returns a session's events after a number, and a channel that is closed when more
// come. The reader must have entered.
func (t *turns) take(session string, after int64) ([]numbered, <-chan struct{}) {
	// The channel is taken under the same lock as the events, so no event is missed in between.
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.of(session)
	var list []numbered
	// Told once: the next look starts behind it.
	if s.lostTo > after {
		e := live.Event{V: agent.Version, Type: agent.EventDeltaDropped, Session: session, Run: s.run, Turn: s.number, Data: live.Data{Dropped: s.lost}}
		list = append(list, numbered{s.lostTo, e})
	}
	fresh := s.events
	for len(fresh) > 0 && fresh[0].Seq <= after {
		fresh = fresh[1:]
	}
	return append(list, joined(fresh)...), s.changed
}

// joined joins consecutive texts, so that a late reader gets few events.
func joined(events []numbered) (list []numbered) {
	for len(events) > 0 {
		n, first := 1, events[0]
		var text strings.Builder
		text.WriteString(first.Event.Data.Text)
		for n < len(events) && continues(first.Event, events[n].Event, text.Len()) && text.Len()+len(events[n].Event.Data.Text) <= maxPiece {
			text.WriteString(events[n].Event.Data.Text)
			n++
		}
		// It has the last number of the joined events, so a reader continues behind all of them.
		one := numbered{events[n-1].Seq, first.Event}
		one.Event.Data.Text = text.String()
		list, events = append(list, one), events[n:]
	}
	return list
}

// continues reports whether b is the next piece of a text that begins with a and has so many
// bytes. A reply that begins again does not continue the one before it.
func continues(a, b live.Event, size int) bool {
	if b.Data.At > 0 && b.Data.At != a.Data.At+size {
		return false
	}
	return (a.Type == agent.EventDeltaText || a.Type == agent.EventDeltaThinking) && a.Type == b.Type && a.Run == b.Run && a.Turn == b.Turn
}
