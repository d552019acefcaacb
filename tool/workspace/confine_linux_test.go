package workspace_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fermata-agents/fermata/internal/confine"
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

// What leaves the group is found by its mark, whatever it did with its environment.
func TestShellEndsDaemons(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("there is no setsid here")
	}
	b := setup(t, nil)
	for _, command := range []string{
		`env -i setsid sh -c 'echo $$ > pid.new; mv pid.new pid; exec sleep 1000' >/dev/null 2>&1 & until test -e pid; do sleep 0.01; done`,
		`(env -i setsid sh -c 'echo $$ > pid.new; mv pid.new pid; while :; do sleep 1; done' </dev/null >/dev/null 2>&1 &) & until test -e pid; do sleep 0.01; done`,
		`setsid sh -c 'echo $$ > pid.new; mv pid.new pid; sleep 1000' >/dev/null 2>&1 & until test -e pid; do sleep 0.01; done`,
		`setsid sh -c 'trap "" TERM; echo $$ > pid.new; mv pid.new pid; while :; do sleep 1; done' & until test -e pid; do sleep 0.01; done`,
	} {
		status, _ := b.shell(t, command)
		require.Equal(t, "[exit status 0]", status)
		gone(t, b.process(t, "pid"))
		require.NoError(t, os.Remove(filepath.Join(b.root, "pid")))
	}
}

// Processes that start the next one and end, out of every group, are ended.
func TestShellEndsWhatHops(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("there is no setsid here")
	}
	b := setup(t, nil)
	b.put(t, "hop.sh", "test -e hop.sh || exit 0\nsetsid sh ./hop.sh $1 &\n") // they end with the file
	name := filepath.Base(filepath.Dir(b.root)) + filepath.Base(t.TempDir())
	status, out := b.shell(t, "for i in 1 2 3 4; do setsid sh ./hop.sh "+name+" >/dev/null 2>&1 & done; sleep 0.5; cut -d' ' -f19 /proc/self/stat")
	require.Equal(t, "[exit status 0]", status)
	require.Equal(t, "10\n", out, "the worker goes first")
	require.Eventually(t, func() bool {
		left, err := filepath.Glob("/proc/[0-9]*/cmdline")
		require.NoError(t, err)
		for _, path := range left {
			if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), name) {
				return false
			}
		}
		return true
	}, soon, 50*time.Millisecond)
}

// What a killed worker's command has left, out of its group, is ended by the next worker,
// and what this process runs is not.
func TestNextWorkerEndsDaemons(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("there is no setsid here")
	}
	b, own := setup(t, nil), setup(t, nil)
	pid := b.killed(t, `env -i setsid sh -c 'echo $$ > pid.new; mv pid.new pid; exec sleep 1000' >/dev/null 2>&1 & sleep 1000`)
	runs := make(chan string)
	go func() {
		text, err := own.do("shell_run", args{"command": "echo $$ > pid.new; mv pid.new pid; while ! test -e end; do sleep 0.05; done; echo alive"})
		runs <- fmt.Sprint(text, err)
	}()
	own.process(t, "pid")
	require.NoError(t, syscall.Kill(pid, 0), "it has left its group")
	confine.EndOrphans()
	gone(t, pid)
	own.put(t, "end", "")
	require.Contains(t, <-runs, "alive")
}

// Nothing that is held changes its mark.
func TestNothingTakesItsMarkOff(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3")
	}
	b := confined(t, nil)
	b.put(t, "hide.py", `
import ctypes, os, resource
for soft, hard in (1, 1), (0, 0), (1, resource.getrlimit(resource.RLIMIT_RTTIME)[1]):
    try: resource.setrlimit(resource.RLIMIT_RTTIME, (soft, hard))
    except (PermissionError, ValueError): pass
libc = ctypes.CDLL(None, use_errno=True)
pair = (ctypes.c_uint64 * 2)(1, 1)
assert libc.syscall(160, 15, pair) < 0 and ctypes.get_errno() == 1 # setrlimit, on amd64
assert libc.syscall(302, 0, ctypes.c_uint64(15 | 7 << 32), pair, None) < 0 and ctypes.get_errno() == 1 # prlimit64
assert libc.syscall(302, 0, 15, None, pair) == 0 # to look is no change
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)) # others may go down
if os.fork() == 0:
    os.setsid()
    os.environ.clear()
    open("pid.new", "w").write(str(os.getpid()))
    os.rename("pid.new", "pid")
    os.execve("/bin/sleep", ["sleep", "1000"], {})
while not os.path.exists("pid"): pass
`)
	status, out := b.shell(t, "python3 hide.py >out 2>&1; cat out")
	require.Equal(t, "[exit status 0]", status, out)
	require.Empty(t, strings.TrimPrefix(out, "(no output)"))
	gone(t, b.process(t, "pid"))
}

// A command changes neither limits nor priority of the worker, which has the same user, and
// gets no namespaces, in which it would have capabilities.
func TestShellLeavesTheWorkerAlone(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil || runtime.GOARCH != "amd64" {
		t.Skip("there is no python3, or the numbers of calls are others")
	}
	b := confined(t, nil)
	b.put(t, "touch.py", `
import ctypes, os, resource, subprocess, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
def call(*a):
    if libc.syscall(*a) < 0: raise OSError(ctypes.get_errno(), "")
worker = int(sys.argv[1])
limit = ctypes.create_string_buffer(16); call(302, worker, 7, None, limit) # what the limit is, may be asked
one = ctypes.create_string_buffer(b"\x01"); zero = ctypes.create_string_buffer(48); zero[0] = b"\x30"
ways = [
    lambda: call(302, worker, 7, limit, None), lambda: resource.prlimit(worker, resource.RLIMIT_CPU, (1, 1)),
    lambda: os.setpriority(os.PRIO_PROCESS, worker, 0), lambda: os.setpriority(os.PRIO_USER, 0, 0), lambda: call(251, 1, worker, 4 << 13), lambda: call(251, 3, 0, 4 << 13),
    lambda: os.sched_setaffinity(worker, os.sched_getaffinity(worker)), lambda: os.sched_setscheduler(worker, 0, os.sched_param(0)),
    lambda: os.sched_setparam(worker, os.sched_param(0)), lambda: call(314, worker, zero, 0),
    *[lambda flag=flag: call(272, flag) for flag in (0x10000000, 0x20000, 0x40000000, 0x20000000, 0x8000000, 0x4000000, 0x2000000)],
    lambda: call(56, 0x10000000 | 17, 0, 0, 0, 0), lambda: call(435, zero, 88), lambda: call(308, os.open("/proc/self/ns/net", 0), 0),
]
for n, way in enumerate(ways):
    try: way()
    except OSError as e: print(n, "no")
    else: print(n, "yes")
os.setpriority(os.PRIO_PROCESS, 0, 11); os.sched_setaffinity(0, os.sched_getaffinity(0)); resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
resource.prlimit(0, resource.RLIMIT_NOFILE, (32, 32)); subprocess.run(["true"], check=True, preexec_fn=lambda: None)
t = threading.Thread(target=lambda: None); t.start(); t.join()
`)
	status, out := b.shell(t, fmt.Sprintf("python3 touch.py %d 2>&1", os.Getpid()))
	require.Equal(t, "[exit status 0]", status, out)
	require.NotContains(t, out, "yes")
	require.Equal(t, 20, strings.Count(out, "no"), out)
}

// No file that a command makes runs with its owner's rights, whatever way it takes.
func TestShellSetsNoIDs(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil || runtime.GOARCH != "amd64" {
		t.Skip("there is no python3, or the numbers of calls are others")
	}
	b := confined(t, nil)
	b.put(t, "bits.py", `
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def call(*a):
    if libc.syscall(*a) < 0: raise OSError(ctypes.get_errno(), "")
open("f", "w").close(); f = os.open("f", os.O_RDONLY); here = os.open(".", os.O_RDONLY)
how = (ctypes.c_uint64 * 3)(os.O_CREAT | os.O_WRONLY, 0o4755, 0)
ways = [
    lambda: os.chmod("f", 0o4755), lambda: os.chmod("f", 0o2755), lambda: os.fchmod(f, 0o6755),
    lambda: call(90, b"f", 0o4755), lambda: call(91, f, 0o4755), lambda: call(268, here, b"f", 0o4755), lambda: call(452, here, b"f", 0o4755, 0),
    lambda: call(2, b"g", os.O_CREAT | os.O_WRONLY, 0o4755), lambda: call(85, b"g", 0o4755), lambda: call(257, here, b"g", os.O_CREAT | os.O_WRONLY, 0o2755),
    lambda: call(257, here, b".", os.O_TMPFILE | os.O_RDWR, 0o4755), lambda: call(437, here, b"g", how, 24),
    lambda: call(133, b"g", 0o104755, 0), lambda: call(259, here, b"g", 0o104755, 0),
]
for n, way in enumerate(ways):
    try: way()
    except OSError as e: print(n, "no")
    else: print(n, "yes")
os.chmod("f", 0o755); os.chmod("f", 0o1755)
os.close(os.open("plain", os.O_CREAT | os.O_WRONLY, 0o755)); call(257, here, b"f", os.O_RDONLY, 0o4755)
`)
	status, out := b.shell(t, "umask 0; python3 bits.py")
	require.Equal(t, "[exit status 0]", status, out)
	require.NotContains(t, out, "yes")
	require.Equal(t, 14, strings.Count(out, "no"))
	entries, err := os.ReadDir(b.root)
	require.NoError(t, err)
	for _, entry := range entries {
		info, err := entry.Info()
		require.NoError(t, err)
		require.Zero(t, info.Mode()&(os.ModeSetuid|os.ModeSetgid), entry.Name())
	}
}

// Root's commands have no right over files that others have not.
func TestShellHasNoRightsOfRoot(t *testing.T) {
	b := confined(t, nil)
	if os.Geteuid() != 0 {
		t.Skip("this is not root")
	}
	b.put(t, "others", "x")
	require.NoError(t, os.Chown(filepath.Join(b.root, "others"), 65534, 65534))
	require.NoError(t, os.Chmod(filepath.Join(b.root, "others"), 0o600))
	for _, command := range []string{"cat others", "echo x >> others", "chmod 666 others", "touch f && chown 65534 f", "chown 0 others", "setpriv --reuid 65534 true || su nobody -s /bin/true"} {
		status, out := b.shell(t, command)
		require.NotEqual(t, "[exit status 0]", status, "%s: %s", command, out)
	}
	_, out := b.shell(t, "grep Cap /proc/self/status")
	require.Contains(t, out, "CapPrm:\t0000000000000400\n")
	require.Contains(t, out, "CapEff:\t0000000000000400\n")
}

// A command has no terminal, not even this process'.
func TestShellHasNoTerminal(t *testing.T) {
	b := confined(t, nil)
	for _, command := range []string{"echo x > /dev/tty", "true < /dev/tty", "true <> /dev/ptmx", "for t in /dev/pts/[0-9]*; do echo x > $t && exit 0; done; exit 1"} {
		status, out := b.shell(t, command)
		require.NotEqual(t, "[exit status 0]", status, "%s: %s", command, out)
	}
}

// A command has limits, and this process keeps its own.
func TestShellIsBounded(t *testing.T) {
	b := setup(t, nil)
	_, out := b.shell(t, "cat /proc/self/limits /proc/self/oom_score_adj")
	require.Regexp(t, `Max core file size +0 +0 `, out)
	require.Regexp(t, `Max file size +17179869184 +17179869184 `, out)
	require.Regexp(t, `Max processes +\d{1,4} `, out)
	require.Contains(t, out, "\n800\n")
	own, err := os.ReadFile("/proc/self/limits")
	require.NoError(t, err)
	require.Regexp(t, `Max realtime timeout +unlimited +unlimited `, string(own))
}
