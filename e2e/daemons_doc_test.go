package e2e

import (
	"fmt"
	"net"
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

// Every command of docs/callbacks.md does what the page says, in the same way.
func TestCallbacksDoc(t *testing.T) {
	at, err := net.Listen("tcp", "127.0.0.1:0") // tests of other processes may have the page's port
	require.NoError(t, err)
	require.NoError(t, at.Close())
	playPage(t, "../docs/callbacks.md", "fermata callback", "fermata callback --listen "+at.Addr().String(), "127.0.0.1:7280", at.Addr().String())
}

// playPage plays a page whose commands begin processes, which files named .pid name. swaps are texts
// in its commands, each with the one that is run.
func playPage(t *testing.T, path string, swaps ...string) {
	bin := fermata(t)
	// A server of its own: the page's worker is known as one of the task queue for a
	// while after its end.
	server, err := devserver.Start(t.Context(), &devserver.Options{InMemory: true})
	require.NoError(t, err)
	t.Cleanup(server.Stop)
	p := &page{stage: on(t, server), home: t.TempDir(), swaps: swaps}
	p.env = []string{"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"), "XDG_DATA_HOME=" + filepath.Join(p.home, "data")}
	t.Cleanup(func() { // where the page has not come to its end
		_ = exec.Command("sh", "-c", "kill $(cat "+filepath.Join(p.home, "*.pid")+")").Run()
	})
	for _, b := range docBlocks(t, path) {
		if !t.Run(fmt.Sprintf("line %d", b.line), func(t *testing.T) { p.play(t, b) }) {
			return // the others rest on it
		}
	}
}
