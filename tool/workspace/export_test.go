package workspace

import (
	"io"
	"strings"

	"github.com/fermata-agents/fermata/internal/confine"
)

// Place is what the tools resolve a path with.
func (w *Workspace) Place(path string) (string, error) { return w.place("test", path) }

// Unhold makes the workspace believe that the kernel lacks Landlock.
func (w *Workspace) Unhold() { w.kernel.Landlock = 0 }

// Names says which processes could not be ended.
func Names(left ...confine.Survivor) string { return names(left) }

// Open reads a place that was resolved before, Replace writes it.
func (w *Workspace) Open(place string) (string, error) {
	f, _, err := w.open("test", place, place)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	return string(text), err
}

func (w *Workspace) Replace(place, text string) error {
	return w.replace(place, strings.NewReader(text), 0)
}
