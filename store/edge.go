package store

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/fermata-agents/fermata/agent"
)

// An edge is stored beside the chunks of a session. It says that another session, a fork,
// needs these chunks up to one of them. So a session's head and its edges alone say which
// of its chunks are needed.

// Adopt keeps the chunks of other sessions in a chain for as long as session needs them.
// It puts an edge for each of these sessions. Call it before you put a head with that
// chain. After a crash between the two, edges without a head remain, and [Log.Collect]
// removes them.
//
// Then it checks that the sessions in from still have these chunks. [agent.CodeStale]
// means that one of them was deleted or has another chain by now, so the chunks may be
// gone.
func (l *Log) Adopt(ctx context.Context, session, name string, from ...string) error {
	if name == "" {
		return nil
	}
	e, err := l.envelope(ctx, name)
	if err != nil {
		return err
	}
	origins := originsOf(session, name, e)
	line, err := json.Marshal(Envelope{V: ChunkVersion, Kind: kindFork, Session: session})
	if err != nil {
		return agent.Errorf(agent.CodeInternal, "encoding an edge of session %s: %w", session, err)
	}
	// Edges before the check: a deletion that starts later finds them.
	for _, o := range origins {
		if err := l.store.PutChunk(ctx, edgeName(session, o.Chunk), append(line, '\n')); err != nil {
			return err
		}
	}
	for _, source := range from {
		if len(origins) == 0 {
			break // the fork wrote all of its chunks itself
		}
		if err := l.holds(ctx, source, origins); err != nil {
			return err
		}
	}
	return nil
}

// holds returns an error unless a session needs the chunks that another one is about to
// share. If it does, nobody deleted them before the edges were stored.
func (l *Log) holds(ctx context.Context, session string, origins []Origin) error {
	h, err := l.Head(ctx, session)
	if errors.Is(err, agent.CodeNotFound) {
		return agent.Errorf(agent.CodeStale, "session %s was deleted while it was forked", session)
	}
	if err != nil {
		return err
	}
	for _, o := range origins {
		if slices.ContainsFunc(h.Origins, func(own Origin) bool { return own.Session == o.Session && own.Last > o.Last }) {
			continue // they come before the chunks that its own edge keeps
		}
		chunk, _, err := l.ChunkWith(ctx, h.Digest, o.Last)
		if err != nil && !errors.Is(err, agent.CodeNotFound) {
			return err
		}
		if chunk != o.Chunk {
			return agent.Errorf(agent.CodeStale, "session %s has stored its log again while it was forked; try again", session)
		}
	}
	return nil
}

// edge says which session needs a chunk and those before it.
type edge struct {
	ChunkInfo
	session string // the one that needs them
}

// readEdge reads which session an edge belongs to. The name must be an edge's.
func (l *Log) readEdge(ctx context.Context, info ChunkInfo) (edge, error) {
	data, err := l.store.ChunkStart(ctx, info.Name, maxEnvelope)
	if err != nil {
		return edge{}, err
	}
	var e Envelope
	// The name must repeat the content, or anybody could keep another session's chunks.
	if err := json.Unmarshal(data, &e); err != nil || e.V != ChunkVersion || e.Kind != kindFork || info.Name != edgeName(e.Session, chunkOf(info.Name)) {
		return edge{}, agent.Errorf(agent.CodeChunkDamaged, "edge %s is damaged; restore it from a backup of the store", info.Name)
	}
	return edge{info, e.Session}, nil
}
