package store

import (
	"context"
	"slices"
	"sync"

	"github.com/fermata-agents/fermata/agent"
	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Log reads and writes the chains of chunks in a store. Chunks never change, so
// what was read once is kept in memory, up to a bound. A Log may be used from
// many goroutines at once; one serves a whole process.
type Log struct {
	store Store
	mu    sync.Mutex
	views *simplelru.LRU[string, *View] // by the digest of the head
	bytes int
}

// maxViews bounds what a Log keeps in memory, in bytes of plain chunks.
const maxViews = 256 << 20

// NewLog returns a log over a store.
func NewLog(s Store) *Log {
	l := &Log{store: s}
	// The number is a second bound; the first is the sum of the sizes.
	l.views, _ = simplelru.NewLRU(100_000, func(_ string, v *View) { l.bytes -= v.size })
	return l
}

// Store is where the log's chunks lie.
func (l *Log) Store() Store { return l.store }

// Seal writes events as the next chunk after prev and returns its digest. The
// same events after the same chunk have the same digest, so a repeated Seal is
// harmless.
func (l *Log) Seal(ctx context.Context, prev, session, run string, events []agent.Event) (string, error) {
	digest, data, err := seal(Chunk{V: agent.Version, Session: session, Run: run, Prev: prev, Events: events})
	if err != nil {
		return "", err
	}
	return digest, l.store.PutChunk(ctx, digest, data)
}

// View returns the whole log up to a chunk; the empty digest is the empty log.
// A missing or damaged chunk anywhere in the chain is an error: a log is whole
// or it is not shown.
func (l *Log) View(ctx context.Context, digest string) (*View, error) {
	var chain []Chunk
	var sizes []int
	base := &View{}
	for at := digest; at != ""; {
		if v, ok := l.cached(at); ok {
			base = v
			break
		}
		data, err := l.store.Chunk(ctx, at)
		if err != nil {
			return nil, err
		}
		c, size, err := open(at, data)
		if err != nil {
			return nil, err
		}
		chain, sizes, at = append(chain, c), append(sizes, size), c.Prev
	}
	if len(chain) == 0 {
		return base, nil
	}
	events := 0
	for _, c := range chain {
		events += len(c.Events)
	}
	v := &View{events: slices.Grow(slices.Clone(base.events), events), size: base.size, head: digest, prev: base.head}
	for i := len(chain) - 1; i >= 0; i-- {
		v.events = append(v.events, chain[i].Events...)
		v.size += sizes[i]
	}
	l.keep(v)
	return v, nil
}

func (l *Log) cached(digest string) (*View, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.views.Get(digest)
}

// keep remembers a view in the place of the one that it grew from.
func (l *Log) keep(v *View) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.views.Remove(v.prev)
	if !l.views.Contains(v.head) {
		l.bytes += v.size
		l.views.Add(v.head, v)
	}
	for l.bytes > maxViews && l.views.Len() > 1 {
		l.views.RemoveOldest()
	}
}

// View is a log up to one event. It is never changed.
type View struct {
	events     []agent.Event
	size       int
	head, prev string
}

// Events lists the log's events. The slice must not be changed.
func (v *View) Events() []agent.Event { return v.events }

// With returns the view continued by the events of an open tail, up to the
// event with the number upTo. Events that the view has already are skipped, so
// a tail may be younger or older than the view.
func (v *View) With(tail []agent.Event, upTo int64) *View {
	last := int64(0)
	if n := len(v.events); n > 0 {
		last = v.events[n-1].Seq
	}
	events := slices.Clip(v.events)
	for _, e := range tail {
		if e.Seq > last && e.Seq <= upTo {
			events = append(events, e)
		}
	}
	for len(events) > 0 && events[len(events)-1].Seq > upTo {
		events = events[:len(events)-1]
	}
	return &View{events: events, size: v.size, head: v.head}
}

// Seq is the number of the view's last event; zero where it has none.
func (v *View) Seq() int64 {
	if n := len(v.events); n > 0 {
		return v.events[n-1].Seq
	}
	return 0
}

// Spec is the recorded Spec of the view's last run; nil where no run began.
func (v *View) Spec() *agent.Spec {
	for _, e := range slices.Backward(v.events) {
		if e.Started != nil {
			return e.Started.Spec
		}
	}
	return nil
}

// Messages lists what the view's last run is to know: all that was said in the
// session, or since the last run that began anew, or since it was summed up.
func (v *View) Messages() []agent.Message {
	from := 0
	for i, e := range v.events {
		if e.Type == agent.Compacted || e.Started != nil && e.Started.Carry == agent.CarryReset {
			from = i
		}
	}
	out := make([]agent.Message, 0, len(v.events)/4)
	for _, e := range v.events[from:] {
		if e.Message != nil {
			out = append(out, *e.Message)
		}
	}
	return out
}

// Call finds a tool call of the view's last run by our id.
func (v *View) Call(id string) (agent.ToolCall, bool) {
	for _, e := range slices.Backward(v.events) {
		if e.Started != nil {
			break
		}
		if e.Message == nil || e.Message.Role != agent.RoleAssistant {
			continue
		}
		for _, c := range e.Message.ToolCalls() {
			if c.ID == id {
				return c, true
			}
		}
	}
	return agent.ToolCall{}, false
}
