package workspace_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/internal/confine"
	"github.com/fermata-agents/fermata/internal/testenv"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/tool/workspace"
)

// token is a time for sleep by which its process is known.
func token() string { return fmt.Sprintf("1000.%09d", rand.IntN(1e9)) }

// having are the processes whose command line has a token and that have not ended.
func having(token string) (pids []int) {
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range paths {
		if text, err := os.ReadFile(path); err == nil && bytes.Contains(text, []byte(token)) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// stays are ways to outlive a command. Each writes the file "up" when it has begun.
var stays = map[string]string{
	"background": "(touch up; exec sleep TOKEN) &",
	"silent":     "(touch up; exec sleep TOKEN) >/dev/null 2>&1 </dev/null &",
	"nohup":      "nohup sh -c 'touch up; exec sleep TOKEN' >/dev/null 2>&1 &",
	"stubborn":   `sh -c 'trap "" TERM HUP; touch up; while :; do sleep TOKEN; done' &`,
	"session":    "setsid sh -c 'touch up; exec sleep TOKEN' >/dev/null 2>&1 &",
	"daemon":     "(env -i /usr/bin/setsid sh -c 'touch up; exec sleep TOKEN' </dev/null >/dev/null 2>&1 &) &",
	"hidden":     "python3 hide.py TOKEN &",
}

const hidePy = `
import ctypes, os, resource, sys
try: resource.setrlimit(resource.RLIMIT_RTTIME, (1, 1))
except (OSError, ValueError): pass
libc = ctypes.CDLL(None, use_errno=True)
assert libc.syscall(302, 0, 15, None, (ctypes.c_uint64 * 2)()) == 0 # to look is no change
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)) # others may go down
libc.prctl(1, 0)
if libc.ptrace(16, 1, 0, 0) == 0: # the first process, which is this one's own in some
    os.waitpid(1, 0x40000000)
    libc.ptrace(17, 1, 0, 0)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.environ.clear()
        open("up", "w")
        os.execve("/bin/sleep", ["sleep", sys.argv[1]], {})
`

// Nothing that a command started outlives it, whatever it did to stay.
func TestNothingOutlivesACommand(t *testing.T) {
	testenv.Need(t, needs("python3", "setsid"))
	eachSandbox(t, func(t *testing.T, s tool.Sandbox) {
		b := setup(t, &workspace.Options{Sandbox: s})
		b.put(t, "hide.py", hidePy)
		for name, command := range stays {
			token := token()
			status, out := b.shell(t, replace(command, token)+" until test -e up; do sleep 0.01; done; rm up")
			require.Equal(t, "[exit status 0]", status, "%s: %s", name, out)
			require.Empty(t, having(token), name)
		}
	})
}

func replace(command, token string) string {
	return string(bytes.ReplaceAll([]byte(command), []byte("TOKEN"), []byte(token)))
}

// killedWorker runs a command in a worker that is then killed.
func killedWorker(t *testing.T, s tool.Sandbox, command, token string) {
	t.Helper()
	root := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(root, "home"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "hide.py"), []byte(hidePy), 0o644))
	worker := exec.Command(os.Args[0], string(s), replace(command, token)+" sleep "+token)
	worker.Env = append(os.Environ(), workerRoot+"="+root, "TMPDIR="+t.TempDir())
	require.NoError(t, worker.Start())
	require.Eventually(t, func() bool { _, err := os.Stat(filepath.Join(root, "up")); return err == nil }, soon, 5*time.Millisecond)
	require.NoError(t, worker.Process.Kill())
	worker.Wait()
}

// What a command started ends when its worker is killed. What can outlive it where nothing
// but marks holds it, the next worker of the user ends, and not that of one that lives.
func TestNothingOutlivesAKilledWorker(t *testing.T) {
	testenv.Need(t, needs("python3", "setsid"))
	eachSandbox(t, func(t *testing.T, s tool.Sandbox) {
		for name, command := range stays {
			token, other := token(), token()
			killedWorker(t, s, command, token)
			live := exec.Command(os.Args[0], string(s), "setsid sleep "+other+" & wait")
			live.Env = append(os.Environ(), workerRoot+"="+t.TempDir(), "TMPDIR="+t.TempDir())
			require.NoError(t, live.Start())
			require.Eventually(t, func() bool { return len(having(other)) > 0 }, soon, 5*time.Millisecond)
			if s == tool.SandboxLandlock {
				confine.EndOrphans()
			}
			require.Eventually(t, func() bool { return len(having(token)) == 0 }, soon, 5*time.Millisecond, name)
			require.NotEmpty(t, having(other))
			require.NoError(t, live.Process.Kill())
			live.Wait()
			confine.EndOrphans()
		}
	})
}

// What could not be ended is named, whatever its name is, and not without bound.
func TestWhatCouldNotBeEndedIsNamed(t *testing.T) {
	require.Equal(t, "7 (a b)", workspace.Names(confine.Survivor{PID: 7, Name: "a b"}))
	many := make([]confine.Survivor, 12)
	require.Contains(t, workspace.Names(many...), "0 (), and 2 more")
	require.NotContains(t, workspace.Names(confine.Survivor{PID: 7, Name: "\x1b[2Jx"}), "\x1b")
}

// Processes that start the next one and end, out of every group, are ended.
func TestShellEndsWhatHops(t *testing.T) {
	testenv.Need(t, needs("setsid"))
	eachSandbox(t, func(t *testing.T, s tool.Sandbox) {
		b := setup(t, &workspace.Options{Sandbox: s})
		b.put(t, "hop.sh", "test -e hop.sh || exit 0\nsetsid sh ./hop.sh $1 &\n") // they end with the file
		name := token()
		status, out := b.shell(t, "for i in 1 2 3 4; do setsid sh ./hop.sh "+name+" >/dev/null 2>&1 & done; sleep 0.5; cut -d' ' -f19 /proc/self/stat")
		require.Equal(t, "[exit status 0]", status)
		require.Equal(t, "10\n", out, "the worker goes first")
		require.Eventually(t, func() bool { return len(having(name)) == 0 }, soon, 50*time.Millisecond)
	})
}
