package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/tool"
)

const (
	maxEntries = 500    // lines of one answer
	maxDir     = 10_000 // entries that are read of one directory
	maxDepth   = 10
)

const listHelp = "Lists a directory of the workspace, sorted, with sizes; directories end in \"/\". " +
	"It names .git and node_modules below the directory, and does not enter them."

// skipped are directories that are listed but not entered.
var skipped = []string{".git", "node_modules"}

type listArgs struct {
	Path  string `json:"path,omitempty" jsonschema:"the directory, relative to the workspace; the workspace itself if left out"`
	Depth int    `json:"depth,omitempty" jsonschema:"how many levels to list, up to 10; 1 if left out"`
}

func (w *Workspace) list(ctx context.Context, _ *tool.Call, in listArgs) (string, error) {
	w = w.at(in.Path)
	if in.Depth < 0 || in.Depth > maxDepth {
		return "", refuse(ListTool, "depth is 1 to %d", maxDepth)
	}
	place, err := w.directory(ListTool, in.Path)
	if err != nil {
		return "", err
	}
	l := listing{w: w, depth: max(in.Depth, 1)}
	if err := l.add(ctx, place, 1); err != nil {
		if ctx.Err() != nil {
			return "", ended(ctx)
		}
		return "", explain(ListTool, in.Path, err)
	}
	return l.text(place), nil
}

// directory returns the place of a path that must be a directory. Without a path it is
// the workspace.
func (w *Workspace) directory(name, path string) (string, error) {
	if path == "" {
		return ".", nil
	}
	place, err := w.place(name, path)
	if err != nil {
		return "", err
	}
	info, err := w.root.Lstat(place)
	if err != nil {
		return "", explain(name, path, err)
	}
	if !info.IsDir() {
		return "", refuse(name, "%s is no directory", shown(path))
	}
	return place, nil
}

// listing collects the lines of an answer.
type listing struct {
	w     *Workspace
	depth int
	lines []string
	full  bool // there was more than fits into an answer
	huge  bool // a directory had more entries than are read
}

func (l *listing) add(ctx context.Context, dir string, level int) error {
	names, huge, err := l.w.names(dir)
	if err != nil {
		return err
	}
	l.huge = l.huge || huge
	for _, name := range names {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if len(l.lines) == maxEntries {
			l.full = true
			return nil
		}
		place := filepath.Join(dir, name)
		info, err := l.w.root.Lstat(place)
		if err != nil {
			continue // removed since
		}
		line := l.w.line(place, info)
		// A protected directory is named but not entered.
		if !info.IsDir() || l.w.protected(place) {
			l.lines = append(l.lines, line)
			continue
		}
		if level == l.depth {
			l.lines = append(l.lines, line)
			continue
		}
		if slices.Contains(skipped, name) {
			l.lines = append(l.lines, line+"  (not listed)")
			continue
		}
		at := len(l.lines)
		l.lines = append(l.lines, line)
		// The answer keeps what it has; only the end of the call stops it.
		if err := l.add(ctx, place, level+1); ctx.Err() != nil {
			return err
		} else if err != nil {
			l.lines[at] += "  (can't be read)"
		}
	}
	return nil
}

// names returns the sorted entries of a directory. Callers ask for details through the
// root: those of ReadDir might come from another directory.
func (w *Workspace) names(dir string) (names []string, huge bool, err error) {
	d, err := w.walk(dir, false)
	if err != nil {
		return nil, false, err
	}
	defer d.Close()
	f, err := d.Open(".")
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	// One more than maxDir, to notice that there are more. Only names are read: a
	// directory may be huge.
	names, err = f.Readdirnames(maxDir + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	if huge = len(names) > maxDir; huge {
		names = names[:maxDir]
	}
	slices.Sort(names)
	return names, huge, nil
}

func (w *Workspace) line(place string, info fs.FileInfo) string {
	name := slashed(place)
	// A line break in a name must not look like another entry.
	if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		name = fmt.Sprintf("%q", name)
	}
	protected := ""
	if w.protected(place) {
		protected = "  (protected)"
	}
	switch {
	case info.IsDir():
		return name + "/" + protected
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := w.root.Readlink(place)
		if err != nil {
			target = "?"
		}
		return fmt.Sprintf("%s -> %s%s", name, shown(target), protected)
	case !info.Mode().IsRegular():
		return fmt.Sprintf("%s  (%s)", name, info.Mode().Type())
	}
	return fmt.Sprintf("%s  %s%s", name, size(info.Size()), protected)
}

// text returns the answer. It begins with what was left out.
func (l *listing) text(place string) string {
	name := slashed(place)
	if name == "." {
		name = "the workspace"
	}
	head := fmt.Sprintf("[%s: %s", name, count(len(l.lines), "entry", "entries"))
	if l.full {
		head = fmt.Sprintf("[%s: the first %d entries; more were left out: list a directory of it, with less depth", name, len(l.lines))
	}
	if l.huge {
		head += fmt.Sprintf("; a directory has more than %d entries, and the others were not read", maxDir)
	}
	return strings.Join(append([]string{head + "]"}, l.lines...), "\n")
}
