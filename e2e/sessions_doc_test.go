package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every command of docs/sessions.md does what the page says, in an empty directory
// and in the page's order. Its comments are those of [TestTemporalDoc] (HX-93).
func TestSessionsDoc(t *testing.T) {
	bin := t.TempDir()
	built, err := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(bin, "fermata"), "github.com/fermata-agents/fermata/cmd/fermata").CombinedOutput()
	require.NoError(t, err, "%s", built)
	p := &page{stage: on(t, shared(t)), home: t.TempDir()}
	p.env = []string{"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"), "XDG_DATA_HOME=" + filepath.Join(p.home, "data")}
	for _, b := range docBlocks(t, "../docs/sessions.md") {
		if !t.Run(fmt.Sprintf("line %d", b.line), func(t *testing.T) { p.play(t, b) }) {
			return // the others rest on it
		}
	}
}
