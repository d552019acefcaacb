package e2e

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool/workspace"
	"github.com/fermata-agents/fermata/worker"
)

// eyes is a workspace that counts the looks at its files.
type eyes struct {
	*workspace.Workspace
	looks atomic.Int64
	// look is called in each look, with its number.
	look func(n int64)
}

func (e *eyes) Watch(ctx context.Context, paths []string, marks []agent.FileMark) (agent.FilesSeen, error) {
	e.look(e.looks.Add(1))
	return e.Workspace.Watch(ctx, paths, marks)
}

// watchesFiles are the options of a worker whose daemon watches the directory inbox.
func watchesFiles(s store.Store, queue, dir string, look func(int64)) (*worker.Options, *eyes, *testsuite.Script, error) {
	w, err := workspace.Open(dir, &workspace.Options{AsRoot: true})
	if err != nil {
		return nil, nil, nil, err
	}
	e := &eyes{Workspace: w, look: look}
	script := testsuite.NewScript(testsuite.Reply{Text: "I see.", Repeat: 100})
	return &worker.Options{
		TaskQueue: queue, Store: s, Logger: zap.NewNop(), Models: map[string]model.Model{"script": script}, Temporal: stopsSoon, Workspaces: e,
		Agents: []agent.Definition{{Name: "watcher", Model: "script", Daemon: &agent.Daemon{Watch: []string{"inbox"}, WatchEvery: agent.Duration(2 * time.Second), Every: agent.Duration(time.Hour), Watchdog: 1}}},
	}, e, script, nil
}

// news are the messages about changed files that a daemon was woken with.
func (s *stage) news(t *testing.T, session string) (all []string) {
	t.Helper()
	messages, err := s.Transcript(t.Context(), session)
	require.NoError(t, err)
	for _, m := range messages {
		if m.Note == agent.NoteWake {
			text, _, _ := strings.Cut(m.Text(), " It is ")
			all = append(all, text)
		}
	}
	return all
}

// A daemon watches a directory of its worker's workspace while it idles. A file that comes wakes it, and
// the message names it; looks that see no change call no model. What is outside of the workspace is not
// seen behind a symlink. A paused daemon does not look, and notices afterwards what has changed
// meanwhile (HA-91).
func TestADaemonWatchesFiles(t *testing.T) {
	t.Parallel()
	s := on(t, shared(t))
	t.Cleanup(func() { s.replay(t) })
	dir, outside := t.TempDir(), t.TempDir()
	write := func(dir, name string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600))
	}
	inbox := filepath.Join(dir, "inbox")
	require.NoError(t, os.Mkdir(inbox, 0o700))
	require.NoError(t, os.Symlink(outside, filepath.Join(inbox, "out")))
	write(inbox, "old.txt")
	o, e, script, err := watchesFiles(s.store, s.queue, dir, func(int64) {})
	require.NoError(t, err)
	t.Cleanup(func() { e.Close() })
	w, err := worker.New(s.temporal, o)
	require.NoError(t, err)
	require.NoError(t, w.Start(t.Context()))
	t.Cleanup(w.Stop)
	looksOnce := func(more int64) {
		t.Helper()
		from := e.looks.Load()
		require.Eventually(t, func() bool { return e.looks.Load() >= from+more }, patience, 20*time.Millisecond)
	}

	run, err := s.Start(t.Context(), "watcher", "", &client.StartOptions{Session: s.queue})
	require.NoError(t, err)
	s.idles(t, run)
	st, err := run.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"inbox"}, st.Watch)
	looksOnce(2)
	write(outside, "secret.txt")
	looksOnce(2)
	require.Empty(t, script.Requests(), "nothing has changed")
	write(inbox, "a.txt")
	require.Eventually(t, func() bool { return len(script.Requests()) == 1 }, patience, 20*time.Millisecond)
	s.idles(t, run)
	require.Equal(t, []string{`Files that you watch have changed: "inbox/a.txt".`}, s.news(t, s.queue))

	_, err = run.Pause(t.Context(), "lunch", nil)
	require.NoError(t, err)
	looked := e.looks.Load() // one may be in flight, whose result does not count
	write(inbox, "b.txt")
	require.Never(t, func() bool { return e.looks.Load() > looked+1 }, 6*time.Second, 50*time.Millisecond)
	require.Len(t, script.Requests(), 1)
	_, err = s.Daemon(s.queue).Resume(t.Context(), nil)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(script.Requests()) == 2 }, patience, 20*time.Millisecond)
	s.idles(t, run)
	require.Equal(t, `Files that you watch have changed: "inbox/b.txt".`, s.news(t, s.queue)[1])

	require.NoError(t, os.Remove(filepath.Join(inbox, "old.txt")))
	require.Eventually(t, func() bool { return len(script.Requests()) == 3 }, patience, 20*time.Millisecond)
	s.idles(t, run)
	require.Equal(t, `Files that you watch have changed: "inbox".`, s.news(t, s.queue)[2], "a file that is gone has no name")

	// A fork has a first look of its own, and wakes for what comes after it.
	anew, err := s.Fork(t.Context(), s.queue, &client.ForkOptions{NewSession: true, Session: "fork-" + s.queue, Text: "Go on."})
	require.NoError(t, err)
	_, err = s.Daemon(s.queue).Stop(t.Context(), "done", nil)
	require.NoError(t, err)
	fork, err := anew.Start(t.Context())
	require.NoError(t, err)
	s.idles(t, fork)
	looksOnce(2)
	write(inbox, "c.txt")
	require.Eventually(t, func() bool { return len(s.news(t, fork.Session)) == 4 }, patience, 50*time.Millisecond)
	require.Equal(t, `Files that you watch have changed: "inbox/c.txt".`, s.news(t, fork.Session)[3])
	s.idles(t, fork)
	_, err = s.Daemon(fork.Session).Stop(t.Context(), "done", nil)
	require.NoError(t, err)
}

// watchEnv makes this test binary a worker that kills itself in its daemon's second look.
const watchEnv = "FERMATA_E2E_WATCH" // ADDR|QUEUE|STORE|WORKSPACE

func watchUntilKilled(spec string) error {
	f := strings.Split(spec, "|")
	st, _, err := openStore(f[2])
	if err != nil {
		return err
	}
	o, _, _, err := watchesFiles(st, f[1], f[3], func(n int64) {
		if n == 2 {
			killSelf()
		}
	})
	if err != nil {
		return err
	}
	c, err := remote(f[0]).Dial(context.Background(), connection(slog.DiscardHandler))
	if err != nil {
		return err
	}
	return workFor(c, o)
}

// A worker is killed with -9 while it looks at a daemon's files. The look is made again by the next
// worker, which notices what has changed since the last look that came back: the run watches what it began
// with, also under a build whose agent watches nothing (HA-91).
func TestAWorkerKilledWhileItLooks(t *testing.T) {
	t.Parallel()
	s := on(t, shared(t))
	t.Cleanup(func() { s.replay(t) })
	kept, dir := filepath.Join(t.TempDir(), "store"), t.TempDir()
	s.dir = stored(t, kept)
	s.Client = client.New(s.temporal, &client.Options{TaskQueue: s.queue, Store: s.dir})
	require.NoError(t, os.Mkdir(filepath.Join(dir, "inbox"), 0o700))
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), watchEnv+"="+strings.Join([]string{s.addr, s.queue, kept, dir}, "|"))
	ended := ready(t, cmd)
	run, err := s.Start(t.Context(), "watcher", "", &client.StartOptions{Session: s.queue})
	require.NoError(t, err)
	<-ended
	require.NoError(t, os.WriteFile(filepath.Join(dir, "inbox", "a.txt"), nil, 0o600))
	o, e, script, err := watchesFiles(s.dir, s.queue, dir, func(int64) {})
	require.NoError(t, err)
	t.Cleanup(func() { e.Close() })
	o.Build, o.Agents[0].Daemon = "b", &agent.Daemon{}
	w, err := worker.New(s.temporal, o)
	require.NoError(t, err)
	require.NoError(t, w.Start(t.Context()))
	t.Cleanup(w.Stop)
	require.Eventually(t, func() bool { return len(script.Requests()) == 1 }, patience, 20*time.Millisecond)
	s.idles(t, run)
	require.Equal(t, []string{`Files that you watch have changed: "inbox/a.txt".`}, s.news(t, s.queue))
	_, err = s.Daemon(s.queue).Stop(t.Context(), "done", nil)
	require.NoError(t, err)
}

// A daemon is interrupted while its worker looks at its files. What that look sees wakes nobody, and no
// look is made while the daemon is held. After the resume, under a build whose agent watches nothing, the
// daemon notices what has changed meanwhile, once (HA-91).
func TestAnInterruptWhileAWorkerLooks(t *testing.T) {
	t.Parallel()
	s := on(t, shared(t))
	t.Cleanup(func() { s.replay(t) })
	dir, looking, seen := t.TempDir(), make(chan struct{}), make(chan struct{})
	require.NoError(t, os.Mkdir(filepath.Join(dir, "inbox"), 0o700))
	o, e, script, err := watchesFiles(s.store, s.queue, dir, func(n int64) {
		if n == 2 {
			close(looking)
			<-seen
		}
	})
	require.NoError(t, err)
	t.Cleanup(func() { e.Close() })
	first := s.open(t, o)
	run, err := s.Start(t.Context(), "watcher", "", &client.StartOptions{Session: s.queue})
	require.NoError(t, err)
	<-looking
	s.say(t, run, agent.InterruptCommand{})
	require.NotEmpty(t, s.suspended(t, run).Holds)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "inbox", "a.txt"), nil, 0o600))
	close(seen)
	require.Never(t, func() bool { return e.looks.Load() > 2 }, 6*time.Second, 50*time.Millisecond)
	require.Empty(t, script.Requests(), "it is held")
	first.Stop()

	o.Build, o.Agents[0].Daemon = "b", &agent.Daemon{}
	s.open(t, o)
	s.say(t, run, agent.ResumeCommand{})
	require.Eventually(t, func() bool { return len(script.Requests()) == 1 }, patience, 20*time.Millisecond)
	s.idles(t, run)
	from := e.looks.Load()
	require.Eventually(t, func() bool { return e.looks.Load() > from+1 }, patience, 20*time.Millisecond)
	require.Equal(t, []string{`Files that you watch have changed: "inbox/a.txt".`}, s.news(t, s.queue))
	_, err = s.Daemon(s.queue).Stop(t.Context(), "done", nil)
	require.NoError(t, err)
}
