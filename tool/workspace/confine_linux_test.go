package workspace_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/fermata-agents/fermata/tool/workspace"
	"github.com/stretchr/testify/require"
)

func confined(t *testing.T, o *workspace.Options) bench {
	t.Helper()
	b := setup(t, o)
	if !b.Confined() {
		t.Skip("this kernel lacks Landlock 3: " + b.Confinement())
	}
	return b
}

func TestConfinedShellStaysInside(t *testing.T) {
	home := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(home, ".ssh"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(home, ".ssh", "id_rsa"), []byte("s3cret"), 0o644))
	t.Setenv("HOME", home)
	t.Setenv("ANTHROPIC_API_KEY", "s3cret")
	b := confined(t, nil)
	b.link(t, b.outside, "link")
	commands := []string{
		"cat ../outside/secret", "cat link/secret", "ls ../outside", "cat " + b.outside + "/secret", "cd ../outside && cat secret",
		"echo x > ../outside/secret", "echo x >> link/secret", "touch ../outside/new", "mkdir ../outside/new", "rm -f ../outside/secret",
		"mv ../outside/secret stolen", "ln ../outside/secret stolen && cat stolen", "ln -s ../outside/secret s && cat s",
		"mv link/secret .", "truncate -s 0 ../outside/secret", "cp -r ../outside .",
		"cat " + home + "/.ssh/id_rsa", "touch " + home + "/.profile", "ls " + home,
		"touch /etc/fermata /usr/fermata /tmp/fermata-escaped /var/tmp/fermata /fermata",
		"cat /proc/$PPID/environ", "cat /proc/$PPID/root" + b.outside + "/secret", "cat /proc/$PPID/cwd/doc.go",
		"head -c 1 /proc/$PPID/mem", "sh -c 'cat ../outside/secret'", "setsid cat ../outside/secret",
		"mknod dev b 7 0", "chroot . /bin/true",
	}
	if b.Signals() {
		commands = append(commands, "kill -0 $PPID", "kill -9 $PPID")
	}
	for _, command := range commands {
		status, out := b.shell(t, command)
		require.NotEqual(t, "[exit status 0]", status, "%s: %s", command, out)
		require.NotContains(t, out, "s3cret", command)
	}
	text, err := os.ReadFile(filepath.Join(b.outside, "secret"))
	require.NoError(t, err)
	require.Equal(t, "s3cret", string(text))
	entries, err := os.ReadDir(b.outside)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.NoFileExists(t, "/tmp/fermata-escaped")
}

func TestConfinedShellCanWork(t *testing.T) {
	b := confined(t, nil)
	for _, command := range []string{
		"mkdir -p a/b && echo x > a/f && mv a/f a/b/g && ln a/b/g a/h && ln -s h a/i && cat a/i && rm -r a",
		`echo x > "$TMPDIR/f" && mv "$TMPDIR/f" . && cp f "$HOME/f" && truncate -s 0 f && rm f "$HOME/f"`,
		"echo x > /dev/null && head -c 1 /dev/urandom > r && cat /etc/passwd > /dev/null && ls /usr /proc/self > /dev/null",
		`printf '#!/bin/sh\necho ran' > run && chmod +x run && ./run`,
		"mkfifo p && (echo x > p & cat p)", "kill -0 $$", "sleep 100 & kill $!",
	} {
		status, out := b.shell(t, command)
		require.Equal(t, "[exit status 0]", status, "%s: %s", command, out)
	}
}

func TestConfinedShellGetsMoreByOptions(t *testing.T) {
	more, shared := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(more, "file"), []byte("text"), 0o644))
	b := confined(t, &workspace.Options{Read: []string{more, "/not/there"}, Write: []string{shared}})
	status, out := b.shell(t, fmt.Sprintf("cat %s/file; echo x > %s/file", more, shared))
	require.Equal(t, "[exit status 0]", status, out)
	status, _ = b.shell(t, fmt.Sprintf("echo x > %s/file", more))
	require.NotEqual(t, "[exit status 0]", status)
}

// The worker itself, on any of its threads, may do what it could before.
func TestWorkerIsNotConfined(t *testing.T) {
	b := confined(t, nil)
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
	threads, err := filepath.Glob("/proc/self/task/*/status")
	require.NoError(t, err)
	for _, thread := range threads {
		text, err := os.ReadFile(thread)
		if err == nil { // it may have ended
			require.NotContains(t, string(text), "NoNewPrivs:\t1")
		}
	}
}

// What leaves the group is found by its cookie.
func TestShellEndsDaemons(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("there is no setsid here")
	}
	b := setup(t, nil)
	for _, command := range []string{
		`setsid sh -c 'echo $$ > pid.new; mv pid.new pid; sleep 1000' >/dev/null 2>&1 & until test -e pid; do sleep 0.01; done`,
		`setsid sh -c 'trap "" TERM; echo $$ > pid.new; mv pid.new pid; while :; do sleep 1; done' & until test -e pid; do sleep 0.01; done`,
	} {
		status, _ := b.shell(t, command)
		require.Equal(t, "[exit status 0]", status)
		gone(t, b.process(t, "pid"))
		require.NoError(t, os.Remove(filepath.Join(b.root, "pid")))
	}
}
