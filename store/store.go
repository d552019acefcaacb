package store

import (
	"context"
	"iter"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/remembered"
)

// Store keeps chunks and heads. Implement it to keep transcripts elsewhere, and test it
// with conformance.Store. Its methods must be safe for concurrent use, also by many
// processes. The codes of errors are part of the contract. Everything that a later
// attempt may cure is [agent.CodeStoreUnavailable], also a context that has ended.
type Store interface {
	// PutIfAbsent returns the value that the store keeps under a key for its whole life.
	// If there is none yet, it stores value. If many callers do so at once, one value is
	// stored, and all of them get that one. With an empty value it stores nothing, and
	// returns "" if there is none. A copy of the store has the same value. A key is of
	// a-z, and a value is one line of at most 1,000 bytes. See [ID] and [ClaimNamespace],
	// which call it.
	PutIfAbsent(ctx context.Context, key, value string) (kept string, err error)

	// PutChunk stores data under a name, durably when it returns. A name has 2 to 170
	// characters of a-z, 0-9, - and ~, and at most one dot. It says whose chunk it is and
	// what is in it, see [Envelope]. Putting a name again is no error, because its
	// content is the same. But it renews ChunkInfo.Put, so that [Log.Collect] keeps a
	// chunk that a writer is about to refer to.
	PutChunk(ctx context.Context, name string, data []byte) error
	// Chunk returns the data of a chunk, or [agent.CodeChunkMissing].
	Chunk(ctx context.Context, name string) ([]byte, error)
	// ChunkStart returns at most the first most bytes of a chunk, or
	// [agent.CodeChunkMissing]. It should read no more than these: the envelope is at the
	// beginning of a chunk.
	ChunkStart(ctx context.Context, name string, most int) ([]byte, error)
	// Chunks yields the chunks whose names begin with a prefix, in order of name. An
	// error ends it. A chunk that is put or deleted meanwhile may be missing or not.
	Chunks(ctx context.Context, prefix string) iter.Seq2[ChunkInfo, error]
	// DeleteChunk deletes a chunk if it was last put before a time, and reports whether
	// the chunk is gone. A chunk that was not there is gone; a younger one is not. A put
	// at the same time either renews the chunk first, so it stays, or stores it again. If
	// something else is in the chunk's place, the error is [agent.CodeChunkDamaged].
	DeleteChunk(ctx context.Context, name string, before time.Time) (gone bool, err error)

	// Head returns a session's head. It returns [agent.CodeNotFound] if there is none,
	// and [agent.CodeChunkDamaged] if it can't be read or belongs to another session.
	// Beside CodeNotFound it returns a head with only Session and, after a deletion, the
	// Version and the Fence of the deletion: a new head continues from those.
	Head(ctx context.Context, session string) (Head, error)
	// PutHead replaces a session's head if [Head.CheckReplaces] allows it: the stored
	// version is h.Version-1, and the stored fence is not higher. Otherwise it returns
	// [agent.CodeStale] and changes nothing. A new session has version 0. No version is
	// used twice in a session, not even after a deletion. So a write that was delayed for
	// an hour between the check and the put finds its version outdated. Runs write with
	// [Log.PutHead], which then checks again and compares fences.
	PutHead(ctx context.Context, h Head) error
	// Heads yields the head of every session whose name begins with prefix, in order of
	// name. [agent.CodeChunkDamaged] reports one head that can't be read or belongs to
	// another session, with its Session if that is known, and the iteration continues.
	// Any other error ends it. A head that is put or deleted meanwhile may be missing or
	// not.
	Heads(ctx context.Context, prefix string) iter.Seq2[Head, error]
	// DeleteHead deletes a session's head if the stored one has the version. Otherwise it
	// returns [agent.CodeStale] and changes nothing. A missing head is no error. The
	// deletion counts as version+1 and keeps the fence, so that no late write brings the
	// head back.
	DeleteHead(ctx context.Context, session string, version int64) error
}

// ChunkInfo is what a [Store] knows about a chunk without reading it.
type ChunkInfo struct {
	Name string
	Size int64     // as stored, in bytes
	Put  time.Time // when it was last put, by the store's clock
}

// Head says where a session's log ends and where its counters stand. It outlives the
// retention of Temporal's histories.
//
// The fields up to Updated are its envelope, which is never encrypted. It has names of
// sessions, numbers, times and digests, and no text of a conversation.
type Head struct {
	V       int    `json:"v"`       // [HeadVersion]
	Version int64  `json:"version"` // 1, 2, 3 …; never twice in a session
	Session string `json:"session"`
	// Fence orders the writes of the session, see [Log.PutHead].
	Fence agent.Fence `json:"fence,omitzero"`
	// Digest is the name of the last sealed chunk. Seq is the number of the log's last
	// event.
	Digest string `json:"digest"`
	Seq    int64  `json:"seq"`
	// Recent, Knows and Origins are copies of the last chunk's envelope: the last chunks,
	// the newest first, the beginning of what the model knows, and the sessions that the
	// log was forked from. [Log.PutHead] sets them.
	Recent  []Ref    `json:"recent,omitempty"`
	Knows   *Known   `json:"knows,omitempty"`
	Origins []Origin `json:"origins,omitempty"`
	// Blobs are the names of other data that the head refers to.
	Blobs []string `json:"blobs,omitempty"`
	// Import is the chunk with the export that the session came with, until a run has
	// continued from it.
	Import  string    `json:"import,omitempty"`
	Updated time.Time `json:"updated"`

	Run string `json:"run"` // the last run that wrote it
	// Execution is the execution of the run that wrote the head.
	Execution string       `json:"execution,omitempty"`
	Agent     string       `json:"agent"`
	Status    agent.Status `json:"status"`
	// Receipts are the last messages that had an id.
	Receipts []remembered.Receipt `json:"receipts,omitempty"`
	// Backlog and BacklogBlobs are what the run has accepted and not finished up to Seq.
	// The events in BacklogBlobs come first, then those of Backlog. [Log.Backlog] joins
	// them.
	Backlog      remembered.Backlog       `json:"backlog,omitzero"`
	BacklogBlobs []remembered.BacklogBlob `json:"backlog_blobs,omitempty"`
	// StateVersion is the version of the session's state.
	StateVersion int `json:"state_version,omitempty"`
	// Retention is how long the session is kept after its last run, by the agent of that run;
	// zero means forever.
	Retention agent.Duration `json:"retention,omitempty"`
	// Imported is the id of the export that the session came with; empty if it began
	// here. It stays for the session's life, so that no export is used twice.
	Imported string `json:"imported,omitempty"`
	// Counters are the session's counters. No number of them is used twice.
	Counters remembered.Counters `json:"counters,omitzero"`
	// Recovered means that the run was terminated, and a later run stored its end.
	Recovered bool `json:"recovered,omitempty"`
	// Claims are the runs that have begun since, the latest last. They may have stored
	// nothing yet. Runs that were terminated are looked for among them. A head with
	// nothing but claims is of a session without a log, see [Log.Head].
	Claims []string `json:"claims,omitempty"`
	// Deleting means that a deletion has begun and takes the head last. Nobody continues from such
	// a head, see [Log.Head] and [Log.Vacate].
	Deleting bool `json:"deleting,omitempty"`
	// Memory is what an agent keeps over sessions, in a head of its own: see [Memory].
	Memory *memoryState `json:"memory,omitempty"`
	// Encrypted is the whole head, encrypted. The other fields then have only the
	// envelope; see [Encrypt].
	Encrypted []byte `json:"encrypted,omitempty"`
}

// DeleteAfter returns the time after which the session may be deleted: its retention after the
// end of its last run. It is zero if the session is kept forever, or if that run has not ended.
// If a deletion of the session was cut short, that time is over.
func (h Head) DeleteAfter() time.Time {
	if h.Deleting {
		return h.Updated
	}
	if h.Retention <= 0 || !h.Status.Ended() || h.Import != "" {
		return time.Time{}
	}
	return h.Updated.Add(time.Duration(h.Retention))
}

// envelope returns the head without the parts that are encrypted.
func (h Head) envelope() Head {
	return Head{
		V: h.V, Version: h.Version, Session: h.Session, Fence: h.Fence, Digest: h.Digest, Seq: h.Seq,
		Recent: h.Recent, Knows: h.Knows, Origins: h.Origins, Blobs: h.Blobs, Import: h.Import, Updated: h.Updated,
	}
}

// checkSession returns an error if a head belongs to another session than the one it is stored for.
func (h Head) checkSession(session string) error {
	if h.Session != session {
		return agent.Errorf(agent.CodeChunkDamaged, "the head of session %s is damaged: it belongs to session %s; restore it from a backup of the store", session, h.Session)
	}
	return nil
}
