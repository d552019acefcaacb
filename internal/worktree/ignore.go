package worktree

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// ignores asks git which paths a .gitignore names. Git sees copies of these files in a directory of the
// runtime's own, and no other file.
type ignores struct {
	dir  string
	root *os.Root
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
}

// maxIgnore bounds one .gitignore, in bytes.
const maxIgnore = 256 << 10

func (r *Repo) readIgnores(ctx context.Context, temp string) (_ *ignores, err error) {
	g := &ignores{}
	defer func() {
		if err != nil {
			g.discard()
		}
	}()
	if g.dir, err = os.MkdirTemp(temp, ".new-"); err != nil {
		return nil, err
	}
	if g.root, err = os.OpenRoot(g.dir); err != nil {
		return nil, err
	}
	g.cmd = r.command(ctx, "--work-tree="+g.dir, "check-ignore", "--no-index", "--stdin", "-z", "--verbose", "--non-matching")
	g.cmd.Dir = g.dir
	in, err := g.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := g.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	g.in, g.out = in, bufio.NewReader(out)
	return g, g.cmd.Start()
}

func (g *ignores) close() {
	g.in.Close()
	_ = g.cmd.Wait() // its answers are complete, or has has returned the error
	g.discard()
}

func (g *ignores) discard() {
	if g.root != nil {
		g.root.Close()
	}
	os.RemoveAll(g.dir)
}

// enter copies the .gitignore of a directory.
func (g *ignores) enter(files Files, dir string) error {
	at := path.Join(dir, ".gitignore")
	f, err := files.Open(at)
	if err != nil || f == nil {
		return err
	}
	defer f.Close()
	switch {
	case f.Mode == Symlink: // git reads none either
		return nil
	case f.Size > maxIgnore:
		return tooLarge("%s has more than %d bytes", quoted(at), maxIgnore)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxIgnore))
	if err != nil {
		return err
	}
	return g.root.WriteFile(filepath.FromSlash(at), text, 0o600)
}

// has reports whether git ignores a path. The directory in which it lies was entered.
func (g *ignores) has(at string, dir bool) (bool, error) {
	if dir { // a pattern may be only for directories
		if err := g.root.Mkdir(filepath.FromSlash(at), 0o700); err != nil {
			return false, err
		}
	}
	// The "./" keeps git from reading a name that begins with a colon as a pattern.
	if _, err := io.WriteString(g.in, "./"+at+"\x00"); err != nil {
		return false, fmt.Errorf("git check-ignore: %w", err)
	}
	var answer [4]string // the file, its line, the pattern, the path
	for i := range answer {
		text, err := g.out.ReadString(0)
		if err != nil {
			return false, fmt.Errorf("git check-ignore: %w", err)
		}
		answer[i] = strings.TrimSuffix(text, "\x00")
	}
	pattern := answer[2]
	return pattern != "" && !strings.HasPrefix(pattern, "!"), nil
}
