package mcp_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/confine"
	"github.com/fermata-agents/fermata/internal/testenv"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/tool/mcp"
)

// confinedServer starts a server under options that are nothing but those.
func confinedServer(t *testing.T, o mcp.Options) rig {
	t.Helper()
	if !confine.HostKernel().Holds() {
		testenv.Need(t, fmt.Errorf("this kernel can't hold programs: %s", confine.HostKernel()))
	}
	o.Env, o.AsRoot = map[string]string{serve: "reaching", "GORACE": "atexit_sleep_ms=0"}, true
	s := mcp.New("tickets", []string{os.Args[0]}, &o)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return rig{s, &logs{}}
}

// What holds a program is said by its name.
func TestConfinementNamesTheSandbox(t *testing.T) {
	for sandbox, says := range map[tool.Sandbox]string{tool.SandboxLandlock: "the kernel confines it", tool.SandboxBubblewrap: "bubblewrap confines it"} {
		t.Run(string(sandbox), func(t *testing.T) {
			for network, with := range map[bool]string{false: "without network", true: "with the network"} {
				s := mcp.New("desk", []string{"true"}, &mcp.Options{Sandbox: sandbox, Network: network, AsRoot: true})
				testenv.Need(t, s.CheckStart())
				require.Equal(t, says+" to its own files, "+with, s.Confinement())
			}
		})
	}
}

// A server's program has its own files, and none of the user's.
func TestProgramIsConfined(t *testing.T) {
	home, outside := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CACHE_HOME", filepath.Join(home, "cache"))
	t.Setenv("FERMATA_APPROVAL_KEYS", "s3cret")
	require.NoError(t, os.Mkdir(filepath.Join(home, ".ssh"), 0o755))
	for _, path := range []string{filepath.Join(home, ".ssh", "id_rsa"), filepath.Join(outside, "fermata.yaml")} {
		require.NoError(t, os.WriteFile(path, []byte("s3cret"), 0o644))
	}
	r := confinedServer(t, mcp.Options{Dir: outside})
	require.NoError(t, r.CheckStart())
	require.Equal(t, "the kernel confines it to its own files, without network", r.Confinement())
	own := filepath.Dir(os.Args[0])
	for _, command := range []string{
		"cat " + home + "/.ssh/id_rsa", "cat fermata.yaml", "cat " + outside + "/fermata.yaml", "echo evil > fermata.yaml", "touch new", "rm fermata.yaml",
		"touch " + home + "/.profile", "touch " + own + "/evil", "cp /bin/true " + os.Args[0], "touch /tmp/fermata-escaped", "touch /etc/fermata",
		"cat /proc/" + strconv.Itoa(os.Getpid()) + "/environ", "cat /proc/" + strconv.Itoa(os.Getpid()) + "/root" + outside + "/fermata.yaml", "kill -9 " + strconv.Itoa(os.Getpid()),
		"touch \"$HOME/f\" && chmod 4755 \"$HOME/f\"",
	} {
		answer := r.ok(t, "sh", command)
		require.True(t, strings.HasPrefix(answer, "failed: "), "%s: %s", command, answer)
		require.NotContains(t, answer, "s3cret", command)
	}
	require.NotContains(t, r.ok(t, "sh", "env"), "s3cret")
	answer := r.ok(t, "sh", `echo kept > "$HOME/kept" && echo x > "$TMPDIR/x" && printf '%s %s' "$HOME" "$TMPDIR"`)
	require.True(t, strings.HasPrefix(answer, "went: "), answer)
	its, temp, _ := strings.Cut(strings.TrimPrefix(answer, "went: "), " ")
	require.Equal(t, filepath.Join(home, "cache", "fermata", "mcp"), filepath.Dir(its))
	require.NoError(t, r.Close())
	require.FileExists(t, filepath.Join(its, "kept"))
	require.NoDirExists(t, temp)

	other := confinedServer(t, mcp.Options{Dir: outside, Read: []string{outside}, Write: []string{home}})
	require.Equal(t, "went: s3cret", other.ok(t, "sh", "cat fermata.yaml"))
	require.Equal(t, "went: ", other.ok(t, "sh", "touch "+home+"/.profile"))
	require.Contains(t, other.ok(t, "sh", "touch new"), "failed: ")

	free := confinedServer(t, mcp.Options{Dir: outside, Confine: tool.ConfineNever})
	require.Equal(t, "went: "+home+"\n", free.ok(t, "sh", "cat fermata.yaml >/dev/null && touch new && echo $HOME"))
	require.Contains(t, free.Confinement(), "nothing confines it")
}

// A server's program reaches nothing that listens, unless its options say so.
func TestProgramHasNoNetwork(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer tcp.Close()
	path := filepath.Join(t.TempDir(), "s")
	local, err := net.Listen("unix", path)
	require.NoError(t, err)
	defer local.Close()
	for network, want := range map[bool]string{false: "failed: ", true: "went"} {
		r := confinedServer(t, mcp.Options{Network: network})
		for _, where := range []string{"tcp " + tcp.Addr().String(), "unix " + path, "udp " + tcp.Addr().String()} {
			require.True(t, strings.HasPrefix(r.ok(t, "dial", where), want), "%s with network %t", where, network)
		}
	}
}

// Nothing that a program started outlives it, whatever that did.
func TestProgramLeavesNothing(t *testing.T) {
	_, err := exec.LookPath("setsid")
	if err != nil {
		err = fmt.Errorf("setsid is missing: install it (on Debian: apt-get install util-linux): %w", err)
	}
	testenv.Need(t, err)
	r := confinedServer(t, mcp.Options{})
	r.ok(t, "sh", `(env -i setsid sh -c 'echo $$ > '"$HOME"'/pid.new; mv '"$HOME"'/pid.new '"$HOME"'/pid; exec sleep 1000' </dev/null >/dev/null 2>&1 &) & until test -e "$HOME/pid"; do sleep 0.01; done`)
	answer := r.ok(t, "sh", `cat "$HOME/pid"; rm "$HOME/pid"`)
	pid, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(answer, "went: ")))
	require.NoError(t, err)
	require.NoError(t, r.Close())
	gone(t, pid)
}

// A program is not started that would have what is protected, or as root without a word.
func TestProgramThatIsNotStarted(t *testing.T) {
	data, folder := t.TempDir(), t.TempDir()
	inner := filepath.Join(data, "store")
	require.NoError(t, os.Mkdir(inner, 0o700))
	for _, o := range []mcp.Options{
		{Read: []string{data}}, {Read: []string{filepath.Dir(data)}}, {Read: []string{inner}}, {Write: []string{data}}, {Home: inner}, {Write: []string{folder}},
		{Write: []string{filepath.Dir(folder)}},
	} {
		o.Private, o.Protect = []string{data}, []string{filepath.Join(folder, "fermata.yaml")}
		r := confinedServer(t, o)
		require.ErrorIs(t, r.CheckStart(), agent.CodeDenied)
		_, err := r.List(t.Context())
		require.ErrorIs(t, err, agent.CodeDenied)
	}
	// What is granted by itself is less, if there is something private in it.
	r := confinedServer(t, mcp.Options{Private: []string{filepath.Join(filepath.Dir(os.Args[0]), "data")}})
	require.Contains(t, r.ok(t, "sh", "ls "+filepath.Dir(os.Args[0])), "failed: ")

	s := mcp.New("tickets", []string{"cat"}, nil)
	if confine.IsRoot() {
		require.ErrorContains(t, s.CheckStart(), "as_root: true")
	} else {
		require.NoError(t, s.CheckStart())
	}
	for _, o := range []mcp.Options{{Confine: "perhaps"}, {Read: []string{"x"}}} {
		require.ErrorIs(t, mcp.New("tickets", []string{"cat"}, &o).Err(), agent.CodeInvalidInput)
	}
}

// Without bwrap it is that which is missing, and not the server's program.
func TestBubblewrapIsMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	s := mcp.New("tickets", []string{"/bin/true"}, &mcp.Options{Sandbox: tool.SandboxBubblewrap, AsRoot: true, Home: t.TempDir()})
	defer s.Close()
	_, err := s.List(t.Context())
	require.ErrorContains(t, err, "bubblewrap can't hold it")
	require.ErrorContains(t, err, "install it (the package is called bubblewrap)")
}
