package store

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/fermata-agents/fermata/agent"
)

// Versions of what is stored. A build refuses other versions with
// [agent.CodeIncompatible].
const (
	// ChunkVersion is the version of a chunk's envelope and content.
	ChunkVersion = 1
	// HeadVersion is the version of a session's head.
	HeadVersion = 1
)

// Kinds of chunks.
const (
	kindEvents = "events" // part of a session's log
	kindBlob   = "blob"   // data that only a head refers to
	kindFile   = "file"   // the bytes of a file
	kindFork   = "fork"   // an edge: a session needs another one's chunks
)

// Envelope is the part of a chunk that is never compressed or encrypted. It has what is
// needed to follow chains, to find unneeded chunks, and to read in parallel. It has names
// of sessions, numbers, sizes and digests, and no text of a conversation.
type Envelope struct {
	V    int    `json:"chunk"` // first, so that an envelope is recognised by its first bytes
	Kind string `json:"kind"`
	// Session is the session that wrote the chunk. Forks share chunks.
	Session string `json:"session"`
	// First and Last are the numbers of the chunk's events; zero if it has none.
	First int64 `json:"first,omitempty"`
	Last  int64 `json:"last,omitempty"`
	// Before lists earlier chunks of the chain, the newest first: at least the previous
	// one, at most as many as are read at once. It is empty for a session's first chunk.
	Before []Ref `json:"before,omitempty"`
	// Knows says where the part of the log begins that the model knows after this chunk;
	// nil means the log's beginning.
	Knows *Known `json:"knows,omitempty"`
	// Origins are the parts of the chain that other sessions wrote, the newest first.
	Origins []Origin `json:"origins,omitempty"`
	// Files are the chunks of the files that the events mention, in order of name.
	Files   []string `json:"files,omitempty"`
	Size    int      `json:"size"`    // of the plain content, in bytes
	Content string   `json:"content"` // the SHA-256 of the plain content
}

// Ref names a chunk of a chain. First is the number of its first event, and Size the size
// of its plain content in bytes. Both are zero if the writer did not know them. Files is how
// many files its events mention.
type Ref struct {
	Chunk string `json:"chunk"`
	First int64  `json:"first,omitempty"`
	Size  int    `json:"size,omitempty"`
	Files int    `json:"files,omitempty"`
}

// Known says where the part of a log begins that its last run's model knows: the base of
// a chunk, and the events from From on. An empty Chunk means the chunk that has this
// Known. Since is the number of the event that made the model forget the rest.
type Known struct {
	Chunk string `json:"chunk,omitempty"`
	From  int64  `json:"from"`
	Since int64  `json:"since"`
}

// Origin is a part of a log that another session wrote: its chunks up to Chunk, whose
// last event is Last.
type Origin struct {
	Session string `json:"session"`
	Chunk   string `json:"chunk"`
	Last    int64  `json:"last"`
}

// Prev returns the name of the previous chunk; empty for a session's first.
func (e *Envelope) Prev() string {
	if len(e.Before) == 0 {
		return ""
	}
	return e.Before[0].Chunk
}

// ref returns how other envelopes name the chunk.
func (e *Envelope) ref(name string) Ref { return Ref{name, e.First, e.Size, len(e.Files)} }

// maxEnvelope is the largest envelope, in bytes.
const maxEnvelope = 32 << 10

// mark is the beginning of every envelope.
const mark = `{"chunk":`

// read decodes the envelope at the beginning of a stored form, and checks it against the
// name.
func (e *Envelope) read(name string, data []byte) error {
	line, _, ok := bytes.Cut(data[:min(len(data), maxEnvelope)], []byte("\n"))
	if _, digest, _ := strings.Cut(name, ofChunk); !ok || digestOf(line) != digest {
		return agent.Errorf(agent.CodeChunkDamaged, "chunk %s is damaged: its envelope has the digest %s; restore it from a backup of the store", name, digestOf(line))
	}
	var v struct {
		V int `json:"chunk"`
	}
	if err := json.Unmarshal(line, &v); err != nil {
		return agent.Errorf(agent.CodeIncompatible, "chunk %s can't be read by this version: %w", name, err)
	}
	if v.V != ChunkVersion {
		return agent.Errorf(agent.CodeIncompatible, "chunk %s has version %d; this build reads version %d", name, v.V, ChunkVersion)
	}
	if err := json.Unmarshal(line, e); err != nil {
		return agent.Errorf(agent.CodeIncompatible, "chunk %s can't be read by this version: %w", name, err)
	}
	return e.check(name)
}

// check refuses what no writer puts into an envelope. So a reader that follows it reads
// only chunks, and not too many at once.
func (e *Envelope) check(name string) error {
	what := "chunk " + name
	switch {
	case !isChunk(name) || tagOf(name) != ChunkPrefix(e.Session):
		return agent.Errorf(agent.CodeChunkDamaged, "%s is damaged: it stands under another session than %s", what, e.Session)
	case len(e.Before) > wave:
		return agent.Errorf(agent.CodeChunkDamaged, "%s is damaged: it names %d chunks before it, and at most %d are read at once", what, len(e.Before), wave)
	case len(e.Files) > maxFiles:
		return agent.Errorf(agent.CodeChunkDamaged, "%s is damaged: it names %d files, and no chunk has more than %d", what, len(e.Files), maxFiles)
	case e.Size < 0 || e.Size > maxPlain:
		return agent.Errorf(agent.CodeChunkDamaged, "%s is damaged: it says that it has %d bytes; at most %d are read", what, e.Size, maxPlain)
	}
	return index{refs: e.Before, knows: e.Knows, origins: e.Origins, others: e.Files}.check(what)
}
