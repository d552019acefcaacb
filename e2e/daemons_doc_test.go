package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/devserver"
)

// Every command of docs/daemons.md does what the page says, in an empty directory and
// in the page's order. Its comments are those of [TestTemporalDoc].
func TestDaemonsDoc(t *testing.T) { playPage(t, "../docs/daemons.md") }

// Every command of docs/holding.md does what the page says, in the same way.
func TestHoldingCommands(t *testing.T) { playPage(t, "../docs/holding.md") }

// Every command of docs/evaluation.md does what the page says, in the same way.
func TestEvaluationDoc(t *testing.T) { playPage(t, "../docs/evaluation.md") }

// playPage plays a page whose commands begin a worker, which worker.pid names.
func playPage(t *testing.T, path string) {
	bin := fermata(t)
	// A server of its own: the page's worker is known as one of the task queue for a
	// while after its end.
	server, err := devserver.Start(t.Context(), &devserver.Options{InMemory: true})
	require.NoError(t, err)
	t.Cleanup(server.Stop)
	p := &page{stage: on(t, server), home: t.TempDir()}
	p.env = []string{"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"), "XDG_DATA_HOME=" + filepath.Join(p.home, "data")}
	t.Cleanup(func() { // where the page has not come to its end
		_ = exec.Command("sh", "-c", "kill $(cat "+filepath.Join(p.home, "worker.pid")+")").Run()
	})
	for _, b := range docBlocks(t, path) {
		if !t.Run(fmt.Sprintf("line %d", b.line), func(t *testing.T) { p.play(t, b) }) {
			return // the others rest on it
		}
	}
}
