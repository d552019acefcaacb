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
	epoch int // how often all was forgotten
}

// maxViews bounds what a Log keeps in memory, in bytes of plain chunks.
const maxViews = 256 << 20

// NewLog returns a log over a store. What is encrypted there it refuses to read, if
// the store is not one of [Encrypt] with the key.
func NewLog(s Store) *Log {
	if _, ok := s.(*Encrypted); !ok {
		s = Encrypt(s, nil)
	}
	l := &Log{store: s}
	// The number is a second bound; the first is the sum of the sizes.
	l.views, _ = simplelru.NewLRU(100_000, func(_ string, v *View) { l.bytes -= v.size })
	return l
}

// Store is where the log's chunks lie.
func (l *Log) Store() Store { return l.store }

// Head is the head of a session that has a log, or came with an export; else it
// returns [agent.NotFound], also if a run has begun that stored nothing. The head
// beside that error has the numbers from which a first write goes on.
func (l *Log) Head(ctx context.Context, session string) (Head, error) {
	h, err := l.store.Head(ctx, session)
	if err == nil && len(h.Claims) > 0 && h.Run == "" && h.Imported == "" {
		return Head{Session: session, Version: h.Version, Fence: h.Fence, Claims: h.Claims}, agent.Errorf(agent.NotFound, "session %s has no log: its run has stored nothing", session)
	}
	return h, err
}

// Seal writes events as the next chunk after prev and returns its digest. The
// same events after the same chunk have the same digest, so a repeated Seal is
// harmless. Where the log up to prev is in memory, the longer one takes its place:
// whoever has just read it will read on. A run that works does so anyway, and goes on
// from prev until it hears of this chunk.
func (l *Log) Seal(ctx context.Context, prev, session, run string, works bool, events []agent.Event) (string, error) {
	epoch := l.now()
	digest, data, size, err := seal(Chunk{V: agent.Version, Session: session, Run: run, Prev: prev, Events: events})
	if err != nil {
		return "", err
	}
	if err := l.store.PutChunk(ctx, digest, data); err != nil {
		return digest, err
	}
	base, ok := l.cached(prev)
	if prev == "" && works {
		base, ok = &View{}, true
	}
	if !ok {
		return digest, nil
	}
	l.keep(&View{events: slices.Concat(base.events, events), size: base.size + size, head: digest, prev: prev}, epoch)
	if !works { // nobody goes on from prev
		l.cached(digest)
	}
	return digest, nil
}

// View returns the whole log up to a chunk; the empty digest is the empty log.
// A missing or damaged chunk anywhere in the chain is an error: a log is whole
// or it is not shown.
func (l *Log) View(ctx context.Context, digest string) (*View, error) {
	var chain []Chunk
	var sizes []int
	base, epoch := &View{}, l.now()
	for at := digest; at != ""; {
		if v, ok := l.cached(at); ok {
			base = v
			break
		}
		c, size, err := l.chunk(ctx, at)
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
	l.keep(v, epoch)
	return v, nil
}

// chunk reads and checks one chunk; size is the length of its plain form.
func (l *Log) chunk(ctx context.Context, digest string) (c Chunk, size int, err error) {
	data, err := l.store.Chunk(ctx, digest)
	if err != nil {
		return c, 0, err
	}
	return open(digest, data)
}

// cached is a log that is in memory. Who reads it has no more use for the one that it
// grew from.
func (l *Log) cached(digest string) (*View, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v, ok := l.views.Get(digest)
	if ok {
		l.views.Remove(v.prev)
	}
	return v, ok
}

// now is the epoch in which what is read may be kept.
func (l *Log) now() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.epoch
}

// forget drops all that is in memory, and what is being read in this moment:
// chunks were deleted.
func (l *Log) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.epoch++
	l.views.Purge()
}

// keep remembers a view, if nothing was deleted since its reading began.
func (l *Log) keep(v *View, epoch int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if epoch != l.epoch {
		return
	}
	if !l.views.Contains(v.head) {
		l.bytes += v.size
		l.views.Add(v.head, v)
	}
	for l.bytes > maxViews && l.views.Len() > 1 {
		l.views.RemoveOldest()
	}
}
