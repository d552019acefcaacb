package store

import (
	"context"
	"errors"
	"slices"

	"github.com/fermata-agents/fermata/agent"
)

// Seal writes events as the next chunk after prev and returns its name. The same events
// after the same chunk get the same name, so a repeated Seal is harmless. If many small
// chunks come before, they and the events are merged into one new chunk. The small ones
// stay in the store for everything that refers to them, until [Log.Collect].
//
// If the view up to prev is in memory, the view up to the new chunk replaces it, because
// its reader will probably read on. If works is true, the run still works: it continues
// from prev until it learns of this chunk.
func (l *Log) Seal(ctx context.Context, prev, session, run string, works bool, events []agent.Event) (string, error) {
	epoch := l.now()
	s := &sealing{Log: l, prev: prev, c: &Chunk{Envelope: Envelope{Session: session}, content: content{Run: run, Events: events}}}
	if err := s.prepare(ctx, true); err != nil {
		return "", err
	}
	data, err := seal(s.c)
	if err != nil {
		return "", err
	}
	if err := l.store.PutChunk(ctx, s.c.Name, data); err != nil {
		return s.c.Name, err
	}
	l.envelopes.add(s.c.Name, &s.c.Envelope, len(s.c.Before)+len(s.c.Files)+1)
	l.grow(s, prev, works, events, epoch)
	return s.c.Name, nil
}

// grow keeps the view up to the sealed chunk in memory. It replaces the view up to the
// chunk before.
func (l *Log) grow(s *sealing, prev string, works bool, events []agent.Event, epoch int64) {
	// Only a view that is in memory already is continued: somebody reads it.
	base, ok := l.views.get(prev)
	if prev == "" && works {
		base, ok = &View{}, true
	}
	if !ok || epoch != l.now() {
		return
	}
	v := s.view
	if v == nil {
		v = base.then(events, sizeOf(events))
	}
	v.prev = prev
	l.keep(s.c.Name, v, epoch)
	l.chunks.add(s.c.Name, s.c, s.c.Size)
	if !works { // no run continues from prev
		l.views.remove(prev)
	}
}

// sealing is a chunk that is being made.
type sealing struct {
	*Log
	prev string
	c    *Chunk
	view *View // what is known up to the chunk; nil if it was not needed
}

// prepare completes the chunk except for what depends on its events. If merges is true,
// it merges small chunks into it.
func (s *sealing) prepare(ctx context.Context, merges bool) error {
	if s.prev == "" {
		return s.remember(ctx, nil)
	}
	last, err := s.envelope(ctx, s.prev)
	// The number of the first event is needed to find the place in what replaced the chunk.
	if errors.Is(err, agent.CodeChunkMissing) && len(s.c.Events) > 0 {
		last, err = s.instead(ctx, err)
	}
	if err != nil {
		return err
	}
	if last == nil {
		return s.remember(ctx, nil)
	}
	s.c.Origins = originsOf(s.c.Session, s.prev, last)
	if err := s.remember(ctx, last); err != nil {
		return err
	}
	refs, err := s.refs(ctx, s.prev, mergeLook)
	if err != nil {
		return err
	}
	files, err := filesIn(s.c.Events)
	if err != nil {
		return err
	}
	if n := absorbed(refs, sizeOf(s.c.Events), len(files), ChunkPrefix(s.c.Session)); merges && n > 0 {
		if err := s.absorb(ctx, refs[:n]); err == nil { // an error is ignored: merging only makes reading faster
			refs = refs[n:]
		}
	}
	if len(refs) == 0 {
		return nil
	}
	before, err := s.envelope(ctx, refs[0].Chunk)
	if err != nil {
		return err
	}
	s.c.Before = refs[:1:1]
	if len(before.Before) < wave {
		s.c.Before = append(s.c.Before, before.Before...)
	}
	return nil
}

// instead finds what replaced a missing chunk, which was merged into another one and
// collected. An execution that was reset still continues from it. The replaced part goes
// into the new chunk.
func (s *sealing) instead(ctx context.Context, missing error) (*Envelope, error) {
	seq := s.c.Events[0].Seq - 1
	h, err := s.Head(ctx, s.c.Session)
	if err != nil {
		return nil, missing // the caller's error says more than that of the attempt to repair it
	}
	name, last, err := s.ChunkWith(ctx, h.Digest, seq)
	if err != nil {
		return nil, missing
	}
	if last == seq {
		s.prev = name
		return s.envelope(ctx, name)
	}
	c, err := s.chunk(ctx, name)
	if err != nil {
		return nil, err
	}
	s.c.Events, s.prev = slices.Concat(UpTo(c.Events, seq), s.c.Events), c.Prev()
	if s.prev == "" {
		return nil, nil
	}
	return s.envelope(ctx, s.prev)
}

// remember sets where the known part of the log begins: at the same place as before, or at
// a new place if the events make the model forget something.
func (s *sealing) remember(ctx context.Context, last *Envelope) error {
	if last != nil && last.Knows != nil {
		s.c.Knows = &Known{last.Knows.Chunk, last.Knows.From, last.Knows.Since}
		if s.c.Knows.Chunk == "" { // empty means the chunk itself, which is now the previous one
			s.c.Knows.Chunk = s.prev
		}
	}
	if !forgets(s.c.Events) {
		return nil
	}
	v, err := s.Known(ctx, s.prev, s.c.Events)
	if err != nil {
		return err
	}
	k, base := condense(v.then(s.c.Events, 0).events)
	if k != nil && !v.whole() && k.From < v.knows.From { // it keeps messages that are in the base, which is incomplete
		if v, err = s.View(ctx, s.prev); err != nil {
			return err
		}
		k, base = condense(v.then(s.c.Events, 0).events)
	}
	v = v.then(s.c.Events, sizeOf(s.c.Events))
	s.view = v
	switch {
	case k != nil:
		s.c.Knows, s.c.Base = k, base
		rest := v.events[len(UpTo(v.events, k.From-1)):]
		s.view = &View{events: slices.Concat(base, rest), size: v.size, knows: k}
	case v.whole():
		s.c.Knows = nil
	}
	return nil
}

// originsOf returns the parts of a chain that other sessions than session wrote. last is
// the envelope of the chain's last chunk.
func originsOf(session, name string, last *Envelope) []Origin {
	if last.Session == session {
		return last.Origins
	}
	return append([]Origin{{last.Session, name, last.Last}}, last.Origins...)
}

// Chunks are merged when this many of about one size are at the end of a chain. So a log
// is rewritten about twice in total, and few small chunks remain.
const (
	mergeMany = 8
	mergeMost = 256 << 10 // the most bytes of plain content in a merged chunk
	mergeLook = 3 * mergeMany
	smallest  = 4 << 10
)

// tier returns the size class of a chunk.
func tier(size int) (t int) {
	for most := smallest; size >= most; most *= mergeMany {
		t++
	}
	return t
}

// absorbed returns how many of the last chunks, newest first, are merged into the new
// one. Chunks of other sessions are not.
func absorbed(refs []Ref, size, files int, tag string) (n int) {
	for {
		more, sum := 0, 0
		for _, r := range refs[n:] {
			if r.Size == 0 || tagOf(r.Chunk) != tag || tier(r.Size) > tier(size) || files+r.Files > maxFiles/2 {
				break
			}
			more, sum, files = more+1, sum+r.Size, files+r.Files
		}
		if more+1 < mergeMany || size+sum > mergeMost {
			return n
		}
		n, size = n+more, size+sum
	}
}

// absorb puts the content of chunks, given newest first, before the new chunk's.
func (s *sealing) absorb(ctx context.Context, refs []Ref) error {
	names := make([]string, len(refs))
	for i, r := range refs {
		names[i] = r.Chunk
	}
	old, err := s.fetch(ctx, names)
	if err != nil {
		return err
	}
	if err := linked(old); err != nil {
		return err
	}
	all := content{Base: s.c.Base}
	for i, c := range oldestFirst(old) {
		if i == 0 {
			all.Run = c.Run
		}
		all.Events = append(all.Events, c.Events...)
		// The base moves with its chunk; without a name it is in the new chunk.
		if s.c.Knows != nil && s.c.Knows.Chunk == c.Name {
			s.c.Knows, all.Base = &Known{From: s.c.Knows.From, Since: s.c.Knows.Since}, c.Base
		}
	}
	all.Events = append(all.Events, s.c.Events...)
	s.c.content = all
	return nil
}

func sizeOf(events []agent.Event) (n int) {
	for _, e := range events {
		n += e.Size()
	}
	return n
}
