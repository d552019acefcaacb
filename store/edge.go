package store

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/fermata-agents/fermata/agent"
)

// An edge stands beside the chunks of a session and says that another one, a fork,
// needs them up to one of them. So what is needed of a session's chunks is known by
// its head and its edges, whatever else the store has.

// Adopt makes sure that the chunks of other sessions in a chain stay as long as a
// session needs them: it puts its edges. It is called before a head with that chain is
// put. A crash between leaves edges that no head stands for, which [Log.Collect]
// removes.
//
// Then it looks whether the sessions that wrote them are still there, or others that
// came with their chunks: [agent.CodeStale] tells that one was deleted, or has another chain
// by now, so that the chunks may be gone.
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
	for _, o := range origins {
		if err := l.store.PutChunk(ctx, edgeName(session, o.Chunk), append(line, '\n')); err != nil {
			return err
		}
	}
	for _, source := range from {
		if len(origins) == 0 {
			break // all of it was stored for the fork
		}
		if err := l.holds(ctx, source, origins); err != nil {
			return err
		}
	}
	return nil
}

// holds reports whether a session needs the chunks that another one is about to share, so
// that nobody has deleted them before the edges were there.
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
			continue // they are before those that its own edge keeps
		}
		chunk, _, err := l.ChunkWith(ctx, h.Digest, o.Last)
		if err != nil && !errors.Is(err, agent.CodeNotFound) {
			return err
		}
		if chunk != o.Chunk {
			return agent.Errorf(agent.CodeStale, "session %s has stored its log anew while it was forked; try again", session)
		}
	}
	return nil
}

// edge is who needs a session's chunks, and up to which.
type edge struct {
	ChunkInfo
	session string // the one that needs them
}

// readEdge reads who an edge is of. The name must be that of an edge.
func (l *Log) readEdge(ctx context.Context, info ChunkInfo) (edge, error) {
	data, err := l.store.ChunkStart(ctx, info.Name, maxEnvelope)
	if err != nil {
		return edge{}, err
	}
	var e Envelope
	if err := json.Unmarshal(data, &e); err != nil || e.V != ChunkVersion || e.Kind != kindFork || info.Name != edgeName(e.Session, chunkOf(info.Name)) {
		return edge{}, agent.Errorf(agent.CodeChunkDamaged, "edge %s is damaged; restore it from a backup of the store", info.Name)
	}
	return edge{info, e.Session}, nil
}
