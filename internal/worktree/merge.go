package worktree

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/fermata-agents/fermata/agent"
)

// Entry is a file of a tree.
type Entry struct{ Mode, ID, Path string }

// Tree returns the files of a commit.
func (r *Repo) Tree(ctx context.Context, commit string) (list []Entry, err error) {
	out, err := r.run(ctx, nil, "ls-tree", "-r", "-z", commit)
	if err != nil {
		return nil, err
	}
	for line := range strings.SplitSeq(string(out), "\x00") {
		head, path, ok := strings.Cut(line, "\t")
		if f := strings.Fields(head); ok && len(f) == 3 {
			list = append(list, Entry{Mode: f[0], ID: f[2], Path: path})
		}
	}
	return list, nil
}

// CheckOut writes the files of a commit into an empty directory, byte for byte, and makes the index of
// these files.
func (r *Repo) CheckOut(ctx context.Context, commit, dir string) error {
	tree, err := r.Tree(ctx, commit)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	ids := make([]string, len(tree))
	for i, e := range tree {
		ids[i] = e.ID
	}
	if err := r.Blobs(ctx, ids, func(i int, body io.Reader) error { return writeNew(root, tree[i], body) }); err != nil {
		return err
	}
	if _, err := r.run(ctx, nil, "read-tree", commit); err != nil {
		return err
	}
	_, err = r.run(ctx, nil, "--work-tree="+dir, "update-index", "-q", "--refresh") // else each status reads all files
	return err
}

func writeNew(root *os.Root, e Entry, body io.Reader) error {
	place := filepath.FromSlash(e.Path)
	if err := root.MkdirAll(filepath.Dir(place), 0o777); err != nil {
		return err
	}
	mode := fs.FileMode(0o666)
	switch e.Mode {
	case Symlink:
		target, err := io.ReadAll(body)
		if err != nil {
			return err
		}
		return root.Symlink(string(target), place)
	case Executable:
		mode = 0o777
	}
	f, err := root.OpenFile(place, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, body)
	return errors.Join(err, f.Close())
}

// Merge merges two commits. It returns the tree, or the paths in conflict.
func (r *Repo) Merge(ctx context.Context, ours, theirs string) (tree string, conflicts []string, err error) {
	out, err := r.run(ctx, nil, "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs)
	fields := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	var exit *exec.ExitError
	switch {
	case err == nil:
		return strings.TrimSpace(fields[0]), nil, nil
	case errors.As(err, &exit) && exit.ExitCode() == 1 && len(fields) > 1:
		return "", fields[1:], nil
	}
	return "", nil, err
}

// Change is a file that differs between two trees. An empty mode and id mean that there is none.
type Change struct {
	Path           string
	OldMode, OldID string
	NewMode, NewID string
}

// Plain reports whether the change is between regular files.
func (c Change) Plain() bool {
	plain := func(mode string) bool { return mode == "" || mode == Regular || mode == Executable }
	return plain(c.OldMode) && plain(c.NewMode)
}

// Is reports whether a file is the old or the new one; nil is no file. It reads the file.
func (c Change) Is(f *File) (old, now bool, err error) {
	mode, id := "", ""
	if f != nil {
		mode = f.Mode
		if id, err = f.id(); err != nil {
			return false, false, err
		}
	}
	return mode == c.OldMode && id == c.OldID, mode == c.NewMode && id == c.NewID, nil
}

// Diff returns what differs between two trees.
func (r *Repo) Diff(ctx context.Context, old, now string) (list []Change, err error) {
	out, err := r.run(ctx, nil, "diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", "--no-ext-diff", old, now)
	if err != nil {
		return nil, err
	}
	fields := strings.Split(string(out), "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		f := strings.Fields(strings.TrimPrefix(fields[i], ":"))
		if len(f) != 5 {
			return nil, agent.Errorf(agent.CodeInternal, "git diff-tree answered %q", fields[i])
		}
		c := Change{Path: fields[i+1], OldMode: f[0], NewMode: f[1], OldID: f[2], NewID: f[3]}
		if c.OldMode == "000000" {
			c.OldMode, c.OldID = "", ""
		}
		if c.NewMode == "000000" {
			c.NewMode, c.NewID = "", ""
		}
		list = append(list, c)
	}
	return list, nil
}

// Blobs reads objects, one after the other.
func (r *Repo) Blobs(ctx context.Context, ids []string, take func(i int, body io.Reader) error) error {
	if len(ids) == 0 {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	cmd := r.command(ctx, "cat-file", "--batch")
	cmd.Stdin = strings.NewReader(strings.Join(ids, "\n") + "\n")
	pipe, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		return err
	}
	defer cmd.Wait()
	defer cancel() // git may not have written all of it
	out := bufio.NewReader(pipe)
	for i := range ids {
		head, err := out.ReadString('\n')
		if err != nil {
			return fmt.Errorf("git cat-file: %w", err)
		}
		var size int64
		if _, err := fmt.Sscanf(head, ids[i]+" blob %d\n", &size); err != nil {
			return fmt.Errorf("git cat-file: %s is no file of the repository", ids[i])
		}
		body := io.LimitedReader{R: out, N: size}
		if err := take(i, &body); err != nil {
			return err
		}
		if body.N > 0 {
			return fmt.Errorf("git cat-file: %w", io.ErrUnexpectedEOF)
		}
		if _, err := out.Discard(1); err != nil { // the line end
			return fmt.Errorf("git cat-file: %w", err)
		}
	}
	return nil
}
