package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/confine"
	"github.com/fermata-agents/fermata/tool"
)

// Options says how a server is run or reached; nil means all defaults.
type Options struct {
	// Env of a server that is a command is added to the short list of variables that
	// it gets. Of one that has a URL it has the values that Headers names. Secrets
	// belong here and not into command or URL, which are shown in errors.
	Env map[string]string
	// Dir is where a command runs; empty means this process' directory. Name it in Read, too,
	// if the command reads more of it than the files that it names.
	Dir string
	// Home is what a command has as HOME. Empty means a directory of the server's own below
	// [os.UserCacheDir], which all its processes share.
	Home string
	// Read and Write are further absolute paths that a command may read, or read and write.
	// Without them it has its HOME, a temporary directory, the system's files, and the folder
	// in which it and the files that it names lie.
	Read, Write []string
	// Network lets a command use the network, and all that listens on this machine. Without it
	// it has no socket at all.
	Network bool
	// Sandbox names what holds a command; empty means [tool.SandboxLandlock].
	Sandbox tool.Sandbox
	// Confine says what happens where the kernel can't hold a command; empty means that it is
	// not started ([tool.ConfineAlways]). With [tool.ConfineNever] it has HOME and rights of
	// this process' user.
	Confine tool.Confine
	// AsRoot lets a command run as root, where this process does. Else it is not started.
	AsRoot bool
	// Protect are paths, absolute, that Write may not open: what says which programs run.
	// Private are paths that Read may not open either. A command is not started that would
	// have one of them.
	Protect, Private []string
	// Headers go with each request to a server that has a URL, and to no other
	// server. A value may name variables of Env: "Bearer ${TICKETS_TOKEN}".
	Headers map[string]string
	// Plain allows a URL with http:// that is not on this machine. Whoever is on the
	// way then reads everything, headers too.
	Plain bool
	// OAuth gets the tokens that a server with a URL wants; nil means that it wants none, or
	// that Headers has one.
	OAuth *OAuth
	// Resources adds tools for what the server has besides tools, where it has it:
	// NAME__list_resources, NAME__read_resource and NAME__get_prompt.
	Resources bool
	// TrustHints believes the server which of its tools change nothing (readOnlyHint).
	// Else all of them count as tools that write for the classes of rules.
	TrustHints bool
	// Optional lets a run begin without the server's tools where they can't be listed.
	// Its model is told so.
	Optional bool
	// Per says who shares what the server keeps in mind: a process of a command, a session
	// of a URL. Empty means [PerSession] where the server may keep something.
	Per Per
	// Elicit lets the server ask a person in the middle of a call where it could not;
	// empty means [ElicitRounds] with a server that knows nothing but that.
	Elicit Elicit
	// StartTimeout caps how long the server may take to start or be reached and
	// answer the handshake, and to list its tools; zero means 10s. A command that has
	// to be downloaded first, as by npx, may need more the first time. With Elicit half
	// of it is for each of two handshakes, where the server takes the first for nothing.
	StartTimeout time.Duration
	// CallTimeout caps one call; zero leaves it to the runtime, whose cap is ten
	// minutes. It becomes the tools' [agent.ToolSpec.Timeout], too.
	CallTimeout time.Duration
	// Logger hears of starts and ends, of tools that are left out or renamed and,
	// at level debug, of a command's error output; nil means nobody does.
	Logger *slog.Logger
}

func (o *Options) startTimeout() time.Duration {
	if o.StartTimeout <= 0 {
		return 10 * time.Second
	}
	return o.StartTimeout
}

// Server is an MCP server as a [tool.Source]. It may be used from many
// goroutines at once.
type Server struct {
	name    string
	command []string
	url     *url.URL          // nil for a command
	headers map[string]string // with their variables filled in
	oauth   *oauth            // nil where nobody signs in
	outside *http.Client      // see abroad
	opts    Options
	hidden  curtain
	log     *slog.Logger
	sieve   sieve // for lines of what is listed
	fault   error // see Err
	// alive ends with Close, and what is under way over HTTP with it. Calls of a
	// process end with that.
	alive context.Context
	end   context.CancelCauseFunc

	mu     sync.Mutex
	words  string          // see Instructions
	shared *slot           // what belongs to no session yet
	slots  map[owner]*slot // see Options.Per
	logins map[string]*login
	heard  map[owner]*heardOf // by session and run, see Relist
	ending sync.WaitGroup     // of slots that were given up
	closed bool
}

var (
	_ tool.Optional   = (*Server)(nil)
	_ tool.Instructed = (*Server)(nil)
	_ tool.Changing   = (*Server)(nil)
)

// New describes a server that is a command and starts nothing yet. name is the
// first half of its tools' names: letters, digits and '-', single '_'. A fault in
// name or command is told by [Server.Err], List and Call.
func New(name string, command []string, o *Options) *Server {
	s := describe(name, o)
	s.command = slices.Clone(command)
	_, err := s.opts.oauth(nil)
	if err == nil {
		err = s.opts.check()
	}
	s.hide(nil)
	if s.fault == nil && err != nil {
		s.fault = agent.Errorf(agent.CodeInvalidInput, "MCP server %s: %w", name, err).WithPath("mcp")
	}
	if s.fault == nil && (len(command) == 0 || command[0] == "") {
		s.fault = agent.Errorf(agent.CodeInvalidInput, "MCP server %s: its command is missing", name).WithPath("mcp")
	}
	return s
}

// NewHTTP describes a server that is reached by the streamable HTTP transport, and
// asks it nothing yet. The URL is https:// unless it is on this machine, or
// [Options.Plain] allows it. name is as of [New]; a fault in name, URL or headers
// is told by [Server.Err], List and Call.
func NewHTTP(name, url string, o *Options) *Server {
	s := describe(name, o)
	where, err := address(url, s.opts.Plain)
	if err == nil {
		s.headers, err = s.opts.expand()
	}
	if err == nil {
		s.oauth, err = s.opts.oauth(where)
	}
	if s.url = where; err == nil && s.oauth != nil {
		s.outside = s.abroad()
	}
	s.hide(s.headers)
	if s.fault == nil && err != nil {
		s.fault = agent.Errorf(agent.CodeInvalidInput, "MCP server %s: %w", name, err).WithPath("mcp")
	}
	return s
}

func describe(name string, o *Options) *Server {
	if o == nil {
		o = &Options{}
	}
	s := &Server{name: name, opts: *o, shared: &slot{}, slots: map[owner]*slot{}, logins: map[string]*login{}, heard: map[owner]*heardOf{}}
	s.alive, s.end = context.WithCancelCause(context.Background())
	if err := agent.CheckTool(name); err != nil || len(name) > maxServerName || strings.Contains(name+"_", tool.Separator) {
		s.fault = agent.Errorf(agent.CodeInvalidInput, "MCP server %q: use 1 to %d letters, digits, '-' or single '_', beginning with a letter", name, maxServerName).WithPath("mcp")
	} else if !slices.Contains([]Elicit{"", ElicitRounds, ElicitReplay}, s.opts.Elicit) {
		s.fault = agent.Errorf(agent.CodeInvalidInput, "MCP server %s: elicit is %q; it is %s or %s, or left out", name, s.opts.Elicit, ElicitRounds, ElicitReplay).WithPath("mcp")
	} else if !slices.Contains([]Per{"", PerSession, PerRun, PerWorker}, s.opts.Per) {
		s.fault = agent.Errorf(agent.CodeInvalidInput, "MCP server %s: per is %q; it is %s, %s or %s, or left out", name, s.opts.Per, PerWorker, PerSession, PerRun).WithPath("mcp")
	}
	return s
}

// check reports what is wrong with the options of a command.
func (o *Options) check() error {
	if _, fault := confine.Check(o.Sandbox, o.Confine); fault != "" {
		return agent.Errorf(agent.CodeInvalidInput, "%s", fault)
	}
	for _, path := range slices.Concat([]string{o.Home}, o.Read, o.Write, o.Protect, o.Private) {
		if path != "" && !filepath.IsAbs(path) {
			return agent.Errorf(agent.CodeInvalidInput, "%q must be an absolute path", path)
		}
	}
	return nil
}

func (s *Server) hide(headers map[string]string) {
	s.hidden.fixed = secretsOf(s.opts.Env, headers)
	if s.oauth != nil && s.hidden.fixed[s.oauth.Secret] == "" {
		s.hidden.fixed[s.oauth.Secret] = "secret"
	}
	s.hidden.draw()
	handler := slog.DiscardHandler
	if s.opts.Logger != nil {
		handler = s.opts.Logger.Handler()
	}
	s.log = slog.New(discreet{handler, &s.hidden}).With("mcp", s.name)
	s.sieve.log = s.log
}

// address reads a URL that may be spoken to.
func address(text string, anywhere bool) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http":
		return nil, agent.Errorf(agent.CodeInvalidInput, "its URL must be https:// with a host")
	case u.User != nil:
		return nil, agent.Errorf(agent.CodeInvalidInput, "its URL has a user or a password in it; use an Authorization header")
	case u.Scheme == "http" && !anywhere && !local(u.Hostname()):
		return nil, agent.Errorf(agent.CodeInvalidInput, "its URL is http:// on another machine, where all that is sent can be read on the way: use https://, or allow plain HTTP")
	}
	return u, nil
}

func local(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// Name is the name that the server was given.
func (s *Server) Name() string { return s.name }

// Optional is [Options.Optional].
func (s *Server) Optional() bool { return s.opts.Optional }

// Instructions are what the server said of its use when its tools were last listed. At
// most 4 KiB of them are kept.
func (s *Server) Instructions() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.words
}

// Err reports what is wrong with the description ([agent.CodeInvalidInput]); nil for a
// sound one, which need not be one of a server that is there.
func (s *Server) Err() error { return s.fault }

// Close ends the session and, of a command, the process and all that it started.
// Calls that it is at fail; later ones are refused. It may be called more than once.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	all := append(slices.Collect(maps.Values(s.slots)), s.shared)
	s.mu.Unlock()
	for _, each := range all {
		s.halt(each)
	}
	if s.url != nil {
		s.end(errHungUp)
	}
	var stopping sync.WaitGroup
	var stays atomic.Bool
	for _, each := range all {
		stopping.Go(func() {
			if !s.stop(each) {
				stays.Store(true)
			}
		})
	}
	stopping.Wait()
	s.ending.Wait()
	if stays.Load() {
		return fmt.Errorf("the MCP server %s does not end", s.name)
	}
	return nil
}

func (s *Server) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// shown is the command or URL as it may be shown. What follows the path of a URL
// may be anything.
func (s *Server) shown() string {
	if s.url != nil {
		return cut(origin(s.url)+s.url.EscapedPath(), maxShown)
	}
	return "command " + cut(s.secrets(fmt.Sprintf("%q", s.command)), maxShown)
}

// with does something over a link. A session that the server has forgotten is begun
// anew, once: nothing was done in it. Nor was it in one that others have left, or where
// the server refused the connection: it may be replaced just now. who is whose link it is.
func (s *Server) with(ctx context.Context, who owner, do func(*link) error) error {
	wait := patiently(min(s.opts.startTimeout(), awayTime))
	for last := false; ; {
		l, done, err := s.linked(ctx, who)
		if err == nil {
			err = do(l)
			done()
		}
		var gone forgotten
		var refused away
		switch {
		case errors.Is(err, errMoved):
			continue
		case errors.As(err, &refused):
			if !wait(ctx, s.log) {
				return err
			}
			continue
		case !errors.As(err, &gone):
			return err
		}
		l.peer.leave(gone.error)
		if last {
			return gone.error
		}
		last = true
	}
}

// awayTime is for how long a server may refuse connections before a call of it fails.
const awayTime = 5 * time.Second

// away is the error of a server that refuses connections: it has done nothing.
type away struct{ error }

// patiently gives what waits, longer each time; it reports false where it has waited for
// long enough, or nobody wants to wait.
func patiently(most time.Duration) func(context.Context, *slog.Logger) bool {
	began, pause := time.Time{}, 50*time.Millisecond
	return func(ctx context.Context, log *slog.Logger) bool {
		if began.IsZero() {
			began = time.Now()
			log.Info("MCP server refuses connections, trying again", "for", most)
		}
		if time.Since(began)+pause > most {
			return false
		}
		timer := time.NewTimer(pause)
		defer timer.Stop()
		pause = min(2*pause, time.Second)
		select {
		case <-timer.C:
			return true
		case <-ctx.Done():
			return false
		}
	}
}

// forgotten is the error of a request in a session that the server does not know any more.
type forgotten struct{ error }

func (s *Server) errClosed() error {
	return tool.Refuse("the MCP server %s is closed", s.name)
}
