package store

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/fermata-agents/fermata/agent"
)

// Packed is a chunk in its stored form.
type Packed struct {
	Digest string `json:"digest"`
	Data   []byte `json:"data"`
}

// Pack returns the chunk that [Log.Seal] would write next, without writing it. It is for
// copying sessions to another store.
func (l *Log) Pack(ctx context.Context, prev, session, run string, events []agent.Event) (p Packed, err error) {
	s := &sealing{Log: l, prev: prev, c: &Chunk{Envelope: Envelope{Session: session}, content: content{Run: run, Events: events}}}
	if err := s.prepare(ctx, false); err != nil {
		return p, err
	}
	p.Data, err = seal(s.c)
	p.Digest = s.c.Name
	return p, err
}

// PutBlob stores data of a session that is not part of its log, and returns its name.
// Only the session's head may name it.
func (l *Log) PutBlob(ctx context.Context, session string, data []byte) (string, error) {
	name, stored, err := wrap(&Envelope{V: ChunkVersion, Kind: kindBlob, Session: session}, data)
	if err != nil {
		return "", err
	}
	return name, l.store.PutChunk(ctx, name, stored)
}

// Blob returns data that [Log.PutBlob] stored. Errors are [agent.CodeChunkMissing],
// [agent.CodeChunkDamaged] and those of the store.
func (l *Log) Blob(ctx context.Context, name string) ([]byte, error) {
	return l.plain(ctx, name, kindBlob)
}

// plain returns the content of a chunk that is not part of a log.
func (l *Log) plain(ctx context.Context, name, kind string) (plain []byte, err error) {
	data, err := l.store.Chunk(ctx, name)
	if err != nil {
		return nil, err
	}
	var e Envelope
	err = l.unpack(ctx, name, data, &e, func() error {
		plain, err = e.unwrap(name, data, kind)
		return err
	})
	return plain, err
}

// unpack reads an envelope, waits until its content fits into the memory for unpacking,
// and calls do.
func (l *Log) unpack(ctx context.Context, name string, data []byte, e *Envelope, do func() error) error {
	if err := e.read(name, data); err != nil {
		return err
	}
	if err := l.room.Acquire(ctx, int64(e.Size)); err != nil {
		return agent.Errorf(agent.CodeStoreUnavailable, "unpacking chunk %s: %w", name, err)
	}
	defer l.room.Release(int64(e.Size))
	return do()
}

// Chain yields the chunks of a log, as [Log.Copy] does.
func (l *Log) Chain(ctx context.Context, name string, given ...Packed) iter.Seq2[Packed, error] {
	return l.Copy(ctx, NewSequence(name), given...)
}

// Copy yields the chunks of a sequence in their stored form. It checks each against its name. A file
// that is missing comes without data: the log is whole without it. Of
// chunks that are given it takes the data, and reads the others. An error of the store, or
// one as of [Log.View], ends it.
func (l *Log) Copy(ctx context.Context, s *Sequence, given ...Packed) iter.Seq2[Packed, error] {
	return func(yield func(Packed, error) bool) {
		for s.Next() != "" {
			p := Packed{Digest: s.Next()}
			var err error
			if i := slices.IndexFunc(given, func(g Packed) bool { return g.Digest == p.Digest }); i >= 0 {
				p = given[i]
			} else {
				p.Data, err = l.store.Chunk(ctx, p.Digest)
			}
			switch {
			case errors.Is(err, agent.CodeChunkMissing) && !s.inLog():
				err = s.Take(nil)
			case err == nil:
				err = s.Take(p.Data)
			}
			if !yield(p, err) || err != nil {
				return
			}
		}
	}
}
