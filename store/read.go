package store

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/fermata-agents/fermata/agent"
)

// wave is how many chunks are read at once, and how many an envelope names.
const wave = 16

// read returns the chunks of a chain from its end to the one with an event, the newest
// first; all of them for number 0. What it has read stays in memory, so a retry after an
// error is cheaper.
func (l *Log) read(ctx context.Context, name string, from int64) ([]*Chunk, error) {
	var chain []*Chunk
	for next := []string{name}; len(next) > 0; {
		got, err := l.fetch(ctx, next)
		if err != nil {
			return nil, err
		}
		chain = append(chain, got...)
		if err := linked(chain[max(0, len(chain)-len(got)-1):]); err != nil {
			return nil, err
		}
		// One envelope names the next chunks, so a long chain is read in few waves.
		next = nil
		oldest := got[len(got)-1]
		if oldest.First > 0 && oldest.First <= from {
			break
		}
		for _, r := range oldest.Before {
			if next = append(next, r.Chunk); r.First > 0 && r.First <= from {
				break
			}
		}
	}
	return chain, nil
}

// linked checks that each chunk names the next one as the chunk before it.
func linked(chain []*Chunk) error {
	for i, c := range chain[:max(0, len(chain)-1)] {
		if c.Prev() != chain[i+1].Name {
			return agent.Errorf(agent.CodeChunkDamaged, "chunk %s is damaged: what it says about the chunks before it is contradictory; restore it from a backup of the store", c.Name)
		}
	}
	return nil
}

// fetch reads chunks in parallel.
func (l *Log) fetch(ctx context.Context, names []string) ([]*Chunk, error) {
	return each(ctx, names, l.chunk)
}

// each calls do for all elements of a list in parallel, and returns the first error.
func each[In, Out any](ctx context.Context, list []In, do func(context.Context, In) (Out, error)) ([]Out, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out := make([]Out, len(list))
	var wait sync.WaitGroup
	var failed atomic.Bool
	for i, in := range list {
		wait.Go(func() {
			var err error
			if out[i], err = do(ctx, in); err != nil {
				failed.Store(true)
				cancel(err) // the first error wins: it cancels the others
			}
		})
	}
	wait.Wait()
	// Not ctx.Err: a caller's context that ended after all of them succeeded is no failure.
	if failed.Load() {
		return nil, context.Cause(ctx)
	}
	return out, nil
}

// chunk reads and checks one chunk.
func (l *Log) chunk(ctx context.Context, name string) (*Chunk, error) {
	if c, ok := l.chunks.get(name); ok {
		return c, nil
	}
	epoch := l.now()
	data, err := l.store.Chunk(ctx, name)
	if err != nil {
		return nil, err
	}
	c := &Chunk{Name: name}
	if err := l.unpack(ctx, name, data, &c.Envelope, func() error { return c.decode(data) }); err != nil {
		return nil, err
	}
	if epoch == l.now() {
		l.chunks.add(name, c, c.Size)
	}
	return c, nil
}

// envelope reads and checks only the envelope of a chunk.
func (l *Log) envelope(ctx context.Context, name string) (*Envelope, error) {
	if c, ok := l.chunks.get(name); ok {
		return &c.Envelope, nil
	}
	if e, ok := l.envelopes.get(name); ok {
		return e, nil
	}
	epoch := l.now()
	data, err := l.store.ChunkStart(ctx, name, maxEnvelope)
	if err != nil {
		return nil, err
	}
	e := &Envelope{}
	if err := e.read(name, data); err != nil {
		return nil, err
	}
	if epoch == l.now() {
		l.envelopes.add(name, e, len(e.Before)+len(e.Files)+1)
	}
	return e, nil
}

// walk visits the chunks of a chain from its end to its beginning. It reads about one
// envelope in sixteen, because each names the chunks before it. The visited Refs have
// Size and First. A chunk whose envelope can't be read is visited without them, and
// returned with the error.
func (l *Log) walk(ctx context.Context, name string, visit func(Ref) (more bool)) (at string, err error) {
	for name != "" {
		e, err := l.envelope(ctx, name)
		if err != nil {
			visit(Ref{Chunk: name})
			return name, err
		}
		if !visit(e.ref(name)) {
			return "", nil
		}
		name = ""
		for i, r := range e.Before {
			if i == len(e.Before)-1 || r.First == 0 { // the last one names those before it
				name = r.Chunk
				break
			}
			if !visit(r) {
				return "", nil
			}
		}
	}
	return "", nil
}

// refs returns the last chunks of a chain, the newest first, at most that many.
func (l *Log) refs(ctx context.Context, name string, most int) (refs []Ref, err error) {
	if name == "" {
		return nil, nil
	}
	_, err = l.walk(ctx, name, func(r Ref) bool {
		refs = append(refs, r)
		return len(refs) < most
	})
	return refs, err
}

// Since returns the chunks up to a chunk that have the event seq and everything after it,
// the oldest first. It returns all chunks for number 0, and at least the last one. It
// reads only these, so a reader that follows a log does not read all of it again each
// time. Its errors are those of [Log.View].
func (l *Log) Since(ctx context.Context, name string, seq int64) ([]*Chunk, error) {
	if name == "" {
		return nil, nil
	}
	chain, err := l.read(ctx, name, seq)
	if err != nil {
		return nil, err
	}
	return oldestFirst(chain), nil
}

// ChunkWith returns the chunk of a chain that has an event, and the number of that
// chunk's last event. A session that shares the chain up to there begins after it.
func (l *Log) ChunkWith(ctx context.Context, name string, seq int64) (covers string, last int64, err error) {
	end := int64(0)
	if name != "" {
		e, err := l.envelope(ctx, name)
		if err != nil {
			return "", 0, err
		}
		end = e.Last
	}
	if end < seq {
		return "", 0, agent.Errorf(agent.CodeNotFound, "the log ends before event %d", seq)
	}
	_, err = l.walk(ctx, name, func(r Ref) bool {
		covers, last = r.Chunk, end
		end = r.First - 1
		return r.First > seq
	})
	return covers, last, err
}

// lasting reports whether an error is about the stored data, and not about reaching the
// store.
func lasting(err error) bool {
	return errors.Is(err, agent.CodeChunkMissing) || errors.Is(err, agent.CodeChunkDamaged) || errors.Is(err, agent.CodeIncompatible)
}
