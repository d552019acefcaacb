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

// Options says how a server is started or reached; nil means all defaults.
type Options struct {
	// Env is added to the short list of variables that a command gets. For a server with
	// a URL it has the values that Headers names. Put secrets here, not into the command
	// or URL, which are shown in errors.
	Env map[string]string
	// Dir is where a command runs; empty means this process's directory. Add it to Read,
	// too, if the command reads more of it than the files that it names.
	Dir string
	// Home is a command's HOME. Empty means a directory of the server's own below
	// [os.UserCacheDir], which all its processes share.
	Home string
	// Read and Write are further absolute paths that a command may read, or read and
	// write. It always has its HOME, a temporary directory, the system's files, and the
	// folder that contains it and the files that it names.
	Read, Write []string
	// Network lets a command use the network, including what listens on this machine.
	// Without it the command has no sockets.
	Network bool
	// Sandbox names what confines a command; empty means [tool.SandboxLandlock].
	Sandbox tool.Sandbox
	// Confine says what happens if the kernel can't confine a command. Empty means that
	// it is not started ([tool.ConfineAlways]). With [tool.ConfineNever] it has the HOME
	// and the rights of this process's user.
	Confine tool.Confine
	// AsRoot lets a command run as root if this process does. Without it, it is then not
	// started.
	AsRoot bool
	// Protect are absolute paths that Write must not open, because they decide which
	// programs run. Private are paths that Read must not open either. A command whose
	// Read or Write contains one of them is not started.
	Protect, Private []string
	// Headers are sent with each request to a server with a URL, and to no other server.
	// A value may name variables of Env: "Bearer ${TICKETS_TOKEN}".
	Headers map[string]string
	// Plain allows an http:// URL on another machine. Everybody on the way can then read
	// all that is sent, headers included.
	Plain bool
	// OAuth obtains the tokens that a server with a URL wants. nil means that it wants
	// none, or that Headers has one.
	OAuth *OAuth
	// Resources adds tools for the server's resources and prompts, if it has any:
	// NAME__list_resources, NAME__read_resource and NAME__get_prompt.
	Resources bool
	// TrustHints believes the server which of its tools change nothing (readOnlyHint).
	// Without it rules treat all of its tools as writing ones.
	TrustHints bool
	// Optional lets a run start without the server's tools if they can't be listed. The
	// model learns that they are missing. [Server.Skills] fails all the same.
	Optional bool
	// Per says who shares a process, or a session over HTTP, with the state that it
	// keeps. Empty means [PerSession] if the server may keep state.
	Per Per
	// Elicit lets the server ask a person during a call. Empty allows that only for a
	// server that speaks no protocol but the newest, as [ElicitRounds] does.
	Elicit Elicit
	// StartTimeout caps how long the server may take to start and answer the handshake,
	// to list its tools or skills, and to give a file of a skill; zero means 10s. A command that is downloaded first, as with
	// npx, may need more the first time. With Elicit, the first handshake has half of it.
	StartTimeout time.Duration
	// CallTimeout caps one call; zero leaves it to the runtime, which caps at ten
	// minutes. It also becomes the tools' [agent.ToolSpec.Timeout].
	CallTimeout time.Duration
	// Logger records starts and ends, tools that are left out or renamed and, at level
	// debug, a command's error output; nil discards them.
	Logger *slog.Logger
}

func (o *Options) startTimeout() time.Duration {
	if o.StartTimeout <= 0 {
		return 10 * time.Second
	}
	return o.StartTimeout
}

// Server is an MCP server as a [tool.Source]. It is safe for use by many goroutines at
// once.
type Server struct {
	name       string
	command    []string
	url        *url.URL          // nil for a command
	headers    map[string]string // with their variables filled in
	oauth      *oauth            // nil without OAuth
	outside    *http.Client      // see outsideClient
	opts       Options
	hidden     redactor
	log        *slog.Logger
	logLimiter logLimiter // for lines about listed tools
	fault      error      // see Err
	// alive ends with Close, and ends requests over HTTP. Calls of a process end with the
	// process.
	alive context.Context
	end   context.CancelCauseFunc

	mu         sync.Mutex
	words      string          // see Instructions
	shared     *slot           // the slot that belongs to no session yet
	slots      map[owner]*slot // see Options.Per
	logins     map[string]*login
	toolsKnown map[owner]*knownTools // by session and run, see Relist
	ending     sync.WaitGroup        // slots that are being ended
	closed     bool
}

var (
	_ tool.Optional   = (*Server)(nil)
	_ tool.Instructed = (*Server)(nil)
	_ tool.Changing   = (*Server)(nil)
)

// New returns a server that is a command. It starts nothing yet. name is the first half
// of its tools' names: letters, digits and '-', single '_'. [Server.Err], List and Call
// return what is wrong with the name or command.
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

// NewHTTP returns a server that is reached over HTTP. It sends nothing yet. The URL must
// be https://, unless it is on this machine or [Options.Plain] allows http://. For name
// see [New]. [Server.Err], List and Call return what is wrong with the name, URL or
// headers.
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
		s.outside = s.outsideClient()
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
	s := &Server{name: name, opts: *o, shared: &slot{}, slots: map[owner]*slot{}, logins: map[string]*login{}, toolsKnown: map[owner]*knownTools{}}
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

// check returns what is wrong with the options of a command.
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
	s.hidden.rebuild()
	handler := slog.DiscardHandler
	if s.opts.Logger != nil {
		handler = s.opts.Logger.Handler()
	}
	s.log = slog.New(redactingHandler{handler, &s.hidden}).With("mcp", s.name)
	s.logLimiter.log = s.log
}

// address parses a URL that we may send requests to.
func address(text string, anywhere bool) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http":
		return nil, agent.Errorf(agent.CodeInvalidInput, "its URL must be https:// with a host")
	case u.User != nil:
		return nil, agent.Errorf(agent.CodeInvalidInput, "its URL has a user or a password in it; use an Authorization header")
	case u.Scheme == "http" && !anywhere && !local(u.Hostname()):
		return nil, agent.Errorf(agent.CodeInvalidInput, "its URL is http:// on another machine, where others on the network can read what is sent: use https://, or allow plain HTTP")
	}
	return u, nil
}

func local(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// Name returns the name that the server was given.
func (s *Server) Name() string { return s.name }

// Optional returns [Options.Optional].
func (s *Server) Optional() bool { return s.opts.Optional }

// Instructions returns what the server said of its use when its tools were last listed,
// at most 4 KiB. It is empty before the first List.
func (s *Server) Instructions() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.words
}

// Err returns what is wrong with the description ([agent.CodeInvalidInput]), or nil. It
// does not check that the server exists.
func (s *Server) Err() error { return s.fault }

// Close ends the session, or the process and all that it started. Running calls fail, and
// later ones are refused. A second Close does no harm.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	all := append(slices.Collect(maps.Values(s.slots)), s.shared)
	s.mu.Unlock()
	// First end the starts: a server that starts meanwhile would not be stopped below.
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

// shown returns the command or URL as it may be shown. The query is left out: it may hold
// secrets.
func (s *Server) shown() string {
	if s.url != nil {
		return cut(origin(s.url)+s.url.EscapedPath(), maxShown)
	}
	return "command " + cut(s.secrets(fmt.Sprintf("%q", s.command)), maxShown)
}

// with calls do with an owner's link. If the server has forgotten the session, with
// begins another and tries once more: nothing was done in the old one. Nothing was done
// either if others left the link, or if the server refused the connection because it is
// being replaced.
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

// awayTime is how long a server may refuse connections before a call fails.
const awayTime = 5 * time.Second

// away is the error of a server that refuses connections: it has done nothing.
type away struct{ error }

// patiently returns a function that waits, longer each time. The function returns false
// when it has waited for most in all, or when the context ends.
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

// forgotten is the error of a request in a session that the server no longer knows.
type forgotten struct{ error }

func (s *Server) errClosed() error {
	return tool.Refuse("the MCP server %s is closed", s.name)
}
