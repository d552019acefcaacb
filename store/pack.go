package store

import (
	"context"
	"iter"

	"github.com/fermata-agents/fermata/agent"
)

// Pack is [Log.Seal] without a store: it returns the stored form of a chunk and
// its digest. It is for those who hand chunks on to another store.
func Pack(prev, session, run string, events []agent.Event) (digest string, data []byte, err error) {
	digest, data, _, err = seal(Chunk{V: agent.Version, Session: session, Run: run, Prev: prev, Events: events})
	return digest, data, err
}

// Unpack checks a chunk's stored form against its digest and returns the digest of
// the chunk before it; empty for a session's first. Errors are
// [agent.ChunkDamaged] and [agent.Incompatible].
func Unpack(digest string, data []byte) (prev string, err error) { return link(digest, data) }

// PutBlob keeps data that is no chunk under its digest, which it returns. Only
// [Head.Import] may name it.
func (l *Log) PutBlob(ctx context.Context, data []byte) (string, error) {
	digest := digestOf(data)
	return digest, l.store.PutChunk(ctx, digest, data)
}

// Blob returns what [Log.PutBlob] has put. Errors are [agent.ChunkMissing],
// [agent.ChunkDamaged] and those of the store.
func (l *Log) Blob(ctx context.Context, digest string) ([]byte, error) {
	data, err := l.store.Chunk(ctx, digest)
	if err == nil && digestOf(data) != digest {
		err = agent.Errorf(agent.ChunkDamaged, "chunk %s is damaged: its content has the digest %s; restore it from a backup of the store", digest, digestOf(data))
	}
	return data, err
}

// Packed is a chunk in its stored form.
type Packed struct {
	Digest string `json:"digest"`
	Data   []byte `json:"data"`
}

// Chain lists the chunks of a chain from its last to its first, in their stored
// form, each checked against its digest. An error, of the store or as those of
// [Log.View], ends the list.
func (l *Log) Chain(ctx context.Context, digest string) iter.Seq2[Packed, error] {
	return func(yield func(Packed, error) bool) {
		for at := digest; at != ""; {
			data, err := l.store.Chunk(ctx, at)
			prev := ""
			if err == nil {
				prev, err = link(at, data)
			}
			if !yield(Packed{at, data}, err) || err != nil {
				return
			}
			at = prev
		}
	}
}
