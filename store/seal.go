package store

import (
	"context"
	"errors"
	"slices"

	"github.com/fermata-agents/fermata/agent"
)

// Seal writes events as the next chunk after prev and returns its name. The same events
// after the same chunk have the same name, so a repeated Seal is harmless. If the chunks
// before are small and many, they and the events become one chunk in their place: what
// they were stays in the store for those who know them. (See [Log.Collect].)
//
// What is known up to prev is kept in memory, and if it is there, what is known up to
// the new chunk takes its place: whoever has just read it will read on. A run that works
// goes on from prev until it hears of this chunk.
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
	l.envelopes.add(s.c.Name, &s.c.Envelope, len(s.c.Before)+1)
	l.grow(s, prev, works, events, epoch)
	return s.c.Name, nil
}

// grow keeps what is known up to a chunk that was sealed, which replaces what was known up
// to the one before.
func (l *Log) grow(s *sealing, prev string, works bool, events []agent.Event, epoch int64) {
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
	if !works { // nobody goes on from prev
		l.views.remove(prev)
	}
}

// sealing is a chunk in the making.
type sealing struct {
	*Log
	prev string
	c    *Chunk
	view *View // what is known up to the chunk; nil if that was not needed
}

// prepare completes the chunk except for what its events tell. Chunks are merged into it
// if it may be.
func (s *sealing) prepare(ctx context.Context, merges bool) error {
	if s.prev == "" {
		return s.remember(ctx, nil)
	}
	last, err := s.envelope(ctx, s.prev)
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
	if n := absorbed(refs, sizeOf(s.c.Events), ChunkPrefix(s.c.Session)); merges && n > 0 {
		if err := s.absorb(ctx, refs[:n]); err == nil { // else without: it only makes reading faster
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

// instead finds what replaced a chunk that was merged into another one and
// collected since: an execution that was reset goes back to it. What the other one has
// of it goes into the chunk in the making.
func (s *sealing) instead(ctx context.Context, missing error) (*Envelope, error) {
	seq := s.c.Events[0].Seq - 1
	h, err := s.Head(ctx, s.c.Session)
	if err != nil {
		return nil, missing
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

// remember says where what is known begins: where it did before, or anew, if the events
// make the model forget something.
func (s *sealing) remember(ctx context.Context, last *Envelope) error {
	if last != nil && last.Knows != nil {
		s.c.Knows = &Known{last.Knows.Chunk, last.Knows.From, last.Knows.Since}
		if s.c.Knows.Chunk == "" {
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
	if k != nil && !v.whole() && k.From < v.knows.From { // it keeps what stands in a base: that has not all of it
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

// originsOf are the parts of a chain that other sessions than one wrote. last is the
// envelope of the chain's last chunk.
func originsOf(session, name string, last *Envelope) []Origin {
	if last.Session == session {
		return last.Origins
	}
	return append([]Origin{{last.Session, name, last.Last}}, last.Origins...)
}

// Small chunks are merged when so many of about one size stand at the end of a chain: a
// log of n events is rewritten about twice in all, and keeps few chunks that are small.
const (
	mergeMany = 8
	mergeMost = 256 << 10 // bytes of plain content that a merged chunk has at most
	mergeLook = 3 * mergeMany
	smallest  = 4 << 10
)

// tier tells of about which size a chunk is.
func tier(size int) (t int) {
	for most := smallest; size >= most; most *= mergeMany {
		t++
	}
	return t
}

// absorbed is how many of the last chunks of a chain, the newest first, go into one
// with what is sealed behind them. Those of other sessions stay as they are.
func absorbed(refs []Ref, size int, tag string) (n int) {
	for {
		more, sum := 0, 0
		for _, r := range refs[n:] {
			if r.Size == 0 || tagOf(r.Chunk) != tag || tier(r.Size) > tier(size) {
				break
			}
			more, sum = more+1, sum+r.Size
		}
		if more+1 < mergeMany || size+sum > mergeMost {
			return n
		}
		n, size = n+more, size+sum
	}
}

// absorb puts the content of chunks, the newest first, before that of the new one.
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
