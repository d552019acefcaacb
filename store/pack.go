package store

import (
	"context"
	"iter"

	"github.com/fermata-agents/fermata/agent"
)

// Packed is a chunk in its stored form.
type Packed struct {
	Digest string `json:"digest"`
	Data   []byte `json:"data"`
}

// Pack is [Log.Seal] without a put: it returns the chunk that would be next. It is for
// those who hand chunks on to another store.
func (l *Log) Pack(ctx context.Context, prev, session, run string, events []agent.Event) (p Packed, err error) {
	s := &sealing{Log: l, prev: prev, c: &Chunk{Envelope: Envelope{Session: session}, content: content{Run: run, Events: events}}}
	if err := s.prepare(ctx, false); err != nil {
		return p, err
	}
	p.Data, err = seal(s.c)
	p.Digest = s.c.Name
	return p, err
}

// Unpack checks a chunk's stored form against its name and returns that of the chunk
// before it; empty for a session's first. Errors are [agent.CodeChunkDamaged] and
// [agent.CodeIncompatible].
func Unpack(name string, data []byte) (prev string, err error) {
	c, err := open(name, data)
	if err != nil {
		return "", err
	}
	return c.Prev(), nil
}

// PutBlob keeps data of a session that is no part of its log, and returns its name.
// Only the session's head may name it.
func (l *Log) PutBlob(ctx context.Context, session string, data []byte) (string, error) {
	name, stored, err := wrap(&Envelope{V: ChunkVersion, Kind: kindBlob, Session: session}, data)
	if err != nil {
		return "", err
	}
	return name, l.store.PutChunk(ctx, name, stored)
}

// Blob returns what [Log.PutBlob] has put. Errors are [agent.CodeChunkMissing],
// [agent.CodeChunkDamaged] and those of the store.
func (l *Log) Blob(ctx context.Context, name string) (plain []byte, err error) {
	data, err := l.store.Chunk(ctx, name)
	if err != nil {
		return nil, err
	}
	var e Envelope
	err = l.unpack(ctx, name, data, &e, func() error {
		plain, err = e.unwrap(name, data, kindBlob)
		return err
	})
	return plain, err
}

// unpack reads an envelope and does something with the content when there is room for it
// beside what is being unpacked.
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

// Chain lists the chunks of a chain from its last to its first, in their stored
// form, each checked against its name. An error, of the store or as those of
// [Log.View], ends the list.
func (l *Log) Chain(ctx context.Context, name string) iter.Seq2[Packed, error] {
	return func(yield func(Packed, error) bool) {
		for at := name; at != ""; {
			data, err := l.store.Chunk(ctx, at)
			prev := ""
			if err == nil {
				prev, err = Unpack(at, data)
			}
			if !yield(Packed{at, data}, err) || err != nil {
				return
			}
			at = prev
		}
	}
}
