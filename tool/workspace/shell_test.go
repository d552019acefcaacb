//go:build unix

package workspace_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/tool/workspace"
	"github.com/stretchr/testify/require"
)

// soon is how long something may take that takes no time.
const soon = 20 * time.Second

// workerRoot tells the test binary to be a worker that runs a command forever.
const workerRoot = "FERMATA_TEST_WORKER"

func TestMain(m *testing.M) {
	if root := os.Getenv(workerRoot); root != "" {
		w, err := workspace.Open(root, &workspace.Options{Home: filepath.Join(root, "home"), AsRoot: true, Sandbox: tool.Sandbox(os.Args[1])})
		if err == nil {
			_, err = bench{Workspace: w}.do("shell_run", args{"command": os.Args[2]})
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// shell runs a command and cuts the first line off, without its duration.
func (b bench) shell(t testing.TB, command string) (status, out string) {
	t.Helper()
	return split(t, b.ok(t, "shell_run", args{"command": command}))
}

var duration = regexp.MustCompile(` after [0-9.]+(µs|ms|s)`)

func split(t testing.TB, text string) (status, out string) {
	t.Helper()
	status, out, found := strings.Cut(text, "\n")
	require.True(t, found)
	require.Regexp(t, duration, status)
	return duration.ReplaceAllString(status, ""), out
}

// process waits for a file with a process' number.
func (b bench) process(t testing.TB, path string) int {
	t.Helper()
	var pid int
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(filepath.Join(b.root, path))
		if err != nil {
			return false
		}
		pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
		return err == nil
	}, soon, 5*time.Millisecond)
	return pid
}

// gone waits until a process has ended.
func gone(t testing.TB, pid int) {
	t.Helper()
	require.Eventually(t, func() bool {
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
			_, state, _ := strings.Cut(string(stat), ") ")
			return strings.HasPrefix(state, "Z") // ended, and nobody has asked yet
		}
		return syscall.Kill(pid, 0) != nil
	}, soon, 5*time.Millisecond, "process %d lives on", pid)
}

func TestShell(t *testing.T) {
	b := setup(t, nil)
	b.put(t, "sub/file", "text")
	for command, want := range map[string][2]string{
		"echo out; echo err >&2; exit 3": {"[exit status 3]", "out\nerr\n"},
		"true":                           {"[exit status 0]", "(no output)"},
		"kill -9 $$":                     {"[signal: killed]", "(no output)"},
		"cat; read -r x || echo end":     {"[exit status 0]", "end\n"},
		"pwd":                            {"[exit status 0]", b.root + "\n"},
		"cat sub/file":                   {"[exit status 0]", "text"},
		`printf 'a\000b\377'`:            {"[exit status 0]", "a\uFFFDb\uFFFD"},
		"exec 1>&- 2>&-; touch silent":   {"[exit status 0]", "(no output)"},
	} {
		status, out := b.shell(t, command)
		require.Equal(t, want, [2]string{status, out}, command)
	}
	require.FileExists(t, filepath.Join(b.root, "silent"))
	_, out := split(t, b.ok(t, "shell_run", args{"command": "pwd; cat file", "dir": "sub"}))
	require.Equal(t, b.root+"/sub\ntext", out)
}

func TestShellRefuses(t *testing.T) {
	b := setup(t, nil)
	for words, in := range map[string]args{
		"command is empty":                {"command": " \n"},
		"has a NUL":                       {"command": "touch made\x00"},
		"longer than":                     {"command": "touch made #" + strings.Repeat("x", 100_000)},
		"timeout_seconds is 1 to 1800":    {"command": "touch made", "timeout_seconds": 1801},
		"is outside the workspace":        {"command": "touch made", "dir": ".."},
		"nowhere does not exist":          {"command": "touch made", "dir": "nowhere"},
		".ssh is protected":               {"command": "touch made", "dir": ".ssh"},
		"arguments do not fit the tool's": {"cmd": "touch made"},
	} {
		b.refused(t, "shell_run", in, words)
	}
	b.refused(t, "shell_run", args{"command": "touch made", "timeout_seconds": -1}, "timeout_seconds")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := b.doContext(ctx, "shell_run", args{"command": "touch made"}, nil)
	require.ErrorIs(t, err, context.Canceled)
	require.NoFileExists(t, filepath.Join(b.root, "made"))
}

func TestShellEnvironment(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "s3cret-key")
	t.Setenv("HTTPS_PROXY", "http://user:s3cret-key@proxy")
	t.Setenv("WANTED", "given")
	t.Setenv("LC_ALL", "C")
	home := t.TempDir()
	b := setup(t, &workspace.Options{Home: home, Env: []string{"WANTED", "NOT_SET"}})
	_, out := b.shell(t, "env; export -p")
	require.NotContains(t, out, "s3cret-key")
	require.NotContains(t, out, "NOT_SET")
	for _, line := range []string{"WANTED=given", "HOME=" + home, "LC_ALL=C", "PWD=" + b.root, "TERM=dumb", "PATH=" + os.Getenv("PATH")} {
		require.Contains(t, "\n"+out, "\n"+line+"\n")
	}
}

func TestShellHomeLastsAndTempDoesNot(t *testing.T) {
	b := setup(t, nil)
	_, temp := b.shell(t, `touch "$HOME/kept" "$TMPDIR/lost"; printf %s "$TMPDIR"`)
	require.NoDirExists(t, temp)
	status, _ := b.shell(t, `test -e "$HOME/kept" && test ! -e "$TMPDIR/lost"`)
	require.Equal(t, "[exit status 0]", status)
}

// What one session leaves in HOME, such as a configuration of git, no other one reads.
func TestEachSessionHasItsHome(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	root := t.TempDir()
	w, err := workspace.Open(root, &workspace.Options{AsRoot: true})
	require.NoError(t, err)
	t.Cleanup(func() { w.Close() })
	b := bench{Workspace: w, root: root, session: "one"}
	_, home := b.shell(t, `touch "$HOME/.gitconfig"; printf %s "$HOME"`)
	b.session = "two"
	status, out := b.shell(t, `test ! -e "$HOME/.gitconfig" && ! touch `+home+`/planted`)
	if b.Confined() {
		require.Equal(t, "[exit status 0]", status, out)
	}
	_, other := b.shell(t, `printf %s "$HOME"`)
	require.NotEqual(t, home, other)
	b.session = "one"
	status, out = b.shell(t, `test -e "$HOME/.gitconfig" && test ! -e "$HOME/planted"`)
	require.Equal(t, "[exit status 0]", status, out)
}

func TestShellWithoutALastingHome(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", "/proc/no/such/place")
	t.Setenv("HOME", "/proc/no/such/place")
	root := t.TempDir()
	w, err := workspace.Open(root, &workspace.Options{AsRoot: true})
	require.NoError(t, err)
	t.Cleanup(func() { w.Close() })
	status, out := bench{Workspace: w, root: root}.shell(t, `touch "$HOME/file" && test "$HOME" = "$TMPDIR/home"`)
	require.Equal(t, "[exit status 0]", status, out)
}

func TestShellOutputIsBounded(t *testing.T) {
	b := setup(t, nil)
	status, out := b.shell(t, "echo first; yes 0123456789 | head -n 100000; echo last; exit 7")
	require.Equal(t, "[exit status 7]", status)
	require.Less(t, len(out), 50<<10)
	require.True(t, strings.HasPrefix(out, "first\n0123456789\n"))
	require.True(t, strings.HasSuffix(out, "0123456789\nlast\n"))
	require.Regexp(t, `\n\[… 1050\d\d\d bytes left out …\]\n`, out)
}

// stubborn starts a grandchild that does not listen to SIGTERM and writes its number.
const stubborn = `sh -c 'sh -c "trap \"\" TERM; echo \$\$ > pid.new; mv pid.new pid; while :; do sleep 1; done" & wait' & echo waiting; wait`

func TestShellTimeoutEndsGrandchildren(t *testing.T) {
	b := setup(t, nil)
	began := time.Now()
	status, out := split(t, b.ok(t, "shell_run", args{"command": stubborn, "timeout_seconds": 1}))
	require.Equal(t, "[its time was up: the command and all that it had started were ended]", status)
	require.Equal(t, "waiting\n", out)
	require.Less(t, time.Since(began), soon)
	gone(t, b.process(t, "pid"))
}

func TestShellCancellationEndsGrandchildren(t *testing.T) {
	b := setup(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	answer := make(chan string, 1)
	go func() {
		text, err := b.doContext(ctx, "shell_run", args{"command": stubborn}, nil)
		answer <- fmt.Sprint(text, err)
	}()
	pid := b.process(t, "pid")
	began := time.Now()
	cancel()
	text := <-answer
	require.Less(t, time.Since(began), 5*time.Second, "half a second on an idle machine")
	require.Regexp(t, `^\[cancelled after .*: the command and all that it had started were ended\]\nwaiting\n<nil>$`, text)
	gone(t, pid)
}

func TestShellProgress(t *testing.T) {
	b := setup(t, nil)
	var mu sync.Mutex
	var said []string
	text, err := b.doContext(t.Context(), "shell_run", args{"command": `echo one; printf 'two \033[1m2'; until test -e go; do sleep 0.01; done`}, func(line string) {
		mu.Lock()
		defer mu.Unlock()
		said = append(said, line)
		b.put(t, "go", "")
	})
	require.NoError(t, err)
	require.Contains(t, text, "one\ntwo \x1b[1m2")
	require.Equal(t, []string{"two [1m2"}, said)
}

func TestShellsAtOnce(t *testing.T) {
	b := setup(t, nil)
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			text, err := b.do("shell_run", args{"command": fmt.Sprintf("echo %d > f%d; cat f%d", i, i, i)})
			if err != nil || !strings.HasSuffix(text, fmt.Sprintf("]\n%d\n", i)) {
				t.Errorf("%q %v", text, err)
			}
		})
	}
	all.Wait()
}

// Where the kernel can't hold a command it is refused, unless the options say otherwise.
func TestShellWithoutLandlock(t *testing.T) {
	strict := setup(t, nil)
	strict.Unhold()
	require.Contains(t, strict.Confinement(), "refused")
	require.ErrorIs(t, strict.CheckShell(), agent.CodeDenied)
	require.ErrorContains(t, strict.CheckShell(), "write confine: where_possible")
	_, err := strict.do("shell_run", args{"command": "touch made"})
	require.ErrorIs(t, err, agent.CodeDenied)
	require.NoFileExists(t, filepath.Join(strict.root, "made"))

	for _, how := range []tool.Confine{tool.ConfineWherePossible, tool.ConfineNever} {
		b := setup(t, &workspace.Options{Confine: how})
		b.Unhold()
		require.NoError(t, b.CheckShell())
		require.False(t, b.Confined())
		require.Contains(t, b.Confinement(), "Nothing but your care holds commands")
		require.Contains(t, b.Tools()[4].Spec().Description, b.Confinement())
		status, out := b.shell(t, "cat ../outside/secret")
		require.Equal(t, "[exit status 0]", status)
		require.Equal(t, "s3cret", out)
		b.shell(t, "sleep 1000 >/dev/null 2>&1 & echo $! > pid")
		gone(t, b.process(t, "pid"))
	}
	_, err = workspace.Open(t.TempDir(), &workspace.Options{Confine: "perhaps"})
	require.ErrorIs(t, err, agent.CodeInvalidInput)
}

// Where this process is root, commands are refused unless the options say otherwise.
func TestShellAsRoot(t *testing.T) {
	b := setup(t, nil)
	w, err := workspace.Open(b.root, &workspace.Options{Home: t.TempDir(), Confine: tool.ConfineWherePossible})
	require.NoError(t, err)
	defer w.Close()
	if os.Geteuid() != 0 {
		require.NoError(t, w.CheckShell())
		return
	}
	require.ErrorIs(t, w.CheckShell(), agent.CodeDenied)
	require.ErrorContains(t, w.CheckShell(), "as_root: true")
	_, err = bench{Workspace: w, root: b.root}.do("shell_run", args{"command": "touch made"})
	require.ErrorIs(t, err, agent.CodeDenied)
	require.NoFileExists(t, filepath.Join(b.root, "made"))
}
