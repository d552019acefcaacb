package store

import (
	"context"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// Store keeps chunks and heads. Its methods may be called from many goroutines
// and processes at once. What they return by way of codes is part of the
// contract; anything that a later attempt may mend is [agent.StoreUnavailable].
type Store interface {
	// PutChunk keeps data under its digest, durably when it returns. Putting the
	// same digest twice is no error: the content is the same.
	PutChunk(ctx context.Context, digest string, data []byte) error
	// Chunk returns what was put, or [agent.ChunkMissing].
	Chunk(ctx context.Context, digest string) ([]byte, error)
	// Head returns a session's head, or [agent.NotFound].
	Head(ctx context.Context, session string) (Head, error)
	// PutHead replaces a session's head if the stored one has the version
	// h.Version-1 (none is version 0), else it returns [agent.Stale] and
	// changes nothing.
	PutHead(ctx context.Context, h Head) error
}

// Head says where a session's log ends and where its numbers stand. It outlives
// the retention of Temporal's histories.
type Head struct {
	V       int          `json:"v"`
	Version int64        `json:"version"` // 1, 2, 3 … over the session's life
	Session string       `json:"session"`
	Run     string       `json:"run"` // the last run that wrote it
	Agent   string       `json:"agent"`
	Status  agent.Status `json:"status"`
	// Digest names the last sealed chunk.
	Digest string `json:"digest"`
	// Seq is the number of the log's last event.
	Seq int64 `json:"seq"`
	// Numbers are the session's: they are never used again.
	Numbers agent.Numbers `json:"numbers,omitzero"`
	Updated time.Time     `json:"updated"`
}
