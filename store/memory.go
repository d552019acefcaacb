package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fermata-agents/fermata/agent"
)

// Limits of a memory.
const (
	// MaxMemoryFile is the largest file of a memory, and MaxMemory all its files together, in bytes.
	MaxMemoryFile = 64 << 10
	MaxMemory     = 1 << 20
	// MaxMemoryFiles is the most files that a memory has.
	MaxMemoryFiles = 200
	// MaxMemoryPath is the longest path of a file, in bytes.
	MaxMemoryPath = 255
	// maxMemoryDone is how many changes a memory remembers by their keys.
	maxMemoryDone = 64
	// memoryTries is how often a change is made again on what somebody else has stored meanwhile.
	memoryTries = 20
)

// MemoryRoot begins the path of every file of a memory.
const MemoryRoot = "/memories"

// memoryMark begins the names under which memories are stored. No session's name begins like that.
const memoryMark = "_memory/"

// MemoryFile is a file that an agent keeps over sessions.
type MemoryFile struct {
	Path string `json:"path"` // it begins with [MemoryRoot]
	Size int    `json:"size"`
	// Version is the memory's version when the file was last changed.
	Version int64     `json:"version"`
	Changed time.Time `json:"changed"`
	// Session is the session that changed it last; empty for a person with the command.
	Session string `json:"session,omitempty"`
	// Chunk has the content.
	Chunk string `json:"chunk"`
}

// MemoryOwner says whose memory it is.
type MemoryOwner struct {
	// Principal is who started the sessions that use the memory.
	Principal string `json:"principal"`
	Agent     string `json:"agent"`
}

// Check returns a [agent.CodeInvalidInput] error for an owner that no memory has.
func (o MemoryOwner) Check() error {
	if err := agent.CheckName(o.Agent); err != nil {
		return err
	}
	if o.Principal == "" || !utf8.ValidString(o.Principal) {
		return agent.Errorf(agent.CodeInvalidInput, "whose memory? name a principal").WithPath("principal")
	}
	return nil
}

// name returns the name of the memory's head. The principal is whatever somebody claims, so only a
// digest of it becomes part of a name.
func (o MemoryOwner) name() string { return principalPrefix(o.Principal) + o.Agent }

func principalPrefix(principal string) string {
	return memoryMark + digestOf([]byte(principal))[:tagDigits] + "/"
}

// memoryState is what the head of a memory has. With keys it is encrypted.
type memoryState struct {
	MemoryOwner
	Files []MemoryFile `json:"files,omitempty"`
	// Done are the last changes, so that a change that is made again after a crash has no second
	// effect.
	Done []memoryDone `json:"done,omitempty"`
}

type memoryDone struct {
	Key    string `json:"key"`
	Result string `json:"result"`
}

// Memory is the files that an agent keeps over sessions for one principal. Changes are atomic: each is
// made on the files as they are then. It is safe for concurrent use, also by many processes.
type Memory struct {
	log   *Log
	owner MemoryOwner
}

// Memory returns the memory of an owner. Errors are those of [MemoryOwner.Check].
func (l *Log) Memory(o MemoryOwner) (*Memory, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	return &Memory{l, o}, nil
}

// read returns the memory's head. A memory without files may have none.
func (m *Memory) read(ctx context.Context) (h Head, err error) {
	h, err = m.log.store.Head(ctx, m.owner.name())
	switch {
	case errors.Is(err, agent.CodeNotFound):
		return Head{Session: m.owner.name(), Version: h.Version, Fence: h.Fence, Memory: &memoryState{MemoryOwner: m.owner}}, nil
	case err != nil:
		return h, err
	}
	if err := h.sound(); err != nil {
		return h, err
	}
	// A digest could be that of another principal only by a forged head.
	if h.Memory == nil || h.Memory.MemoryOwner != m.owner {
		return h, agent.Errorf(agent.CodeChunkDamaged, "the memory %s is damaged: it is not that of its owner; restore it from a backup of the store", m.owner.name())
	}
	return h, nil
}

// List returns the memory's files in the order of their paths, and its version, which every change
// makes higher. Errors are those of [Store].
func (m *Memory) List(ctx context.Context) (files []MemoryFile, version int64, err error) {
	h, err := m.read(ctx)
	if err != nil {
		return nil, 0, err
	}
	return slices.Clone(h.Memory.Files), h.Version, nil
}

// Read returns the content of a file that [Memory.List] has returned.
func (m *Memory) Read(ctx context.Context, f MemoryFile) (string, error) {
	if tagOf(f.Chunk) != ChunkPrefix(m.owner.name()) {
		return "", agent.Errorf(agent.CodeChunkDamaged, "the memory's file %.100q is damaged: it names a chunk of something else", f.Path)
	}
	data, err := m.log.Blob(ctx, f.Chunk)
	return string(data), err
}

// MemoryChange makes one change of a memory.
type MemoryChange struct {
	// Key makes the change at most once: a change whose key is known is not made again, and has the
	// first result. Empty makes it each time.
	Key string
	// Session is the session that makes it; empty for a person.
	Session string
	// Edit changes the files, and returns what is said of it. It may be called several times, each
	// time with the files as they are then. With an error nothing is changed.
	Edit func(context.Context, *MemoryEdit) (result string, err error)
}

// Change makes a change. Errors are those of Edit, [agent.CodeTooLarge] if the files would be too
// many or too large, and those of [Store].
func (m *Memory) Change(ctx context.Context, c MemoryChange) (result string, err error) {
	for range memoryTries {
		h, err := m.read(ctx)
		if err != nil {
			return "", err
		}
		state := *h.Memory
		if i := slices.IndexFunc(state.Done, func(d memoryDone) bool { return d.Key == c.Key }); i >= 0 && c.Key != "" {
			return state.Done[i].Result, nil
		}
		edit := &MemoryEdit{memory: m, session: c.Session, version: h.Version + 1, files: slices.Clone(state.Files)}
		if result, err = c.Edit(ctx, edit); err != nil || !edit.changed {
			return result, err
		}
		if err := edit.check(); err != nil {
			return "", err
		}
		state.Files = edit.files
		if c.Key != "" {
			state.Done = append(slices.Clone(state.Done[max(0, len(state.Done)-maxMemoryDone+1):]), memoryDone{c.Key, result})
		}
		next := Head{V: HeadVersion, Version: h.Version + 1, Session: h.Session, Fence: maxFence(h.Fence), Updated: time.Now().UTC(), Agent: m.owner.Agent, Memory: &state, Blobs: state.chunks()}
		switch err := m.log.store.PutHead(ctx, next); {
		case err == nil:
			return result, nil
		case !errors.Is(err, agent.CodeStale): // another change came between
			return "", err
		}
	}
	return "", agent.Errorf(agent.CodeStoreUnavailable, "the memory of agent %s is changed as fast as it is read; try again", m.owner.Agent)
}

// memoryFence is the fence of memories: versions alone order their changes.
var memoryFence = agent.Fence{Chain: 1}

// maxFence returns a fence that is not lower than the stored one.
func maxFence(stored agent.Fence) agent.Fence {
	if stored.Compare(memoryFence) > 0 {
		return stored
	}
	return memoryFence
}

func (s *memoryState) chunks() (names []string) {
	for _, f := range s.Files {
		if !slices.Contains(names, f.Chunk) {
			names = append(names, f.Chunk)
		}
	}
	return names
}

// Delete deletes a memory for good: its files and the record of its owner. A missing one is no error.
// [agent.CodeStale] means that a session has changed it meanwhile: delete again.
func (m *Memory) Delete(ctx context.Context) error {
	_, err := m.log.Delete(ctx, m.owner.name())
	if errors.Is(err, agent.CodeNotFound) {
		return nil
	}
	return err
}

// Memories yields the owners of all memories of a principal; of all principals if it is empty. A
// memory that can't be read is an error, and the iteration continues.
func (l *Log) Memories(ctx context.Context, principal string) iter.Seq2[MemoryOwner, error] {
	prefix := memoryMark
	if principal != "" {
		prefix = principalPrefix(principal)
	}
	return func(yield func(MemoryOwner, error) bool) {
		for h, err := range l.store.Heads(ctx, prefix) {
			if err == nil {
				err = h.sound()
			}
			if err == nil && (h.Memory == nil || h.Memory.MemoryOwner.name() != h.Session) {
				err = agent.Errorf(agent.CodeChunkDamaged, "the memory %.200s is damaged: it has no owner; restore it from a backup of the store", h.Session)
			}
			owner := MemoryOwner{}
			if err == nil {
				owner = h.Memory.MemoryOwner
			}
			if !yield(owner, err) || err != nil && !lasting(err) {
				return
			}
		}
	}
}

// isMemory reports whether a head is that of a memory.
func isMemory(name string) bool { return strings.HasPrefix(name, memoryMark) }

// CheckMemoryPath returns the path of a file or a folder of a memory in its one form. The error is
// [agent.CodeInvalidInput] for a path that leads elsewhere, or that could look like another one.
func CheckMemoryPath(path string) (string, error) {
	bad := func(why string) (string, error) {
		return "", agent.Errorf(agent.CodeInvalidInput, "the path %.100q %s; a path is like %s/notes.md", path, why, MemoryRoot).WithPath("path")
	}
	rest, ok := strings.CutPrefix(strings.TrimSuffix(path, "/"), MemoryRoot)
	switch {
	case len(path) > MaxMemoryPath:
		return bad(fmt.Sprintf("has more than %d bytes", MaxMemoryPath))
	case !utf8.ValidString(path):
		return bad("is no UTF-8")
	case !ok || rest != "" && rest[0] != '/':
		return bad("does not begin with " + MemoryRoot)
	case rest == "":
		return MemoryRoot, nil
	}
	for name := range strings.SplitSeq(rest[1:], "/") {
		if name == "" || name == "." || name == ".." || strings.TrimSpace(name) != name || strings.ContainsFunc(name, notInName) {
			return bad("has a part that no file has")
		}
	}
	return MemoryRoot + rest, nil
}
