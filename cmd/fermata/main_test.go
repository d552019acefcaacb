package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/cmd/fermata/internal/await"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/disk"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
	"github.com/fermata-agents/fermata/devserver"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/signals"
)

// fullMark is a file that makes the disk of its folder full.
const fullMark = "disk-is-full"

// Environment variables that make the test binary something else.
const (
	asFermata = "FERMATA_TEST_AS_FERMATA" // the command; the value is its default address
	asMCP     = "FERMATA_TEST_AS_MCP"     // an MCP server
	unreadFor = "FERMATA_TEST_UNREAD_FOR" // how long a worker stays that can't decrypt what it is given
	holdsUp   = "FERMATA_TEST_HOLDS_UP"   // a file: until it is there, the command does nothing with the server that it has started
)

// TestMain makes the test binary the command itself where it is called as one:
// tests of whole processes need no second build.
func TestMain(m *testing.M) {
	disk.Free = func(dir string) (int64, error) {
		if _, err := os.Stat(filepath.Join(dir, fullMark)); err == nil {
			return 4096, nil
		}
		return disk.Measure(dir)
	}
	if mark := os.Getenv(holdsUp); mark != "" {
		connect.StartServer = func(ctx context.Context, o *devserver.Options) (*devserver.Server, error) {
			s, err := connect.StartEmbedded(ctx, o)
			_ = os.WriteFile(mark+".up", nil, 0o600)
			for _, gone := os.Stat(mark); gone != nil && await.Pause(ctx, time.Millisecond); _, gone = os.Stat(mark) {
			}
			return s, err
		}
	}
	if stays, err := time.ParseDuration(os.Getenv(unreadFor)); err == nil {
		durable.UnreadFor = stays
	}
	if addr := os.Getenv(asFermata); addr != "" {
		connect.DefaultAddress = addr
		_ = os.Unsetenv(asFermata)
		main()
	}
	if os.Getenv(asMCP) != "" {
		serveMCP()
		return
	}
	// Of the approvers that tests have.
	for _, p := range []env.KeyPair{env.ApprovalKeys, env.ExportKeys} {
		one, err := signals.NewSigner("k1")
		if err != nil {
			panic(err)
		}
		two, err := signals.NewSigner("k2")
		if err != nil {
			panic(err)
		}
		_ = os.Setenv(p.Private, one.Private())
		_ = os.Setenv(p.Public, one.Public()+","+two.Public())
	}
	// Most tests wait, for processes and for timers, and need no processor meanwhile.
	_ = flag.Set("test.parallel", "4")
	devserver.Main(m)
}

// patience bounds what a test waits for. Nothing takes nearly as long.
const patience = 2 * time.Minute

// bench is a user's machine: a working directory and a data directory.
type bench struct {
	t         *testing.T
	dir, data string
	tmp       string
	addr      string // where Temporal usually listens, on this machine
	env       []string
}

func setup(t *testing.T) *bench {
	t.Helper()
	root := t.TempDir()
	b := &bench{t: t, dir: filepath.Join(root, "work"), data: filepath.Join(root, "data"), tmp: filepath.Join(root, "tmp"), addr: freeAddress(t)}
	for _, dir := range []string{b.dir, b.data, b.tmp} {
		require.NoError(t, os.MkdirAll(dir, 0o700))
	}
	b.env = []string{
		"XDG_DATA_HOME=" + b.data, "XDG_CACHE_HOME=" + b.tmp, "XDG_CONFIG_HOME=" + root, "HOME=" + root, "TMPDIR=" + b.tmp,
		"PATH=" + os.Getenv("PATH"), asFermata + "=" + b.addr,
	}
	t.Cleanup(b.nothingLeft)
	return b
}

// elsewhere is the same machine, in a directory without an agents file.
func (b *bench) elsewhere() *bench {
	other := *b
	other.dir = b.t.TempDir()
	return &other
}

// freeAddress is a port of loopback that nobody has, of those that the system does not
// give away by itself: else a server of another test might have it a moment later.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(10_000)))
		if err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}

// nothingLeft checks that no server has the data directory and nothing lies about.
func (b *bench) nothingLeft() {
	for _, dir := range []string{"fermata", "fermata/demo"} {
		path := filepath.Join(b.data, dir, connect.LockName)
		if _, err := os.Stat(path); err != nil {
			continue
		}
		lock := flock.New(path)
		free, err := lock.TryLock()
		require.NoError(b.t, err)
		require.True(b.t, free, "%s is held", path)
		require.NoError(b.t, lock.Close())
	}
	left, err := filepath.Glob(filepath.Join(b.tmp, "fermata-*"))
	require.NoError(b.t, err)
	// A worker that was killed leaves those of its MCP servers.
	left = slices.DeleteFunc(left, func(path string) bool { return strings.HasPrefix(filepath.Base(path), "fermata-mcp-") })
	require.Empty(b.t, left)
	// Where the system shows it, no process of this machine is left.
	all, err := filepath.Glob("/proc/[0-9]*/environ")
	require.NoError(b.t, err)
	for _, path := range all {
		env, _ := os.ReadFile(path) // it may have ended meanwhile
		require.NotContains(b.t, string(env), "="+b.tmp+"\x00", "%s is still there", filepath.Dir(path))
	}
}

// write puts a file into the working directory.
func (b *bench) write(name, text string) { writeFile(b.t, filepath.Join(b.dir, name), text) }

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

// command makes a process of the command.
func (b *bench) command(args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	b.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Dir, cmd.Env = b.dir, b.env
	// Whoever inherits the output and outlives the command is found by this.
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// ran is what became of a command.
type ran struct {
	exit     int
	out, err string
}

// run runs a command to its end.
func (b *bench) run(args ...string) ran {
	b.t.Helper()
	return b.ends(b.command(args...))
}

// ends runs a process to its end.
func (b *bench) ends(cmd *exec.Cmd) ran {
	b.t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	return b.finished(cmd, cmd.Run(), &out, &errs)
}

func (b *bench) finished(cmd *exec.Cmd, err error, out, errs *bytes.Buffer) ran {
	b.t.Helper()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		b.t.Fatalf("%v: %v\n%s\n%s", cmd.Args[1:], err, out, errs)
	}
	r := ran{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
	b.gone(r)
	return r
}

var embeddedAt = regexp.MustCompile(`(?m)^temporal (\S+), namespace \S+ \(embedded in this process, data in .+\)$`)

// gone checks that a server that lived in the process does not listen any more.
func (b *bench) gone(r ran) {
	b.t.Helper()
	if at := embeddedAt.FindStringSubmatch(r.err); at != nil {
		require.True(b.t, connect.Free(at[1]), "%s is still listened at", at[1])
	}
}

// process is a command that goes on.
type process struct {
	b     *bench
	cmd   *exec.Cmd
	lines chan string // of standard output

	mu  sync.Mutex
	out bytes.Buffer
	err bytes.Buffer
}

// start starts a command.
func (b *bench) start(args ...string) *process { return b.reads(nil, args...) }

// reads starts a command with an input.
func (b *bench) reads(in io.Reader, args ...string) *process {
	b.t.Helper()
	return b.started(in, b.command(args...))
}

func (b *bench) started(in io.Reader, cmd *exec.Cmd) *process {
	b.t.Helper()
	p := &process{b: b, cmd: cmd, lines: make(chan string, 1000)}
	r, w, err := os.Pipe()
	require.NoError(b.t, err)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = in, w, &p.err
	require.NoError(b.t, p.cmd.Start())
	w.Close()
	go p.read(r)
	b.t.Cleanup(func() {
		if p.cmd.ProcessState == nil {
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait()
		}
	})
	return p
}

func (p *process) read(r io.ReadCloser) {
	defer close(p.lines)
	defer r.Close()
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		p.mu.Lock()
		p.out.WriteString(lines.Text() + "\n")
		p.mu.Unlock()
		p.lines <- lines.Text()
	}
}

// until waits for a line of the output that begins so.
func (p *process) until(prefix string) {
	p.b.t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				_ = p.cmd.Wait()
				p.b.t.Fatalf("%v ended without a line %q:\n%s%s", p.cmd.Args[1:], prefix, &p.out, &p.err)
			}
			if strings.HasPrefix(line, prefix) {
				return
			}
		case <-timeout:
			p.b.t.Fatalf("%v: no line %q", p.cmd.Args[1:], prefix)
		}
	}
}

// end sends a signal and waits for the end.
func (p *process) end(s syscall.Signal) ran {
	p.b.t.Helper()
	require.NoError(p.b.t, p.cmd.Process.Signal(s))
	return p.wait()
}

func (p *process) wait() ran {
	p.b.t.Helper()
	err := p.cmd.Wait()
	for range p.lines {
		// until the reader has all
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.b.finished(p.cmd, err, &p.out, &p.err)
}

// inProcess runs a command within the test.
func inProcess(t *testing.T, args ...string) ran {
	t.Helper()
	var out, errs bytes.Buffer
	code := newCLI(strings.NewReader(""), &out, &errs).execute(t.Context(), args)
	return ran{code, out.String(), errs.String()}
}
