package memory

import (
	"context"
	"fmt"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/store"
)

// view shows a file with the numbers of its lines, or the files of a folder.
func (c Command) view(ctx context.Context, m *store.Memory) (string, error) {
	files, _, err := m.List(ctx)
	if err != nil {
		return "", err
	}
	for _, f := range files {
		if f.Path == c.Path {
			text, err := m.Read(ctx, f)
			if err != nil {
				return "", err
			}
			return c.numbered(f, text)
		}
	}
	found := below(files, c.Path)
	if len(found) == 0 && c.Path != store.MemoryRoot {
		return "", absent(c.Path)
	}
	return listed(c.Path, found), nil
}

// listed is the view of a folder.
func listed(path string, files []store.MemoryFile) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Here're the files in %s, with their sizes in bytes and their versions:", path)
	for _, f := range files {
		fmt.Fprintf(&b, "\n%d\t%s\tversion %d", f.Size, f.Path, f.Version)
	}
	if len(files) == 0 {
		b.WriteString("\nnone yet")
	}
	return b.String()
}

func (c Command) numbered(f store.MemoryFile, text string) (string, error) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	from, to := 1, len(lines)
	if len(c.ViewRange) > 0 {
		if len(c.ViewRange) != 2 {
			return "", agent.Errorf(agent.CodeInvalidInput, "view_range has two numbers, the first and the last line")
		}
		from, to = c.ViewRange[0], c.ViewRange[1]
		if to == -1 || to > len(lines) {
			to = len(lines)
		}
		if from < 1 || from > to {
			return "", agent.Errorf(agent.CodeInvalidInput, "Invalid `view_range`: %v. The file has the lines 1 to %d", c.ViewRange, len(lines))
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Here's the content of %s with line numbers (version %d):", f.Path, f.Version)
	for i, line := range lines[from-1 : to] {
		fmt.Fprintf(&b, "\n%6d\t%s", from+i, line)
	}
	return b.String(), nil
}
