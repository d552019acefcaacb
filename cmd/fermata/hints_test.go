package main

import (
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
)

// hinted returns the arguments of the command line that a text hints at: what is typed after fermata.
func hinted(t *testing.T, text, line string) []string {
	t.Helper()
	found := regexp.MustCompile(line).FindStringSubmatch(text)
	require.Len(t, found, 2, "%s in\n%s", line, text)
	return strings.Fields(found[1])
}

// askers is a project whose agents file has no usual name.
func askers(b *bench) {
	b.write("team.yaml", "agents: {asker: {model: \"script:asker.yaml\", tools: [ask_user]}}\nas_root: true\n")
	b.write("asker.yaml", "replies: [{calls: [{tool: ask_user, arguments: {question: \"Which till?\"}}]}, {text: \"Till 7.\"}]\n")
}

// The commands that a run of an own agents file prints are copied as they are, top down.
func TestHintsOfAnEmbeddedRunWorkAsTheyStand(t *testing.T) {
	t.Parallel()
	b := setup(t)
	askers(b)
	r := b.run("run", "asker", "Call the till.", "--session", "s-1", "--agents", "team.yaml", "--task-queue", "tills", "--data", "own")
	require.Equal(t, 3, r.exit, r.out+r.err)
	dev := b.start(hinted(t, r.out, `(?m)^  fermata (dev .*\S)   # first`)...)
	dev.until("ready")
	answer := strings.Split(strings.Join(hinted(t, r.out, `(?m)^  fermata (answer .*)$`), " "), " '…' ")
	require.Len(t, answer, 2, r.out)
	words := append(append(strings.Fields(answer[0]), "7"), strings.Fields(answer[1])...)
	r = b.run(append(words, "--wait")...)
	require.Zero(t, r.exit, r.out+r.err)
	require.Contains(t, r.out, "Till 7.")
	require.Zero(t, dev.end(syscall.SIGINT).exit)
}

// A detached run of a server that ends with the command waits for a server, and not only for a worker.
func TestADetachedRunOfTheCommandsOwnServerSaysWhatToStart(t *testing.T) {
	t.Parallel()
	b := setup(t)
	askers(b)
	r := b.run("run", "asker", "x", "--detach", "--session", "s-1", "--task-queue", "tills", "--data", "own")
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.err, "the run waits for fermata dev --agents FILE --task-queue tills --data own\n")
	require.NotContains(t, r.err, "fermata worker")
	r = b.run("run", "asker", "x", "--detach", "--session", "s-2", "--task-queue", "tills", "--data", "own", "--agents", "team.yaml")
	require.Zero(t, r.exit, r.err)
	dev := b.start(hinted(t, r.err, `(?m)the run waits for fermata (dev .*)$`)...)
	dev.until("ready")
	for _, session := range []string{"s-1", "s-2"} {
		r = b.run("wait", session, "--task-queue", "tills", "--data", "own")
		require.Equal(t, 3, r.exit, r.err)
		require.Contains(t, r.out, "Which till?")
	}
	require.Zero(t, dev.end(syscall.SIGINT).exit)
}

// What dev says to try finds its server, its task queue and its agents.
func TestWhatDevSaysToTryWorks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	askers(b)
	b.write("fermata.yaml", "agents: {other: {model: \"script:asker.yaml\"}}\n")
	dev := b.start("dev", "--agents", "team.yaml", "--task-queue", "tills", "--data", "own")
	dev.until("ready")
	dev.mu.Lock()
	out := dev.out.String()
	dev.mu.Unlock()
	r := b.run(hinted(t, out, `(?m)^try +fermata (run asker .*) in another terminal`)...)
	require.Equal(t, 3, r.exit, r.out+r.err)
	require.Contains(t, r.err, "\nworker ")

	// A worker of another file says what both names are.
	r = b.run("run", "other", "x", "--task-queue", "tills", "--data", "own")
	require.Equal(t, 6, r.exit, r.err)
	require.Contains(t, r.err, "team.yaml, use another --task-queue, or stop that worker")
	require.Zero(t, dev.end(syscall.SIGINT).exit)
}

// Leaving a run says what to start with the same agents.
func TestLeavingARunNamesItsAgents(t *testing.T) {
	c := &cli{Connector: &connect.Connector{}, agents: "my team.yaml"}
	require.Equal(t, "fermata dev --agents 'my team.yaml'", c.devLine())
	require.Equal(t, "fermata worker --agents 'my team.yaml'", c.workerLine())
	t.Chdir(t.TempDir())
	c.agents = ""
	require.Equal(t, "fermata dev --agents FILE", c.devLine())
	writeFile(t, "fermata.yaml", "agents: {}\n")
	require.Equal(t, "fermata dev", c.devLine())
}
