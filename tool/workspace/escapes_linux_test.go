package workspace_test

import (
	_ "embed"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/fermata-agents/fermata/internal/confine"
	"github.com/fermata-agents/fermata/internal/testenv"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/tool/workspace"
)

// eachSandbox runs a test against every sandbox that there is.
func eachSandbox(t *testing.T, test func(t *testing.T, s tool.Sandbox)) {
	for _, s := range confine.Sandboxes() {
		t.Run(string(s), func(t *testing.T) {
			testenv.Need(t, setup(t, &workspace.Options{Sandbox: s}).CheckShell())
			test(t, s)
		})
	}
}

// needs is the error of a program that the machine lacks.
func needs(programs ...string) error {
	for _, name := range programs {
		if _, err := exec.LookPath(name); err != nil {
			return fmt.Errorf("%s is missing: install it (on Debian: apt-get install python3 util-linux): %w", name, err)
		}
	}
	return nil
}

//go:embed testdata/escape.py
var escapePy string

// escapes are commands that end with status 0 if they got out. OUT is a directory beside the
// workspace, READ one that may be read, WORKER and NEIGHBOUR are processes.
var escapes = []string{
	// Reading files.
	"cat OUT/secret", "cat ../outside/secret", "cat link/secret", "ls ../outside", "cd ../outside && cat secret", "cp -r ../outside .", "ln -s OUT/secret s && cat s",
	"sh -c 'cat OUT/secret'", "setsid cat OUT/secret", "cat HOME/.ssh/id_rsa", "ls HOME", "cat NEIGHBOURHOME/kept", "ls NEIGHBOURHOME/..",
	"cat PRIVATE/key", "ls PRIVATE", "cat READ/private",
	"cat OUT/linked", "ln OUT/secret stolen && cat stolen", "ln READ/agents.yaml stolen && echo evil > stolen",
	// Writing files.
	"echo x > OUT/secret", "echo x >> link/secret", "touch OUT/new", "mkdir OUT/new", "rm OUT/secret", "mv OUT/secret stolen", "mv link/secret .", "truncate -s 0 OUT/secret",
	"mv f OUT/new", "ln f OUT/new", "ln -s f OUT/new", "mkfifo OUT/new", "touch HOME/.profile", "ln -s OUT/secret t && echo x > t",
	"echo evil > READ/agents.yaml", "echo evil >> READ/agents.yaml", "rm READ/agents.yaml", "mv READ/agents.yaml x", "mv f READ/agents.yaml", "touch READ/new", "truncate -s 0 READ/agents.yaml",
	"touch /etc/fermata", "touch /usr/fermata", "touch /tmp/fermata-escaped", "touch /var/tmp/fermata", "touch /fermata", "touch /dev/fermata", "touch /dev/shm/fermata", "touch /run/fermata",
	"echo 1 > /proc/sys/kernel/ns_last_pid", "echo 1 > /proc/sys/vm/drop_caches", "echo 1 > /sys/kernel/mm/ksm/run",
	"chmod 777 READ", "chmod 666 READ/agents.yaml", "chmod 666 OUT/secret", "touch -d 2001-01-01 OUT/secret", "touch -d 2001-01-01 READ/agents.yaml",
	"mknod dev b 7 0", "mknod dev c 1 3", "chroot . /bin/true",
	// Other processes.
	"kill -0 WORKER", "kill -9 WORKER", "kill -9 NEIGHBOUR", "kill -STOP NEIGHBOUR", "PY kill WORKER 9", "PY kill -NEIGHBOUR 9", "PY trace WORKER", "PY trace NEIGHBOUR",
	"PY memory WORKER", "PY memory NEIGHBOUR", "PY descriptor WORKER", "PY descriptor NEIGHBOUR", "renice 5 WORKER", "PY schedule WORKER",
	"cat /proc/WORKER/environ", "cat /proc/WORKER/root/OUT/secret", "cat /proc/WORKER/cwd/doc.go", "head -c 1 /proc/WORKER/mem", "readlink /proc/WORKER/fd/*", "cat /proc/NEIGHBOUR/environ",
	"cat /proc/$PPID/environ | grep s3cret", "cat /proc/1/root/OUT/secret", "env | grep s3cret", "cat /proc/*/environ 2>/dev/null | grep -a s3cret",
	"PY inherited FD", "PY unfiltered", "nsenter -t WORKER -a true",
	// The network.
	"PY tcp PORT", "PY fast PORT", "PY mptcp PORT", "PY udp PORT", "PY unix SOCKET", "PY unix @ABSTRACT", "PY unix INSIDE", "PY loose LOOSE", "PY shared",
	"PY family 1", "PY family 2", "PY family 10", "PY family 16", "PY family 17", "PY family 31", "PY family 38", "PY family 40", "PY family 44",
	"exec 3<>/dev/tcp/127.0.0.1/PORT", "ls -d /proc/sys/net/ipv4 >/dev/null && echo 1 > /proc/sys/net/ipv4/ip_forward",
	// The kernel.
	"unshare -Ur true", "unshare -m true", "mount -t tmpfs none .", "PY namespace", "PY mount", "PY keys", "PY ring", "PY other_numbers", "PY bits", "PY raise_limits", "PY capability",
	"touch f && chmod 4755 f", "touch f && chown 1 f", "chown 0 others", "cat others", "echo x >> others", "setpriv --reuid 1 true", "su nobody -s /bin/true",
	// The terminal of a person.
	"PY type_into TERMINAL", "echo x > /dev/tty", "true < /dev/tty", "echo x > TERMINAL", "cat < TERMINAL",
}

// known are the escapes that a sandbox lets go, as docs/security.md says.
var known = map[tool.Sandbox][]string{
	tool.SandboxLandlock: {"chmod 777 READ", "chmod 666 READ/agents.yaml", "chmod 666 OUT/secret", "touch -d 2001-01-01 OUT/secret", "touch -d 2001-01-01 READ/agents.yaml"},
}

// Nothing gets out of a sandbox.
func TestEscapes(t *testing.T) {
	testenv.Need(t, needs("python3", "setsid", "unshare", "nsenter"))
	eachSandbox(t, func(t *testing.T, s tool.Sandbox) {
		w := outside(t, s)
		for _, attempt := range escapes {
			before := w.seen(t)
			status, out := w.shell(t, w.command(attempt))
			got := status == "[exit status 0]"
			require.Equal(t, slices.Contains(known[s], attempt), got, "%s: %s %s", attempt, status, out)
			require.NotContains(t, out, "s3cret", attempt)
			if !got {
				require.Equal(t, before, w.seen(t), attempt)
			}
			w.mend(t)
		}
	})
}

// An ordinary user's programs get out no more than root's do.
func TestEscapesOfAnOrdinaryUser(t *testing.T) {
	testenv.Long(t)
	testenv.Need(t, needs("python3", "setsid", "unshare", "nsenter"))
	if os.Getuid() != 0 {
		t.Skip("the other tests are an ordinary user's")
	}
	dir, err := os.MkdirTemp("", "fermata-user")
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	program, err := os.ReadFile(os.Args[0])
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "test"), program, 0o755))
	require.NoError(t, os.Chmod(dir, 0o777))
	user := exec.Command(filepath.Join(dir, "test"), "-test.run=^(TestEscapes|TestConfinedShellCanWork|TestNothingOutlives.*)$")
	user.Dir, user.Env = dir, []string{"HOME=" + dir, "TMPDIR=" + dir, "PATH=/usr/sbin:/usr/bin:/sbin:/bin", testenv.Variable + "=" + os.Getenv(testenv.Variable)}
	user.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := user.CombinedOutput()
	require.NoError(t, err, string(out))
}

// world is a workspace, and what is around it.
type world struct {
	bench
	words     *strings.Replacer
	out, read string
	neighbour int
}

func outside(t *testing.T, s tool.Sandbox) *world {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("ANTHROPIC_API_KEY", "s3cret")
	t.Setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	read, private := t.TempDir(), t.TempDir()
	w := &world{read: read}
	w.bench = setup(t, &workspace.Options{Sandbox: s, Read: []string{read}, Protect: []string{filepath.Join(read, "agents.yaml")}, Private: []string{private}})
	w.out = w.outside
	write := func(path, text string, mode fs.FileMode) {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), mode))
	}
	write(filepath.Join(home, ".ssh", "id_rsa"), "s3cret", 0o644)
	write(filepath.Join(read, "agents.yaml"), "agents", 0o644)
	write(filepath.Join(private, "key"), "s3cret", 0o644)
	write(filepath.Join(w.root, "others"), "s3cret", 0)
	if os.Getuid() == 0 {
		require.NoError(t, os.Chown(filepath.Join(w.root, "others"), 65534, 65534))
	}
	w.put(t, "f", "")
	w.put(t, "escape.py", escapePy)
	w.link(t, w.outside, "link")
	neighbour, kept := neighbour(t, s)
	w.neighbour = neighbour

	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	path, inside, abstract := filepath.Join(read, "socket"), filepath.Join(w.root, "socket"), fmt.Sprint("fermata-", os.Getpid())
	for _, at := range []string{path, inside, "@" + abstract} {
		l, err := net.Listen("unix", at)
		require.NoError(t, err)
		t.Cleanup(func() { l.Close() })
	}
	log, err := net.ListenPacket("unixgram", filepath.Join(read, "loose"))
	require.NoError(t, err)
	t.Cleanup(func() { log.Close() })
	_, port, err := net.SplitHostPort(tcp.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { tcp.Close() })
	fd, err := unix.Open(filepath.Join(w.outside, "secret"), unix.O_RDONLY, 0) // without O_CLOEXEC
	require.NoError(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	w.words = strings.NewReplacer("OUT", w.outside, "READ", read, "PRIVATE", private, "WORKER", strconv.Itoa(os.Getpid()), "NEIGHBOURHOME", kept, "NEIGHBOUR", strconv.Itoa(neighbour),
		"HOME", home, "PORT", port, "SOCKET", path, "INSIDE", inside, "ABSTRACT", abstract, "LOOSE", filepath.Join(read, "loose"), "FD", strconv.Itoa(fd), "TERMINAL", terminal(t), "PY", "python3 escape.py")
	return w
}

func (w *world) command(attempt string) string { return w.words.Replace(attempt) }

// seen is all that an escape could have changed.
func (w *world) seen(t *testing.T) (list []string) {
	t.Helper()
	for _, dir := range []string{w.out, w.read} {
		require.NoError(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			require.NoError(t, err)
			info, err := os.Lstat(path)
			require.NoError(t, err)
			text, _ := os.ReadFile(path) // not a directory or a socket
			list = append(list, fmt.Sprintln(path, info.Mode(), info.ModTime(), string(text)))
			return nil
		}))
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", w.neighbour))
	require.NoError(t, err, "the neighbour runs")
	require.Contains(t, "SR", strings.Fields(string(stat))[2], "the neighbour runs")
	for _, path := range []string{"/etc/fermata", "/usr/fermata", "/tmp/fermata-escaped", "/var/tmp/fermata", "/fermata", "/dev/fermata", "/dev/shm/fermata", "/run/fermata"} {
		require.NoFileExists(t, path)
	}
	return list
}

// mend sets right what the kernel is known to let go.
func (w *world) mend(t *testing.T) {
	require.NoError(t, os.Chmod(filepath.Join(w.out, "secret"), 0o644))
	require.NoError(t, os.Chmod(w.read, 0o755))
	require.NoError(t, os.Chmod(filepath.Join(w.read, "agents.yaml"), 0o644))
}

// neighbour is a command of another session: its process, and its HOME.
func neighbour(t *testing.T, s tool.Sandbox) (pid int, home string) {
	t.Helper()
	w, err := workspace.Open(t.TempDir(), &workspace.Options{Sandbox: s, AsRoot: true})
	require.NoError(t, err)
	t.Cleanup(func() { w.Close() })
	token := token()
	done := make(chan struct{})
	t.Cleanup(func() {
		for _, pid := range having(token) {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		<-done
	})
	go func() {
		defer close(done)
		bench{Workspace: w, session: "neighbour"}.do("shell_run", args{"command": "echo s3cret > $HOME/kept; exec sleep " + token})
	}()
	// A program has its name a moment before it has its environment.
	require.Eventually(t, func() bool {
		for _, each := range having(token) {
			if name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", each)); string(name) == "sleep\n" {
				pid, home = each, homeOf(t, each)
			}
		}
		return home != ""
	}, soon, 5*time.Millisecond)
	return pid, home
}

// homeOf is the HOME of a process, empty if it has none yet.
func homeOf(t *testing.T, pid int) string {
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	require.NoError(t, err)
	for _, pair := range strings.Split(string(env), "\x00") {
		if home, found := strings.CutPrefix(pair, "HOME="); found {
			return home
		}
	}
	return ""
}

// terminal is the path of a terminal, as a person has one.
func terminal(t *testing.T) string {
	t.Helper()
	f, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	require.NoError(t, unix.IoctlSetPointerInt(int(f.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	return fmt.Sprint("/dev/pts/", n)
}
