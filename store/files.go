package store

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// The bytes of a file are a chunk of the session that the file was stored with. The envelope
// of a chunk of events names the files that these events mention, in its own session and in
// others. So a file is kept, collected, exported and deleted as the events are.

const (
	// maxFiles is how many files a chunk may name. The machine stores its log before more
	// come together, and chunks are not merged beyond half of it.
	maxFiles = 256
	// maxFileBytes is how much a Log keeps of files in memory: a model gets the same ones in
	// every turn.
	maxFileBytes = 64 << 20
)

// UnusedFile is how long a collection keeps the bytes of a file that no log mentions, on top
// of its own age: the message with the file may wait for a worker, or for a run to be resumed.
const UnusedFile = 90 * 24 * time.Hour

// PutFile stores the bytes of a file with a session, durably when it returns. The same
// bytes are stored once in a session, however often they are put. The bytes stay as long as
// the session's log mentions the file; until it does, at least [UnusedFile].
//
// Errors are those of [agent.File.Check] and of [Store.PutChunk].
func (l *Log) PutFile(ctx context.Context, session, name, mediaType string, data []byte) (*agent.File, error) {
	f := &agent.File{Session: session, Digest: digestOf(data), Size: len(data), MediaType: mediaType, Name: name}
	if err := f.Check(); err != nil {
		return nil, err
	}
	chunk, stored, err := wrap(fileEnvelope(f), data)
	if err != nil {
		return nil, err
	}
	return f, l.store.PutChunk(ctx, chunk, stored)
}

// File returns the bytes of a file. Nobody may change them. Errors are
// [agent.CodeInvalidInput] if nobody can have stored it, [agent.CodeChunkMissing] if it was
// deleted, [agent.CodeChunkDamaged], and those of the store.
func (l *Log) File(ctx context.Context, f *agent.File) ([]byte, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	name, err := fileChunk(f)
	if err != nil {
		return nil, err
	}
	if data, ok := l.files.get(name); ok {
		return data, nil
	}
	epoch := l.now()
	plain, err := l.plain(ctx, name, kindFile)
	if errors.Is(err, agent.CodeChunkMissing) {
		return nil, agent.Errorf(agent.CodeChunkMissing, "the file %.100q of session %s is not in the store: %w", f.Name, f.Session, err)
	}
	if err == nil && epoch == l.now() {
		l.files.add(name, plain, len(plain))
	}
	return plain, err
}

// fileEnvelope returns the envelope of a file's bytes. All of it follows from the file, so
// the chunk's name does, too.
func fileEnvelope(f *agent.File) *Envelope {
	return &Envelope{V: ChunkVersion, Kind: kindFile, Session: f.Session, Size: f.Size, Content: f.Digest}
}

// fileChunk returns the name of the chunk with a file's bytes.
func fileChunk(f *agent.File) (string, error) {
	line, err := json.Marshal(fileEnvelope(f))
	if err != nil {
		return "", agent.Errorf(agent.CodeInternal, "naming a file of session %s: %w", f.Session, err)
	}
	return ChunkPrefix(f.Session) + ofChunk + digestOf(line), nil
}

// filesIn returns the names of the chunks of all files that events mention, in order. Those
// of a base need not be named again: the events that it repeats are in the chain.
func filesIn(events []agent.Event) (names []string, err error) {
	for _, e := range events {
		for _, f := range e.Files() {
			name, err := fileChunk(f)
			if err != nil {
				return nil, err
			}
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// isFile reports whether a chunk has the bytes of a file. One that is gone, or can't be read,
// has none.
func (l *Log) isFile(ctx context.Context, name string) (bool, error) {
	e, err := l.envelope(ctx, name)
	if err != nil && !lasting(err) {
		return false, err
	}
	return err == nil && e.Kind == kindFile, nil
}
