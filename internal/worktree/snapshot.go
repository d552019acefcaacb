package worktree

import (
	"bufio"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// Modes of files.
const (
	Regular    = "100644"
	Executable = "100755"
	Symlink    = "120000" // its bytes are the target
)

// File is an open file.
type File struct {
	Mode string
	Size int64 // bytes
	io.ReadCloser
}

// id reads the file and returns the id of its object.
func (f *File) id() (string, error) {
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", f.Size)
	_, err := io.CopyN(h, f, f.Size)
	return hex.EncodeToString(h.Sum(nil)), err
}

// Files are those of a directory that others may write. Paths have slashes.
type Files interface {
	// List returns the names in a directory, at most a number of them; none for what is no directory.
	List(dir string, most int) ([]Name, error)
	// Open opens a file; nil for what is no regular file or symlink.
	Open(path string) (*File, error)
	// Skip reports whether to leave out a path that no earlier copy has.
	Skip(path string) bool
}

// Name is a name in a directory.
type Name struct {
	Name string
	Dir  bool
}

// Snapshot says what to copy into a repository.
type Snapshot struct {
	Files Files
	// From is the commit that the copy follows; empty for none. Its files are copied even if a
	// .gitignore names them now.
	From    string
	Ref     string // the reference that is set to the copy
	Message string
	Temp    string // a directory in which the copy may make a temporary one
}

// Limits of a snapshot.
const (
	maxNames = 200_000
	maxDepth = 100
	maxPath  = 2048
	maxFile  = 32 << 20  // bytes of one file
	maxTotal = 256 << 20 // bytes of all files
)

func tooLarge(format string, args ...any) error {
	return agent.Errorf(agent.CodeTooLarge, format+": name what is generated in .gitignore", args...)
}

// Snapshot copies files into the repository and returns the commit.
func (r *Repo) Snapshot(ctx context.Context, s Snapshot) (string, error) {
	paths, err := r.paths(ctx, s)
	if err != nil {
		return "", err
	}
	read, write := io.Pipe()
	streamed := make(chan error, 1)
	go func() {
		err := s.stream(write, paths)
		write.CloseWithError(err)
		streamed <- err
	}()
	out, err := r.run(ctx, read, "fast-import", "--quiet", "--force", "--done", "--date-format=raw")
	read.Close() // ends the stream if git has not read all of it
	if cause := <-streamed; cause != nil && !errors.Is(cause, io.ErrClosedPipe) {
		return "", cause
	}
	return strings.TrimSpace(string(out)), err
}

// paths returns what to copy: the files of From, and those that no .gitignore names.
func (r *Repo) paths(ctx context.Context, s Snapshot) ([]string, error) {
	found := map[string]bool{}
	if s.From != "" {
		tree, err := r.Tree(ctx, s.From)
		if err != nil {
			return nil, err
		}
		for _, e := range tree {
			found[e.Path] = true
		}
	}
	ignores, err := r.readIgnores(ctx, s.Temp)
	if err != nil {
		return nil, err
	}
	defer ignores.close()
	w := walk{files: s.Files, ignores: ignores, found: found}
	if err := w.enter("", 0); err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// walk looks for files that no .gitignore names.
type walk struct {
	files   Files
	ignores *ignores
	found   map[string]bool
	names   int
}

func (w *walk) enter(dir string, depth int) error {
	if depth > maxDepth || len(dir) > maxPath {
		return tooLarge("the workspace has directories that are nested more than %d deep, or paths of more than %d bytes", maxDepth, maxPath)
	}
	names, err := w.files.List(dir, maxNames+1-w.names)
	if err != nil {
		return err
	}
	if w.names += len(names); w.names > maxNames {
		return tooLarge("the workspace has more than %d files", maxNames)
	}
	if err := w.ignores.enter(w.files, dir); err != nil {
		return err
	}
	for _, n := range names {
		at := path.Join(dir, n.Name)
		if OfGit(n.Name) || w.files.Skip(at) || w.found[at] && !n.Dir {
			continue
		}
		ignored, err := w.ignores.has(at, n.Dir)
		switch {
		case err != nil:
			return err
		case ignored:
		case n.Dir:
			if err := w.enter(at, depth+1); err != nil {
				return err
			}
		default:
			w.found[at] = true
		}
	}
	return nil
}

// stream writes the commands of fast-import.
func (s Snapshot) stream(to io.Writer, paths []string) error {
	w := bufio.NewWriterSize(to, 64<<10)
	fmt.Fprintf(w, "commit %s\nmark :1\ncommitter Fermata <fermata@localhost> %d +0000\ndata %d\n%s\n", s.Ref, time.Now().Unix(), len(s.Message), s.Message)
	if s.From != "" {
		fmt.Fprintf(w, "from %s\n", s.From)
	}
	w.WriteString("deleteall\n")
	var total int64
	for _, at := range paths {
		n, err := s.write(w, at)
		if err != nil {
			return err
		}
		if total += n; total > maxTotal {
			return tooLarge("the workspace's files have more than %d bytes", int64(maxTotal))
		}
	}
	w.WriteString("get-mark :1\ndone\n")
	return w.Flush()
}

// write writes one file and returns its size.
func (s Snapshot) write(w *bufio.Writer, at string) (int64, error) {
	f, err := s.Files.Open(at)
	if err != nil || f == nil {
		return 0, err
	}
	defer f.Close()
	switch {
	case f.Mode == Symlink && strings.EqualFold(path.Base(at), ".gitmodules"): // git refuses it in an index
		return 0, nil
	case f.Size > maxFile:
		return 0, tooLarge("%s has more than %d bytes", quoted(at), maxFile)
	}
	fmt.Fprintf(w, "M %s inline %s\ndata %d\n", f.Mode, quoted(at), f.Size)
	if _, err := io.CopyN(w, f, f.Size); err != nil {
		return 0, fmt.Errorf("%s changed while it was copied: %w", quoted(at), err)
	}
	return f.Size, w.WriteByte('\n')
}

// quoted returns a path as fast-import reads it.
func quoted(path string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range []byte(path) {
		if c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			fmt.Fprintf(&b, "\\%03o", c)
		} else {
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
