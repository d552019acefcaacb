package store

import (
	"context"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"github.com/fermata-agents/fermata/agent"
)

// Log reads and writes the chains of chunks in a store. Chunks never change, so it keeps
// what it has read in memory, up to a limit. A Log is safe for concurrent use; use one
// for a whole process. Make one with [NewLog].
type Log struct {
	store     Store
	views     *cache[*View]       // by the name of its last chunk, or by wholeKey
	chunks    *cache[*Chunk]      // by name
	envelopes *cache[*Envelope]   // by name
	files     *cache[[]byte]      // by name
	epoch     atomic.Int64        // how often everything was forgotten
	room      *semaphore.Weighted // bytes that may still be unpacked at the same time
}

// Limits of what a Log keeps in memory: views and chunks in bytes of plain content, and
// envelopes by the names in them.
const (
	maxViews     = 256 << 20
	maxChunks    = 64 << 20
	maxEnvelopes = 100_000
)

// NewLog returns a log over a store. For encrypted data, pass the store that [Encrypt]
// returns: without the key, the log refuses to read it.
func NewLog(s Store) *Log {
	if _, ok := s.(*Encrypted); !ok {
		s = Encrypt(s, nil)
	}
	return &Log{store: s, views: newCache[*View](maxViews), chunks: newCache[*Chunk](maxChunks), envelopes: newCache[*Envelope](maxEnvelopes), files: newCache[[]byte](maxFileBytes), room: semaphore.NewWeighted(maxPlain)}
}

// Store returns the store under the log.
func (l *Log) Store() Store { return l.store }

// Head returns the head of a session that has a log, or that was imported. Otherwise it
// returns [agent.CodeNotFound], also if a run has started and stored nothing. With that
// error it returns the version and fence from which a first write continues, and neither for
// a session that is being deleted: until that is done, a write to it is [agent.CodeStale], see
// [Log.Vacate]. A head of another version is [agent.CodeIncompatible].
func (l *Log) Head(ctx context.Context, session string) (Head, error) {
	h, err := l.store.Head(ctx, session)
	if err == nil {
		err = h.sound()
	}
	if err == nil && h.Deleting {
		return Head{Session: session, Deleting: true}, agent.Errorf(agent.CodeNotFound, "session %s is being deleted, or its deletion was cut short: deleting it again, or starting a run in it, deletes the rest", session)
	}
	// Such a head exists only so that a run that starts with no log can be found again.
	if err == nil && len(h.Claims) > 0 && h.Run == "" && h.Imported == "" {
		return Head{Session: session, Version: h.Version, Fence: h.Fence, Claims: h.Claims}, agent.Errorf(agent.CodeNotFound, "session %s has no log: its run has stored nothing", session)
	}
	return h, err
}

// sound refuses a head that this build can't use: one of another version, since it does
// not know what that refers to, and one that no writer makes.
func (h Head) sound() error {
	what := "the head of session " + h.Session
	switch {
	case h.V != HeadVersion:
		return agent.Errorf(agent.CodeIncompatible, "%s has version %d; this build reads version %d", what, h.V, HeadVersion)
	case len(h.Recent) > wave+1 || len(h.BacklogBlobs) > maxBlobs:
		return agent.Errorf(agent.CodeChunkDamaged, "%s is damaged: it names %d chunks of its log and %d blobs, and at most %d and %d are read; restore it from a backup of the store", what, len(h.Recent), len(h.BacklogBlobs), wave+1, maxBlobs)
	case h.Fence.Chain > 2*MaxChain:
		return agent.Errorf(agent.CodeChunkDamaged, "%s is damaged: no chain of executions has number %d; restore it from a backup of the store", what, h.Fence.Chain)
	}
	others := append([]string{h.Digest, h.Import}, h.Blobs...)
	for _, k := range h.BacklogBlobs {
		others = append(others, k.Blob)
	}
	return index{h.Recent, h.Knows, h.Origins, others}.check(what)
}

// View returns the whole log up to a chunk. An empty name means the empty log. A missing
// or damaged chunk anywhere in the chain is an error: a log is shown whole or not at all.
func (l *Log) View(ctx context.Context, name string) (*View, error) {
	if name == "" {
		return &View{}, nil
	}
	if v, ok := l.views.get(wholeKey(name)); ok {
		return v, nil
	}
	// Before reading: a chunk that is deleted in the meantime must not stay in memory.
	epoch := l.now()
	chain, err := l.read(ctx, name, 0)
	if err != nil {
		return nil, err
	}
	v := viewOf(&View{}, oldestFirst(chain))
	l.keep(wholeKey(name), v, epoch)
	return v, nil
}

// Known returns what the last run of a log knows up to a chunk. tail are the events that
// follow. The messages, the Spec, the session's state and the last events are the same as
// in [Log.View], but it reads only the chunks that it needs. Its errors are those of
// View.
func (l *Log) Known(ctx context.Context, name string, tail []agent.Event) (*View, error) {
	if name == "" {
		return &View{}, nil
	}
	v, ok := l.views.get(name)
	if ok { // its reader no longer needs the earlier view
		l.views.remove(v.prev)
	} else {
		epoch := l.now()
		var err error
		if v, err = l.known(ctx, name); err != nil {
			return nil, err
		}
		l.keep(name, v, epoch)
	}
	// A fork in the tail may go back to before the known part.
	if v.reaches(tail) {
		return v, nil
	}
	return l.View(ctx, name)
}

// Instead returns a session's log up to an event, if the chunk with that event is
// missing. Such a chunk was merged into another one and collected. An execution that was
// reset may still ask for it. Errors are those of [Log.Head] and [Log.View], and missing,
// if the session's log does not reach that event.
func (l *Log) Instead(ctx context.Context, session string, seq int64, missing error) (*View, error) {
	h, err := l.Head(ctx, session)
	if err != nil {
		return nil, err
	}
	v, err := l.View(ctx, h.Digest)
	if err != nil {
		return nil, err
	}
	if v = v.UpTo(seq); v.Seq() != seq {
		return nil, missing
	}
	return v, nil
}

// reaches reports whether a view has what a tail's forks go back to.
func (v *View) reaches(tail []agent.Event) bool {
	if v.whole() || !slices.ContainsFunc(tail, func(e agent.Event) bool { return e.Forked != nil }) {
		return true
	}
	line := KnownEvents(slices.Concat(v.events, tail)) // a fork to before the forgetting knows more than the view has
	return slices.ContainsFunc(line, func(e agent.Event) bool { return e.Seq == v.knows.Since })
}

func (l *Log) known(ctx context.Context, name string) (*View, error) {
	last, err := l.chunk(ctx, name)
	if err != nil {
		return nil, err
	}
	k := last.Knows
	if k == nil {
		chain, err := l.read(ctx, name, 0)
		return viewOf(&View{}, oldestFirst(chain)), err
	}
	chain, err := l.read(ctx, name, k.From)
	if err != nil {
		return nil, err
	}
	holder := k.Chunk
	if holder == "" {
		holder = name
	}
	// The base is in the chunk that made the model forget, which may be newer than the first
	// chunk that is read.
	i := slices.IndexFunc(chain, func(c *Chunk) bool { return c.Name == holder })
	if i < 0 {
		return nil, agent.Errorf(agent.CodeChunkDamaged, "chunk %s is damaged: it names chunk %s as the holder of what is known before event %d, and its log does not have that chunk; restore it from a backup of the store", name, holder, k.From)
	}
	v := viewOf(&View{knows: k}, oldestFirst(chain))
	rest := v.events[len(UpTo(v.events, k.From-1)):]
	v.events = slices.Concat(chain[i].Base, rest)
	return v, nil
}

// viewOf returns a view continued by chunks.
func viewOf(v *View, chunks []*Chunk) *View {
	n := 0
	for _, c := range chunks {
		n += len(c.Events)
	}
	out := &View{events: slices.Grow(slices.Clone(v.events), n), size: v.size, knows: v.knows}
	for _, c := range chunks {
		out.events = append(out.events, c.Events...)
		out.size += c.Size
	}
	return out
}

func oldestFirst(chain []*Chunk) []*Chunk {
	out := slices.Clone(chain)
	slices.Reverse(out)
	return out
}

// wholeKey is the cache key of a whole log. A view of what is known has the chunk's name
// as its key.
func wholeKey(name string) string { return "whole " + name }

// now returns the current epoch. A value that was read in it may be kept in memory.
func (l *Log) now() int64 { return l.epoch.Load() }

// forget drops everything in memory, also what is being read now, because chunks were
// deleted.
func (l *Log) forget() {
	// First, so that a read in progress sees the new epoch and does not fill the caches again.
	l.epoch.Add(1)
	l.views.clear()
	l.chunks.clear()
	l.envelopes.clear()
	l.files.clear()
}

// keep stores a view in memory, unless something was deleted after its reading started.
func (l *Log) keep(key string, v *View, epoch int64) {
	if epoch == l.now() {
		l.views.add(key, v, v.size)
	}
}
