package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/tool"
)

// Options says how a server is run; nil means every default.
type Options struct {
	// Env is added to the short list of variables that the server gets. Secrets
	// belong here and not into the command, which is shown in errors.
	Env map[string]string
	// Dir is where the server runs; empty means this process' directory.
	Dir string
	// StartTimeout caps how long the server may take to start and answer the
	// handshake, and to list its tools; zero means 10s. A command that has to be
	// downloaded first, as by npx, may need more the first time.
	StartTimeout time.Duration
	// CallTimeout caps one call; zero leaves it to the runtime, whose cap is ten
	// minutes. It becomes the tools' [agent.ToolSpec.Timeout], too.
	CallTimeout time.Duration
	// Logger hears of starts and ends, of tools that are left out or renamed and,
	// at level debug, of the server's error output; nil means nobody does.
	Logger *slog.Logger
}

func (o *Options) startTimeout() time.Duration {
	if o.StartTimeout <= 0 {
		return 10 * time.Second
	}
	return o.StartTimeout
}

func (o *Options) logger() *slog.Logger {
	if o.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Logger
}

// Server is an MCP server as a [tool.Source]. It may be used from many
// goroutines at once.
type Server struct {
	name    string
	command []string
	opts    Options
	log     *slog.Logger

	mu     sync.Mutex
	live   *link  // the last one that started; it may have ended since
	next   *start // one that is starting
	closed bool
}

var _ tool.Source = (*Server)(nil)

// start is a server that is being started, on behalf of all who wait for it.
type start struct {
	cancel context.CancelFunc
	done   chan struct{}
	link   *link
	err    error
}

// New describes a server and starts nothing yet. name is the first half of its
// tools' names: letters, digits and '-', single '_'. A fault in name or command
// is told by List and Call.
func New(name string, command []string, o *Options) *Server {
	if o == nil {
		o = &Options{}
	}
	return &Server{name: name, command: slices.Clone(command), opts: *o, log: o.logger().With("mcp", name)}
}

// Name is the name that the server was given.
func (s *Server) Name() string { return s.name }

// Close ends the server and all that it started. Calls that it is at fail; later
// ones are refused. It may be called more than once.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	next := s.next
	s.mu.Unlock()
	if next != nil {
		next.cancel()
		<-next.done
	}
	s.mu.Lock()
	live := s.live
	s.mu.Unlock()
	if live != nil && !live.process.stop() {
		return fmt.Errorf("the MCP server %s does not end", s.name)
	}
	return nil
}

func (s *Server) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// check tells what is wrong with the name or the command.
func (s *Server) check() error {
	if err := agent.CheckTool(s.name); err != nil || len(s.name) > maxServerName || strings.Contains(s.name+"_", tool.Separator) {
		return agent.Errorf(agent.InvalidInput, "MCP server %q: use 1 to %d letters, digits, '-' or single '_', beginning with a letter", s.name, maxServerName).At("mcp")
	}
	if len(s.command) == 0 || s.command[0] == "" {
		return agent.Errorf(agent.InvalidInput, "MCP server %s: its command is missing", s.name).At("mcp")
	}
	return nil
}

// connected is the running server. Where there is none it is started, once for
// all who ask; who does not want to wait any more leaves the others undisturbed.
func (s *Server) connected(ctx context.Context) (*link, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, s.errClosed()
	}
	if s.live != nil && s.live.conn.broken() == nil {
		defer s.mu.Unlock()
		return s.live, nil
	}
	next := s.next
	if next == nil {
		begin, cancel := context.WithTimeoutCause(context.Background(), s.opts.startTimeout(), errStartTime)
		next = &start{cancel: cancel, done: make(chan struct{})}
		s.next = next
		go s.begin(begin, next)
	}
	s.mu.Unlock()
	select {
	case <-next.done:
		return next.link, next.err
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for the MCP server %s to start: %w", s.name, context.Cause(ctx))
	}
}

var errStartTime = errors.New("the time to start is up")

func (s *Server) errClosed() error {
	return tool.Refuse("the MCP server %s is closed", s.name)
}

func (s *Server) begin(ctx context.Context, next *start) {
	defer next.cancel()
	s.mu.Lock()
	last := s.live
	s.mu.Unlock()
	if last != nil {
		last.process.stop() // its connection is broken; it may not have ended yet
	}
	next.link, next.err = s.dial(ctx)
	s.mu.Lock()
	if s.next = nil; next.err == nil {
		s.live = next.link
	}
	s.mu.Unlock()
	if next.err != nil {
		s.log.Warn("MCP server did not start", "error", next.err)
	}
	close(next.done)
}
