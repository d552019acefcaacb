package workspace_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/internal/testenv"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/tool/workspace"
)

// A command can work within its sandbox, and gets more by options.
func TestConfinedShellCanWork(t *testing.T) {
	testenv.Need(t, needs("python3"))
	eachSandbox(t, func(t *testing.T, s tool.Sandbox) {
		more, shared := t.TempDir(), t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(more, "file"), []byte("text"), 0o644))
		b := setup(t, &workspace.Options{Sandbox: s, Read: []string{more, "/not/there"}, Write: []string{shared}})
		for _, command := range []string{
			"mkdir -p a/b && echo x > a/f && mv a/f a/b/g && ln a/b/g a/h && ln -s h a/i && cat a/i && rm -r a",
			`echo x > "$TMPDIR/f" && mv "$TMPDIR/f" . && cp f "$HOME/f" && truncate -s 0 f && rm f "$HOME/f"`,
			"echo x > /dev/null && head -c 1 /dev/urandom > r && cat /etc/passwd > /dev/null && ls /usr /proc/self > /dev/null",
			`printf '#!/bin/sh\necho ran' > run && chmod +x run && ./run`,
			"touch f && chmod 755 f && chmod 1755 f && test -x f",
			"mkfifo p && (echo x > p & cat p)", "kill -0 $$", "sleep 100 & kill $!", "nice -n 1 true", "ulimit -n 64", "cat < /dev/stdin", "cd sub",
			`python3 -c 'import socket; a, b = socket.socketpair(); a.send(b"x"); assert b.recv(1) == b"x"'`,
			fmt.Sprintf("cat %s/file; echo x > %s/file", more, shared),
		} {
			require.NoError(t, os.MkdirAll(filepath.Join(b.root, "sub"), 0o755))
			status, out := b.shell(t, command)
			require.Equal(t, "[exit status 0]", status, "%s: %s", command, out)
		}
		status, _ := b.shell(t, fmt.Sprintf("echo x > %s/file", more))
		require.NotEqual(t, "[exit status 0]", status)
		_, out := split(t, b.ok(t, "shell_run", args{"command": "pwd", "dir": "sub"}))
		require.Equal(t, b.root+"/sub\n", out)
		status, _ = b.shell(t, "exit 3")
		require.Equal(t, "[exit status 3]", status)
		require.Contains(t, b.Confinement(), "They have no network.")
	})
}

// With Options.Network a command has all of it; without, it has none, with or without Landlock.
func TestShellHasNetwork(t *testing.T) {
	testenv.Need(t, needs("python3"))
	eachSandbox(t, func(t *testing.T, s tool.Sandbox) {
		w := outside(t, s)
		b := setup(t, &workspace.Options{Sandbox: s, Network: true, Read: []string{w.read}})
		b.put(t, "escape.py", escapePy)
		require.NotContains(t, b.Confinement(), "They have no network.")
		require.Contains(t, b.Confinement(), "They have the network, with this machine's own ports.")
		for _, way := range []string{"PY tcp PORT", "PY udp PORT", "PY unix SOCKET"} {
			status, out := b.shell(t, w.command(way))
			require.Equal(t, "[exit status 0]", status, "%s: %s", way, out)
		}
	})
	w := outside(t, "")
	b := setup(t, &workspace.Options{Confine: tool.ConfineWherePossible})
	b.Unhold()
	b.put(t, "escape.py", escapePy)
	status, _ := b.shell(t, w.command("PY tcp PORT"))
	require.Equal(t, "[exit status 1]", status)
}

// The worker itself, on any of its threads, may do what it could before.
func TestWorkerIsNotConfined(t *testing.T) {
	b := setup(t, nil)
	var all sync.WaitGroup
	for i := range 32 {
		all.Go(func() {
			if _, err := b.do("shell_run", args{"command": "true"}); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			if err := os.WriteFile(filepath.Join(b.outside, fmt.Sprint(i)), nil, 0o644); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	// A command's thread ends after its command.
	require.Eventually(t, func() bool { return !confined(t) }, 10*time.Second, 10*time.Millisecond)
}

// confined reports whether a thread of this process has dropped its rights.
func confined(t *testing.T) bool {
	threads, err := filepath.Glob("/proc/self/task/*/status")
	require.NoError(t, err)
	return slices.ContainsFunc(threads, func(thread string) bool {
		text, _ := os.ReadFile(thread) // nothing if it has ended
		return strings.Contains(string(text), "NoNewPrivs:\t1")
	})
}

// A command has limits, and this process keeps its own.
func TestShellIsBounded(t *testing.T) {
	eachSandbox(t, func(t *testing.T, s tool.Sandbox) { bounded(t, setup(t, &workspace.Options{Sandbox: s})) })
}

func bounded(t *testing.T, b bench) {
	_, out := b.shell(t, "cat /proc/self/limits /proc/self/oom_score_adj; grep Cap.*: /proc/self/status")
	require.Regexp(t, `Max core file size +0 +0 `, out)
	require.Regexp(t, `Max file size +17179869184 +17179869184 `, out)
	require.Regexp(t, `Max processes +\d{1,4} `, out)
	require.Contains(t, out, "\n800\n")
	require.Regexp(t, `CapPrm:\s+0{16}\nCapEff:\s+0{16}\n`, out)
	own, err := os.ReadFile("/proc/self/limits")
	require.NoError(t, err)
	require.Regexp(t, `Max realtime timeout +unlimited +unlimited `, string(own))
}

// What is private stays so where every program may read: in a directory of the system, or on
// the PATH.
func TestPrivatePathsAreNotReadAmongTheSystems(t *testing.T) {
	eachSandbox(t, func(t *testing.T, s tool.Sandbox) {
		system := t.TempDir()
		for _, name := range []string{"own/deep/key", "own/deep/plain", "own/plain", "plain", "lock"} {
			require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(system, name)), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(system, name), []byte("text of "+name), 0o600))
		}
		require.NoError(t, os.Symlink("..", filepath.Join(system, "own", "loop")))
		require.NoError(t, os.Symlink("own/deep/key", filepath.Join(system, "link")))
		t.Setenv("PATH", os.Getenv("PATH")+string(filepath.ListSeparator)+system)
		b := setup(t, &workspace.Options{Sandbox: s, Private: []string{filepath.Join(system, "link"), filepath.Join(system, "lock")}})
		_, out := b.shell(t, "cd "+system+"; cat own/deep/key link own/loop/link lock own/deep/plain own/plain plain 2>/dev/null")
		require.Equal(t, "text of own/deep/plaintext of own/plaintext of plain", out)
	})
}
