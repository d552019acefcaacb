package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/cmd/fermata/internal/loopback"
)

// tells makes an agents file with an agent whose model says a line at once, and ends
// long after the test.
func (b *bench) tells() {
	b.write("fermata.yaml", "agents: {teller: {model: \"script:teller.yaml\"}}\n")
	b.write("teller.yaml", "rules:\n  - {match: .*, text: \"Once\\n "+strings.Repeat("and again ", 500)+"\", stream: 500ms}\n")
}

// While the model speaks, every command that follows the run prints what it says: one
// that began it, one that comes late, and one for programs. The worker is that of dev.
func TestTextReachesEveryTerminalWhileTheModelSpeaks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.tells()
	dev := b.start("dev")
	dev.until("ready")
	b.streams(dev)
	require.NoFileExists(t, filepath.Join(b.data, "fermata", loopback.FileName))
}

// The worker is another process than the server's, and tells it what the model says.
func TestTextOfAWorkerElsewhereReachesEveryTerminal(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dev := b.start("dev") // without agents
	dev.until("ready")
	b.tells()
	w := b.start("worker")
	w.until("ready")
	b.streams(dev)
	require.Zero(t, w.end(syscall.SIGTERM).exit)
}

// A run that has a server and a worker of its own is heard from other terminals.
func TestTextOfARunWithItsOwnServerReachesAnotherTerminal(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.tells()
	run := b.start("run", "teller", "Tell me a story", "--session", "s-1")
	run.until("│ Once")
	late := b.elsewhere().start("attach", "s-1")
	late.until("│ Once")
	require.Equal(t, 130, run.end(syscall.SIGINT).exit)
	late.end(syscall.SIGINT)
}

// So is a chat: in another process than the worker's, and for who comes back to it in the
// middle of a reply.
func TestChatHearsWhatTheModelSays(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.tells()
	dev := b.start("dev")
	dev.until("ready")
	said, says, err := os.Pipe()
	require.NoError(t, err)
	chat := b.reads(said, "chat", "teller", "--session", "s-1")
	_, err = says.WriteString("Tell me a story\n")
	require.NoError(t, err)
	chat.until("│ Once")
	silence, silent, err := os.Pipe()
	require.NoError(t, err)
	late := b.elsewhere().reads(silence, "chat", "--session", "s-1")
	late.until("│ Once")
	r := b.run("cancel", "s-1", "--wait")
	require.Zero(t, r.exit, r.err)
	require.NoError(t, errors.Join(says.Close(), silent.Close()))
	for _, p := range []*process{chat, late} {
		r := p.wait()
		require.Equal(t, 4, r.exit, r.err)
		require.Equal(t, 1, strings.Count(r.out, "Once"), "nothing is told twice: %s", r.out)
	}
	require.NoError(t, errors.Join(said.Close(), silence.Close()))
	require.Zero(t, dev.end(syscall.SIGTERM).exit)
}

// streams follows a run of the teller in several ways, and ends it.
func (b *bench) streams(dev *process) {
	b.t.Helper()
	first := b.start("run", "teller", "Tell me a story", "--session", "s-1")
	first.until("│ Once")
	late := b.elsewhere().start("attach", "s-1")
	late.until("│ Once")
	programs := b.start("events", "s-1", "--follow", "--json")
	programs.until(`{"v":1,"type":"delta.text"`)
	r := b.run("cancel", "s-1", "--wait")
	require.Zero(b.t, r.exit, r.err)
	for _, p := range []*process{first, late} {
		r := p.wait()
		require.Equal(b.t, 4, r.exit, r.err)
		require.Equal(b.t, 1, strings.Count(r.out, "Once"), "nothing is told twice: %s", r.out)
	}
	require.Zero(b.t, programs.end(syscall.SIGINT).exit)
	require.Zero(b.t, dev.end(syscall.SIGTERM).exit)
}
