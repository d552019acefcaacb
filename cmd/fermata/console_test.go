package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	temporal "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/localworker"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/terminal"
	"github.com/fermata-agents/fermata/devserver"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// stage is the package's server with a task queue of the test's own, and the
// commands that speak to it.
type stage struct {
	*fermata.Client
	t        *testing.T
	temporal temporal.Client
	flags    []string
	options  worker.Options
	worker   *worker.Worker
	name     string // no other test's sessions begin so
}

// role is an agent with what its model says.
type role struct {
	agent.Definition
	says []testsuite.Reply
}

func scripted(t *testing.T, roles ...role) *stage {
	t.Helper()
	t.Parallel()
	server := devserver.ForPackage(t)
	c, err := server.Dial(t.Context(), temporal.Options{Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	home := t.TempDir()
	dir, err := store.OpenDir(home, nil)
	require.NoError(t, err)
	name := strings.ToLower(t.Name()) + "-" + uuid.NewString()[:8]
	s := &stage{t: t, temporal: c, name: name, options: worker.Options{
		TaskQueue: name, Store: dir, Logger: zap.NewNop(), Models: map[string]model.Model{}, Temporal: localworker.StopsWithin(time.Second),
	}}
	s.flags = []string{"--address", server.Addr(), "--task-queue", name, "--store", home, "--data", home}
	for _, r := range roles {
		r.Model = r.Name
		s.options.Models[r.Name] = testsuite.NewScript(r.says...)
		s.options.Agents = append(s.options.Agents, r.Definition)
	}
	s.Client = fermata.New(c, &fermata.Options{TaskQueue: name, Store: dir})
	return s
}

// works starts the worker, and waits until the server knows of it.
func (s *stage) works(tools ...tool.Tool) *stage {
	s.t.Helper()
	s.options.Tools = tools
	w, err := worker.New(s.temporal, &s.options)
	require.NoError(s.t, err)
	require.NoError(s.t, w.Start(s.t.Context()))
	s.t.Cleanup(w.Stop)
	s.worker = w
	c := &connect.Connector{Flags: connect.Flags{TaskQueue: s.name}}
	require.Eventually(s.t, func() bool {
		names, err := c.Pollers(s.t.Context(), &connect.Server{Client: s.temporal, Namespace: connect.DefaultNamespace})
		return err == nil && len(names) > 0
	}, patience, 5*time.Millisecond)
	return s
}

// session is a name that no other test has.
func (s *stage) session(name string) string { return s.name + "." + name }

// begin starts a run and does not wait.
func (s *stage) begin(name, who string, o *fermata.StartOptions) *fermata.Run {
	s.t.Helper()
	if o == nil {
		o = &fermata.StartOptions{}
	}
	o.Session = s.session(name)
	run, err := s.Start(s.t.Context(), who, "go", o)
	require.NoError(s.t, err)
	return run
}

// rests waits until a run rests or ends.
func (s *stage) rests(run *fermata.Run) *agent.Outcome {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	o, err := run.Wait(ctx)
	require.NoError(s.t, err)
	return o
}

// does waits until a run is at something.
func (s *stage) does(run *fermata.Run, what agent.InFlightKind) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		st, err := run.Status(s.t.Context())
		return err == nil && len(st.InFlight) > 0 && st.InFlight[0].Kind == what
	}, patience, 10*time.Millisecond)
}

// run runs a command without a terminal.
func (s *stage) run(args ...string) ran {
	s.t.Helper()
	return inProcess(s.t, append(args, s.flags...)...)
}

// fails runs a command that is to fail so.
func (s *stage) fails(exit int, want string, args ...string) {
	s.t.Helper()
	r := s.run(args...)
	require.Equal(s.t, exit, r.exit, "%v: %s%s", args, r.out, r.err)
	require.Contains(s.t, r.err, want, "%v", args)
}

// desk is a person at the terminal of a command.
type desk struct {
	t      *testing.T
	screen *screen
	typed  *io.PipeWriter
	keys   *terminal.Keys
	leave  context.CancelFunc // SIGTERM
	exit   chan int
	err    bytes.Buffer
}

// sits runs a command on a terminal.
func (s *stage) sits(args ...string) *desk {
	s.t.Helper()
	in, typed := io.Pipe()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	s.t.Cleanup(cancel)
	d := &desk{t: s.t, screen: &screen{changed: make(chan struct{})}, typed: typed, leave: cancel, exit: make(chan int, 1)}
	c := newCLI(in, d.screen, &d.err)
	d.keys = terminal.NewKeys(cancel)
	c.terminal, c.keys = true, d.keys
	go func() {
		d.exit <- c.execute(ctx, append(args, s.flags...))
		d.screen.over()
	}()
	return d
}

// sees waits until something stands on the screen, behind what was seen before.
func (d *desk) sees(text string) *desk {
	d.t.Helper()
	if !d.screen.await(text) {
		d.t.Fatalf("%q does not come; the screen is:\n%s", text, d.screen)
	}
	return d
}

// types types a line.
func (d *desk) types(line string) *desk {
	d.t.Helper()
	_, err := io.WriteString(d.typed, line+"\n")
	require.NoError(d.t, err)
	return d
}

// answers types a line when something is seen.
func (d *desk) answers(seen, line string) *desk {
	d.t.Helper()
	return d.sees(seen).types(line)
}

// presses is Ctrl-C.
func (d *desk) presses() *desk { d.keys.Interrupt(); return d }

// ends waits for the command's end.
func (d *desk) ends(exit int) ran {
	d.t.Helper()
	select {
	case code := <-d.exit:
		r := ran{code, d.screen.String(), d.err.String()}
		require.Equal(d.t, exit, r.exit, r.out+r.err)
		return r
	case <-time.After(patience):
		d.t.Fatalf("the command does not end; the screen is:\n%s", d.screen)
	}
	return ran{}
}

// screen is what was written to a terminal.
type screen struct {
	mu      sync.Mutex
	text    bytes.Buffer
	seen    int
	changed chan struct{}
	closed  bool // the command has ended
}

func (s *screen) over() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
	return s.text.Write(b)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func (s *screen) await(text string) bool {
	timeout := time.After(patience / 2)
	for {
		s.mu.Lock()
		at, changed, closed := strings.Index(s.text.String()[s.seen:], text), s.changed, s.closed
		if at >= 0 {
			s.seen += at + len(text)
		}
		s.mu.Unlock()
		if at >= 0 || closed {
			return at >= 0
		}
		select {
		case <-changed:
		case <-timeout:
			return false
		}
	}
}

// asksFor is a reply that asks the person at the other end.
func asksFor(text string, choices ...any) testsuite.Reply {
	arguments := map[string]any{"question": text}
	if len(choices) > 0 {
		arguments["choices"] = choices
	}
	return calls(agent.AskUserTool, arguments)
}

func calls(tool string, arguments map[string]any) testsuite.Reply {
	return testsuite.Reply{Calls: []testsuite.Call{{Tool: tool, Arguments: arguments}}}
}

// pay is a tool that is asked for.
func pay() tool.Tool {
	return tool.New("pay", "pays", func(_ context.Context, _ *tool.Call, in struct {
		Eur int `json:"eur"`
	}) (string, error) {
		return fmt.Sprintf("paid %d EUR", in.Eur), nil
	}, nil)
}
