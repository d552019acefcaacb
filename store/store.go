package store

import (
	"context"
	"iter"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/remembered"
)

// Store keeps chunks and heads. Its methods may be called from many goroutines
// and processes at once. What they return by way of codes is part of the
// contract; anything that a later attempt may mend is [agent.CodeStoreUnavailable],
// also a context that is over. conformance.Store reports whether a store keeps it.
type Store interface {
	// PutIfAbsent returns what the store keeps under a key for as long as it lives. If it
	// keeps nothing there yet, it keeps the value: of many callers at once that of one, and
	// all are told that one. With an empty value it changes nothing, and returns "" if
	// nothing is kept. A copy of the store has the same. See [ID] and [ClaimNamespace], which call
	// it: a key is of a-z, a value one line of at most 1,000 bytes.
	PutIfAbsent(ctx context.Context, key, value string) (kept string, err error)

	// PutChunk keeps data under a name, durably when it returns. A name is of 2 to 170
	// of a-z, 0-9, - and ~ and at most one dot; it says whose the chunk is and what is in
	// it, see [Envelope]. Putting the same name again is no error, for the content is the
	// same; it renews the time of ChunkInfo.Put, so that no [Log.Collect] takes a chunk
	// away from a writer that is about to refer to it.
	PutChunk(ctx context.Context, name string, data []byte) error
	// Chunk returns what was put, or [agent.CodeChunkMissing].
	Chunk(ctx context.Context, name string) ([]byte, error)
	// ChunkStart returns the first bytes of what was put, at most so many, or
	// [agent.CodeChunkMissing]. It reads no more than these: an envelope is at the beginning
	// of a chunk.
	ChunkStart(ctx context.Context, name string, most int) ([]byte, error)
	// Chunks lists the chunks whose names begin with a prefix, in order of name. An
	// error ends the list. What is put or deleted meanwhile may be in it or not.
	Chunks(ctx context.Context, prefix string) iter.Seq2[ChunkInfo, error]
	// DeleteChunk removes a chunk if it was last put before a time, and tells
	// whether the chunk is gone: also one that was not there is, and a younger one
	// is not. Who puts it at the same time either renews it before or puts it anew.
	// [agent.CodeChunkDamaged] tells of something in its place that is no chunk.
	DeleteChunk(ctx context.Context, name string, before time.Time) (gone bool, err error)

	// Head returns a session's head, or [agent.CodeNotFound], or [agent.CodeChunkDamaged] if it
	// can't be read, or is that of another session. Beside CodeNotFound stands a head that has nothing but the Session and,
	// if the session was deleted, the Version and the Fence at which it stands: what
	// begins it anew goes on from there.
	Head(ctx context.Context, session string) (Head, error)
	// PutHead replaces a session's head if the session stands at the version
	// h.Version-1 and at no higher fence than h.Fence, as [Head.CheckReplaces] says, else it
	// returns [agent.CodeStale] and changes nothing. A session that never was stands at
	// version 0. No version is given twice in a session, also not after a deletion: a
	// write that was held back for an hour between the look and the put meets a version
	// that is over. Runs write by [Log.PutHead], which looks again then, and compares.
	PutHead(ctx context.Context, h Head) error
	// Heads lists the head of every session whose name begins with prefix, in
	// order of session. [agent.CodeChunkDamaged] tells of one head that can't be read or is
	// that of another session, with the Session of its place where that is known, and the list goes on; any other error
	// ends it. What is put or deleted meanwhile may be in it or not.
	Heads(ctx context.Context, prefix string) iter.Seq2[Head, error]
	// DeleteHead removes a session's head if the stored one has the version, else
	// it returns [agent.CodeStale] and changes nothing. One that is gone is no error. It
	// counts as a version: the session stands at version+1 then, and keeps its fence, so
	// that no late write brings it back.
	DeleteHead(ctx context.Context, session string, version int64) error
}

// ChunkInfo is what a [Store] knows of a chunk without reading it.
type ChunkInfo struct {
	Name string
	Size int64     // as stored, in bytes
	Put  time.Time // when it was last put, by the store's clock
}

// Head says where a session's log ends and where its numbers stand. It outlives
// the retention of Temporal's histories.
//
// The fields down to Updated are its envelope: they are never encrypted. They tell names
// of sessions, numbers, times and digests, and nothing that was said.
type Head struct {
	V       int    `json:"v"`       // [HeadVersion]
	Version int64  `json:"version"` // 1, 2, 3 …; never twice in a session
	Session string `json:"session"`
	// Fence orders the writes of the session: see [Log.PutHead].
	Fence agent.Fence `json:"fence,omitzero"`
	// Digest names the last sealed chunk, and Seq is the number of the log's last event.
	Digest string `json:"digest"`
	Seq    int64  `json:"seq"`
	// Recent, Knows and Origins are those of the last chunk's envelope: the last chunks
	// with their numbers, the newest first, where what the model still knows begins, and
	// which sessions the log was forked from. [Log.PutHead] sets them.
	Recent  []Ref    `json:"recent,omitempty"`
	Knows   *Known   `json:"knows,omitempty"`
	Origins []Origin `json:"origins,omitempty"`
	// Blobs name what else the head refers to.
	Blobs []string `json:"blobs,omitempty"`
	// Import names the chunk with the export that the session came with, until a run has
	// gone on from it.
	Import  string    `json:"import,omitempty"`
	Updated time.Time `json:"updated"`

	Run string `json:"run"` // the last run that wrote it
	// Execution is the run's execution that wrote it.
	Execution string       `json:"execution,omitempty"`
	Agent     string       `json:"agent"`
	Status    agent.Status `json:"status"`
	// Receipts are the last messages that came with an id.
	Receipts []remembered.Receipt `json:"receipts,omitempty"`
	// Backlog is what the run has taken and not dealt with up to Seq: Kept, whose events
	// stand in blobs, and behind them those of Inbox. [Log.Backlog] puts them together.
	Backlog      remembered.Backlog       `json:"backlog,omitzero"`
	BacklogBlobs []remembered.BacklogBlob `json:"backlog_blobs,omitempty"`
	// StateVersion is the version of the session's state.
	StateVersion int `json:"state_version,omitempty"`
	// Imported is the id of the export that the session came with; empty for one that
	// began here. It stays over the session's life, so that no export is used twice.
	Imported string `json:"imported,omitempty"`
	// Counters are the session's: they are never used again.
	Counters remembered.Counters `json:"counters,omitzero"`
	// Recovered means that the run was ended from outside, and a later one stored its end.
	Recovered bool `json:"recovered,omitempty"`
	// Claims are the runs that have begun since, the latest last, and may have stored
	// nothing yet: what was ended from outside is looked for among them. A head that
	// has nothing but these is of a session without a log, see [Log.Head].
	Claims []string `json:"claims,omitempty"`
	// Encrypted is all of the head, of which the rest has then nothing but the envelope;
	// see [Encrypt].
	Encrypted []byte `json:"encrypted,omitempty"`
}

// envelope is the head without what is encrypted.
func (h Head) envelope() Head {
	return Head{
		V: h.V, Version: h.Version, Session: h.Session, Fence: h.Fence, Digest: h.Digest, Seq: h.Seq,
		Recent: h.Recent, Knows: h.Knows, Origins: h.Origins, Blobs: h.Blobs, Import: h.Import, Updated: h.Updated,
	}
}

// standsAt tells that a head is of the session in whose place it was found.
func (h Head) standsAt(session string) error {
	if h.Session != session {
		return agent.Errorf(agent.CodeChunkDamaged, "the head of session %s is damaged: it is that of session %s; restore it from a backup of the store", session, h.Session)
	}
	return nil
}
