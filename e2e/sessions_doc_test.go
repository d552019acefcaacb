package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Every command of docs/sessions.md does what the page says, in an empty directory
// and in the page's order. Its comments are those of [TestTemporalDoc] (HX-93).
func TestSessionsDoc(t *testing.T) {
	t.Parallel()
	bin := fermata(t)
	p := &page{stage: on(t, shared(t)), home: t.TempDir()}
	p.env = []string{"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"), "XDG_DATA_HOME=" + filepath.Join(p.home, "data")}
	for _, b := range docBlocks(t, "../docs/sessions.md") {
		if !t.Run(fmt.Sprintf("line %d", b.line), func(t *testing.T) { p.play(t, b) }) {
			return // the others rest on it
		}
	}
}
