package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/worker"
)

// remembers is a call of the tool memory.
func remembers(command, path string, more ...string) []testsuite.Call {
	arguments := map[string]any{"command": command, "path": path}
	for i := 0; i+1 < len(more); i += 2 {
		arguments[more[i]] = more[i+1]
	}
	return call(agent.MemoryTool, arguments)
}

// fileOf returns the text of a file that an agent remembers for a principal; empty if there is none.
func fileOf(t *testing.T, s store.Store, principal, name, path string) string {
	t.Helper()
	m, err := store.NewLog(s).Memory(store.MemoryOwner{Principal: principal, Agent: name})
	require.NoError(t, err)
	files, _, err := m.List(t.Context())
	require.NoError(t, err)
	for _, f := range files {
		if f.Path == path {
			text, err := m.Read(t.Context(), f)
			require.NoError(t, err)
			return text
		}
	}
	return ""
}

// What one session writes down, the next session of the same principal reads, and nobody else: no
// other principal, no other agent, no path that leads elsewhere. A session stays that of who started
// it, and a fork is that of who starts the fork. What another session has changed is not deleted unseen.
func TestMemoryOverSessions(t *testing.T) {
	t.Parallel()
	const notes = "/memories/notes.md"
	script := testsuite.NewScript(
		testsuite.Reply{Match: "^Write", Calls: remembers("create", notes, "file_text", "canary-4711\n")},
		testsuite.Reply{Match: "^Read", Calls: remembers("view", notes)},
		testsuite.Reply{Match: "^Escape", Calls: append(remembers("view", "/memories/../ana/notes.md"), append(remembers("view", "/memories/%2e%2e/a"), remembers("create", "/etc/passwd", "file_text", "x")...)...)},
		testsuite.Reply{Match: "^Delete", Calls: remembers("delete", notes)},
		testsuite.Reply{Match: ".*", Text: "done"},
	)
	s := setup(t, agent.Definition{Tools: []string{agent.MemoryTool}}, script)
	said := func(session, by, text string) string {
		_, out := s.run(t, text, &client.StartOptions{Session: session, By: by})
		require.Equal(t, agent.StatusCompleted, out.Status, "%v", out.Err())
		asked := script.Requests()
		results := resultsIn(asked[len(asked)-1])
		return strings.Join(results[max(0, len(results)-3):], "\n")
	}
	require.Equal(t, "File created successfully at: "+notes, said("first", "ana", "Write it."))
	require.Contains(t, said("second", "ana", "Read it."), "     1\tcanary-4711")
	require.Contains(t, said("third", "bob", "Read it."), "The path "+notes+" does not exist.")
	require.Contains(t, said("third", "ana", "Read it."), "does not exist", "a session stays that of who started it")
	require.Contains(t, said("fourth", "", "Read it."), "does not exist")
	escaped := said("fifth", "bob", "Escape.")
	require.Equal(t, 3, strings.Count(escaped, "; a path is like /memories/notes.md"), escaped)
	require.Contains(t, said("second", "ana", "Delete it."), `delete it with "version": 1`, "the first session wrote it")
	require.Equal(t, "canary-4711\n", fileOf(t, s.dir, "ana", "tester", notes))
	require.Empty(t, fileOf(t, s.dir, "ana", "other", notes))

	anew, err := s.Fork(t.Context(), "first", &client.ForkOptions{NewSession: true, Session: "memory-forked", Text: "Read it.", By: "bob"})
	require.NoError(t, err)
	run, err := anew.Start(t.Context())
	require.NoError(t, err)
	out, err := run.Result(t.Context())
	require.NoError(t, err)
	require.Equal(t, agent.StatusCompleted, out.Status, "%v", out.Err())
	asked := script.Requests()
	results := resultsIn(asked[len(asked)-1])
	require.Contains(t, results[len(results)-1], "does not exist", "bob's fork of ana's session")
}

// memoryEnv makes this test binary a worker that kills itself within its second write to a memory.
const memoryEnv = "FERMATA_E2E_MEMORY" // ADDR|QUEUE|DIR|before, or after

// dying is a store whose process is killed at the second version of a memory: before it is stored, or after.
type dying struct {
	store.Store
	when string
}

func (d dying) PutHead(ctx context.Context, h store.Head) error {
	dies := strings.HasPrefix(h.Session, "_memory/") && h.Version == 2
	if dies && d.when == "before" {
		killSelf()
	}
	err := d.Store.PutHead(ctx, h)
	if dies && d.when == "after" {
		killSelf()
	}
	return err
}

func killSelf() {
	p, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = p.Kill()
	}
	fmt.Fprintln(os.Stderr, "killed:", err)
	select {}
}

func keepsMemory(s store.Store) *worker.Options {
	const path = "/memories/a.md"
	script := testsuite.NewScript(
		testsuite.Reply{Calls: remembers("create", path, "file_text", "one\n")},
		testsuite.Reply{Calls: call(agent.MemoryTool, map[string]any{"command": "insert", "path": path, "insert_line": 1, "insert_text": "two"})},
		testsuite.Reply{Calls: remembers("str_replace", path, "old_str", "two", "new_str", "three")},
		testsuite.Reply{Text: "kept"},
	)
	return &worker.Options{
		Store: s, Logger: zap.NewNop(), Models: map[string]model.Model{"script": script}, Temporal: stopsSoon,
		Agents: []agent.Definition{{Name: "keeper", Model: "script", Tools: []string{agent.MemoryTool}}},
	}
}

func keepUntilKilled(spec string) error {
	f := strings.Split(spec, "|")
	c, err := remote(f[0]).Dial(context.Background(), connection(slog.DiscardHandler))
	if err != nil {
		return err
	}
	st, _, err := openStore(f[2])
	if err != nil {
		return err
	}
	o := keepsMemory(dying{st, f[3]})
	o.TaskQueue = f[1]
	return workFor(c, o)
}

// A worker is killed with -9 in the middle of a write to a memory. The next worker makes the call
// again, and the write is there once, whether or not the first worker had stored it.
func TestAWorkerKilledInAMemoryWrite(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"before", "after"} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			s := on(t, shared(t))
			dir := t.TempDir()
			st := stored(t, dir)
			cl := client.New(s.temporal, &client.Options{TaskQueue: s.queue, Store: st})
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), memoryEnv+"="+strings.Join([]string{s.addr, s.queue, dir, when}, "|"))
			ended := ready(t, cmd)
			run, err := cl.Start(t.Context(), "keeper", "Keep it.", &client.StartOptions{Session: s.queue, By: "ana"})
			require.NoError(t, err)
			<-ended
			require.Equal(t, map[string]string{"before": "one\n", "after": "one\ntwo\n"}[when], fileOf(t, st, "ana", "keeper", "/memories/a.md"))
			o := keepsMemory(st)
			o.TaskQueue = s.queue
			w, err := worker.New(s.temporal, o)
			require.NoError(t, err)
			require.NoError(t, w.Start(t.Context()))
			t.Cleanup(w.Stop)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			out, err := run.Result(ctx)
			require.NoError(t, err)
			require.Equal(t, agent.StatusCompleted, out.Status, "%v", out.Err())
			require.Equal(t, []agent.ToolCount{{Tool: agent.MemoryTool, Calls: 3, OK: 3}}, out.Tools)
			require.Equal(t, "one\nthree\n", fileOf(t, st, "ana", "keeper", "/memories/a.md"))
		})
	}
}
