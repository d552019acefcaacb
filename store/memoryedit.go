package store

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/fermata-agents/fermata/agent"
)

// notInName reports whether no path of a memory may have a character: those that end a text, escape,
// or are not seen.
func notInName(r rune) bool {
	return strings.ContainsRune(`\%`, r) || !unicode.IsPrint(r)
}

// MemoryEdit is a change of a memory in progress. Paths are those that [CheckMemoryPath] returns.
type MemoryEdit struct {
	memory  *Memory
	session string
	version int64 // of the memory after the change
	files   []MemoryFile
	changed bool
}

// Files returns the memory's files as the change has made them, in the order of their paths.
func (e *MemoryEdit) Files() []MemoryFile { return slices.Clone(e.files) }

// Find returns a file, and whether there is one.
func (e *MemoryEdit) Find(path string) (MemoryFile, bool) {
	i := e.index(path)
	if i < 0 {
		return MemoryFile{}, false
	}
	return e.files[i], true
}

func (e *MemoryEdit) index(path string) int {
	return slices.IndexFunc(e.files, func(f MemoryFile) bool { return f.Path == path })
}

// Read returns the content of a file.
func (e *MemoryEdit) Read(ctx context.Context, f MemoryFile) (string, error) {
	return e.memory.Read(ctx, f)
}

// Write stores the content of a file, in place of what it had.
func (e *MemoryEdit) Write(ctx context.Context, path, content string) error {
	if len(content) > MaxMemoryFile {
		return agent.Errorf(agent.CodeTooLarge, "%s would have %d bytes; a file has at most %d: shorten it, or use several", path, len(content), MaxMemoryFile)
	}
	name, err := e.memory.log.PutBlob(ctx, e.memory.owner.name(), []byte(content))
	if err != nil {
		return err
	}
	f := MemoryFile{Path: path, Size: len(content), Version: e.version, Changed: time.Now().UTC(), Session: e.session, Chunk: name}
	e.Remove(path)
	e.put(f)
	return nil
}

func (e *MemoryEdit) put(f MemoryFile) {
	e.files = append(e.files, f)
	slices.SortFunc(e.files, func(a, b MemoryFile) int { return cmp.Compare(a.Path, b.Path) })
	e.changed = true
}

// Remove removes a file.
func (e *MemoryEdit) Remove(path string) {
	if i := e.index(path); i >= 0 {
		e.files, e.changed = slices.Delete(e.files, i, i+1), true
	}
}

// Rename gives a file another path.
func (e *MemoryEdit) Rename(from, to string) {
	if f, ok := e.Find(from); ok {
		e.Remove(from)
		f.Path, f.Version, f.Session, f.Changed = to, e.version, e.session, time.Now().UTC()
		e.put(f)
	}
}

// check returns an error if the files are too many or too large.
func (e *MemoryEdit) check() error {
	size := 0
	for _, f := range e.files {
		size += f.Size
	}
	switch {
	case len(e.files) > MaxMemoryFiles:
		return agent.Errorf(agent.CodeTooLarge, "the memory would have %d files; it has at most %d: put several into one, or delete some", len(e.files), MaxMemoryFiles)
	case size > MaxMemory:
		return agent.Errorf(agent.CodeTooLarge, "the memory would have %d bytes; it has at most %d: delete what is not needed", size, MaxMemory)
	}
	return nil
}
