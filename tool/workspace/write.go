package workspace

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/fermata-agents/fermata/internal/worktree"
	"github.com/fermata-agents/fermata/tool"
)

// maxEdit is how large a file may be to replace a piece of it.
const maxEdit = 4 << 20

const writeHelp = "Writes a file of the workspace, whole or not at all, and makes missing directories. " +
	"Give either content, the whole new text, or old and new: old must occur in the file exactly once, and is replaced by new."

type writeArgs struct {
	Path    string  `json:"path" jsonschema:"the file, relative to the workspace"`
	Content *string `json:"content,omitempty" jsonschema:"the whole new text of the file"`
	Old     *string `json:"old,omitempty" jsonschema:"the text to replace, with its white space and enough around it to occur only once"`
	New     *string `json:"new,omitempty" jsonschema:"the text that replaces old; an empty text removes it"`
}

func (w *Workspace) write(ctx context.Context, _ *tool.Call, in writeArgs) (string, error) {
	w = w.at(in.Path)
	if whole, part := in.Content != nil, in.Old != nil && in.New != nil; whole == part || whole && (in.Old != nil || in.New != nil) {
		return "", refuse(WriteTool, "give either content, or both old and new")
	}
	place, err := w.place(WriteTool, in.Path)
	if err != nil {
		return "", err
	}
	if worktree.OfGit(slashed(place)) && !w.opts.AllowSensitive {
		return "", refuse(WriteTool, "%s belongs to git; change it with git commands", shown(in.Path))
	}
	info, err := w.target(in.Path, place)
	if err != nil {
		return "", err
	}
	if err := ended(ctx); err != nil {
		return "", err
	}
	if in.Content != nil {
		return w.writeWhole(in, place, info)
	}
	return w.writePart(in, place, info)
}

// target returns the file that will be replaced, or nil if there is none.
func (w *Workspace) target(path, place string) (fs.FileInfo, error) {
	info, err := w.root.Lstat(place)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, explain(WriteTool, path, err)
	}
	if err := regular(WriteTool, path, info); err != nil {
		return nil, err
	}
	// The rename below would replace a read-only file, too.
	if info.Mode()&0o200 == 0 {
		return nil, refuse(WriteTool, "%s is read-only", shown(path))
	}
	return info, nil
}

func (w *Workspace) writeWhole(in writeArgs, place string, info fs.FileInfo) (string, error) {
	if err := w.replace(place, strings.NewReader(*in.Content), modeOf(info)); err != nil {
		return "", explain(WriteTool, in.Path, err)
	}
	now := fmt.Sprintf("%s, %s", lines(*in.Content), size(int64(len(*in.Content))))
	if info == nil {
		return fmt.Sprintf("%s: created, %s", slashed(place), now), nil
	}
	return fmt.Sprintf("%s: written, %s (it had %s)", slashed(place), now, size(info.Size())), nil
}

func (w *Workspace) writePart(in writeArgs, place string, info fs.FileInfo) (string, error) {
	old, text := []byte(*in.Old), *in.New
	switch {
	case len(old) == 0:
		return "", refuse(WriteTool, "old is empty; to write a whole file, give content")
	case *in.Old == text:
		return "", refuse(WriteTool, "old and new are the same")
	case info == nil:
		return "", refuse(WriteTool, "%s does not exist; to make it, give content", shown(in.Path))
	case info.Size() > maxEdit:
		return "", refuse(WriteTool, "%s is too large to edit (%s, at most %s)", shown(in.Path), size(info.Size()), size(maxEdit))
	}
	f, info, err := w.open(WriteTool, in.Path, place)
	if err != nil {
		return "", err
	}
	was, err := io.ReadAll(io.LimitReader(f, maxEdit+1))
	f.Close()
	if err != nil {
		return "", explain(WriteTool, in.Path, err)
	}
	at := bytes.Index(was, old)
	// Contains also finds an occurrence that overlaps the first; Count does not.
	if n := bytes.Count(was, old); n != 1 || bytes.Contains(was[at+1:], old) {
		return "", refuse(WriteTool, "%s", notOnce(in.Path, was, *in.Old))
	}
	now := bytes.Join([][]byte{was[:at], was[at+len(old):]}, []byte(text))
	if err := w.replace(place, bytes.NewReader(now), modeOf(info)); err != nil {
		return "", explain(WriteTool, in.Path, err)
	}
	return fmt.Sprintf("%s: replaced %s by %s at line %d, now %s", slashed(place),
		lines(*in.Old), lines(text), 1+bytes.Count(was[:at], []byte("\n")), size(int64(len(now)))), nil
}

// notOnce says why a text can't be replaced, so that the model's next try can succeed.
func notOnce(path string, text []byte, old string) string {
	var at []string
	for from := 0; len(at) < 10; {
		i := bytes.Index(text[from:], []byte(old))
		if i < 0 {
			break
		}
		at = append(at, fmt.Sprint(1+bytes.Count(text[:from+i], []byte("\n"))))
		from += i + 1
	}
	switch {
	case len(at) > 0:
		return fmt.Sprintf("old occurs in %s more than once (lines %s); give more of its surroundings", shown(path), strings.Join(at, ", "))
	case bytes.Contains(text, []byte(strings.ReplaceAll(old, "\n", "\r\n"))):
		return fmt.Sprintf("old is not in %s as it was given: the file's lines end in CR LF", shown(path))
	}
	return fmt.Sprintf("old is not in %s; read it again, white space counts", shown(path))
}

// modeOf returns the mode of a file that is replaced; zero for a new one.
func modeOf(info fs.FileInfo) fs.FileMode {
	if info == nil {
		return 0
	}
	return info.Mode().Perm()
}

// replace replaces a file by a new one with a mode; zero leaves it to the umask. A reader sees
// the one or the other, even after a crash.
func (w *Workspace) replace(place string, text io.Reader, mode fs.FileMode) error {
	dir, err := w.walk(filepath.Dir(place), true)
	if err != nil {
		return err
	}
	defer dir.Close()
	self, _ := dir.Lstat(filepath.Base(place)) // nil if there is none
	if err := touches(w.fixed(true), dir, filepath.Base(place), self); err != nil {
		return err
	}
	// In the same directory, because a rename works only within one file system.
	temp := ".fermata-" + rand.Text() + ".tmp"
	f, err := dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, text)
	if err == nil && mode != 0 {
		// A new file gets its mode from the umask; a replaced one must stay executable.
		err = f.Chmod(mode)
	}
	if err == nil {
		// Before the rename: after a crash the name would lead to an empty file.
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = dir.Rename(temp, filepath.Base(place))
	}
	if err != nil {
		dir.Remove(temp)
	}
	return err
}

// lines counts lines as people do: the last line may lack its line end.
func lines(text string) string {
	n := strings.Count(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		n++
	}
	return count(n, "line", "lines")
}
