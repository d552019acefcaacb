package mcp

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime/debug"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// commonProtocol is what every server of today speaks.
	commonProtocol = "2025-11-25"
	// newestProtocol lets the SDK begin with its newest.
	newestProtocol = ""
)

// link is a server that has answered the handshake.
type link struct {
	peer    peer
	session *sdk.ClientSession
	keeps   bool          // over HTTP: the server has a session and may keep state in it
	listing chan struct{} // a lock: one asks for the tools on behalf of all
	calling chan struct{} // a lock: one call at a time may ask people, see replaying

	mu        sync.Mutex
	names     map[string]string // see known
	news      int               // how often the server has said that its tools changed
	listeners map[int64]*listener
	tokens    int64
	replay    *replay // of that call
}

// peer is the other end of a link.
type peer interface {
	transport() sdk.Transport
	// handshakeDone starts to watch a peer that has answered the handshake.
	handshakeDone(*sdk.ClientSession)
	// handshakeFailed ends a peer that has not answered, and returns why.
	handshakeFailed(ctx context.Context, err error) error
	// broken returns why the connection broke, or nil while it works.
	broken() error
	// attend receives what the server says outside of its answers, until done is called.
	attend(ctx context.Context) (done func())
	// leave makes the next caller connect again.
	leave(reason error)
	// stderrLines returns how many lines a program has written to its error output.
	stderrLines() int
	// describeEnd says, to follow the server's name, what happened to a peer whose connection
	// broke. doubt precedes its last words. Words among the first stderrLines lines are left
	// out.
	describeEnd(when, doubt string, stderrLines int) string
	// retire ends a connection that is broken or left, and the server if we started it.
	retire()
	// stop ends the connection, and the server if we started it. It reports whether the
	// server has ended.
	stop() bool
}

// listener is a call that waits for its answer.
type listener struct {
	progress func(string)
	asked    []string // what the server wanted to ask a person meanwhile
}

// dial starts or reaches the server and does the handshake. If the server may not
// understand the first handshake, dial tries the other one.
func (s *Server) dial(ctx context.Context, as *login) (*link, error) {
	first, second := commonProtocol, newestProtocol
	begin, cancel := ctx, context.CancelFunc(func() {})
	if s.opts.Elicit != "" {
		first, second = second, first
		// Half of the time only: a server that says nothing must leave time for the
		// second try.
		begin, cancel = withStartTimeout(ctx, s.opts.startTimeout()/2)
	}
	defer cancel()
	l, err := s.handshake(begin, as, first, false)
	var refused refusal
	var lost noHandshake
	// The statuses of an old server: try the older transport before another protocol.
	if errors.As(err, &refused) && refused.transport && ctx.Err() == nil {
		// Its own error is dropped: the first handshake's says more about a server that
		// is no old one.
		if l, old := s.handshake(ctx, as, commonProtocol, true); old == nil {
			return l, nil
		}
	}
	switch {
	case err == nil || ctx.Err() != nil || s.isClosed():
		return l, err
	case refused.form, s.opts.Elicit != "" && errors.As(err, &lost):
		s.log.Info("MCP server refuses the handshake, trying another", "error", err)
	default:
		return nil, err
	}
	l, again := s.handshake(ctx, as, second, false)
	if again != nil && again.Error() != err.Error() {
		again = fmt.Errorf("%w; before that, with another handshake: %w", again, err)
	}
	return l, again
}

// noHandshake is the error of a handshake in which the server ended or said nothing. Some
// servers do so when they do not understand it.
type noHandshake struct{ error }

// tooSlow is the cause of a start that takes too long; its value is the time that it had.
type tooSlow time.Duration

// Error implements [error].
func (l tooSlow) Error() string { return fmt.Sprintf("it did not answer within %s", time.Duration(l)) }

// withStartTimeout returns a context that ends when a start has taken too long.
func withStartTimeout(ctx context.Context, most time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, most, tooSlow(most))
}

func (s *Server) handshake(ctx context.Context, as *login, protocol string, sse bool) (*link, error) {
	var p peer
	if s.url != nil {
		p = s.visit(as, sse)
	} else {
		launched, err := s.launch()
		if err != nil {
			return nil, fmt.Errorf("the MCP server %s can't be started (%s): %w", s.name, s.shown(), innermost(err))
		}
		p = launched
	}
	l := &link{peer: p, listing: make(chan struct{}, 1), calling: make(chan struct{}, 1), listeners: map[int64]*listener{}}
	client := sdk.NewClient(&sdk.Implementation{Name: "fermata", Version: version()}, &sdk.ClientOptions{
		Logger: s.log,
		// No roots and no sampling: a server must not read files or use our model. Only
		// questions to people are offered, and withoutElicitation takes these back where needed.
		Capabilities: &sdk.ClientCapabilities{Elicitation: &sdk.ElicitationCapabilities{
			Form: &sdk.FormElicitationCapabilities{}, URL: &sdk.URLElicitationCapabilities{},
		}, Extensions: map[string]any{skillsExtension: map[string]any{}}},
		// The SDK must not answer questions by itself: people answer them later.
		MultiRoundTrip:              &sdk.MultiRoundTripOptions{Disabled: true},
		ProgressNotificationHandler: l.progress,
	})
	if err := enableSkills(client); err != nil {
		return nil, err
	}
	client.AddSendingMiddleware(uncached, s.withoutElicitation)
	client.AddReceivingMiddleware(l.receive)
	ctx = withAttempt(ctx, &attempt{})
	session, err := client.Connect(ctx, p.transport(), &sdk.ClientSessionOptions{ProtocolVersion: protocol})
	if err != nil {
		return nil, p.handshakeFailed(ctx, err)
	}
	l.session, l.keeps = session, sse || session.ID() != ""
	p.handshakeDone(session)
	return l, nil
}

// withoutElicitation offers no questions in protocols where a server waits for the answer during the
// call, unless calls may be repeated.
func (s *Server) withoutElicitation(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		if p, ok := req.GetParams().(*sdk.InitializeParams); ok && p.Capabilities != nil && s.opts.Elicit != ElicitReplay {
			p.Capabilities.Elicitation = nil // this request has its own copy
		}
		return next(ctx, method, req)
	}
}

// uncached makes the SDK ask the server each time. The SDK caches for as long as the server
// allows, but a run asks once and must see the current list.
func uncached(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		result, err := next(ctx, method, req)
		switch r := result.(type) {
		case *sdk.ListToolsResult:
			r.TTLMs = 0
		case *sdk.ListPromptsResult:
			r.TTLMs = 0
		case *sdk.ListResourcesResult:
			r.TTLMs = 0
		case *sdk.ListResourceTemplatesResult:
			r.TTLMs = 0
		case *sdk.ReadResourceResult:
			r.TTLMs = 0
		}
		return result, err
	}
}

// receive handles what the server says by itself. If it asks for a person and the call
// can't be repeated, receive declines and records the question for the waiting calls.
func (l *link) receive(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		if method == "roots/list" || method == "sampling/createMessage" {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: method + " is not offered by this client"}
		}
		switch p := req.GetParams().(type) {
		case *sdk.ElicitParams:
			l.mu.Lock()
			again := l.replay
			l.mu.Unlock()
			if again != nil {
				return again.elicit(ctx, p)
			}
			if p != nil {
				l.asked(p.Message)
			}
			return &sdk.ElicitResult{Action: "decline"}, nil
		case *sdk.ToolListChangedParams:
			l.mu.Lock()
			// own lists the tools again before the next call.
			l.names = nil
			l.news++
			l.mu.Unlock()
		}
		return next(ctx, method, req)
	}
}

// asked records a question at every call that runs: the protocol does not say which call
// it belongs to.
func (l *link) asked(question string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, each := range l.listeners {
		if len(each.asked) < maxAsked {
			each.asked = append(each.asked, cut(question, maxShown))
		}
	}
}

// listen returns a token for the progress of a call. stop ends listening and returns what
// the server wanted to ask meanwhile.
func (l *link) listen(f func(string)) (token int64, stop func() (asked []string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tokens++
	token = l.tokens
	each := &listener{progress: f}
	l.listeners[token] = each
	return token, func() []string {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.listeners, token)
		return each.asked
	}
}

func (l *link) progress(_ context.Context, req *sdk.ProgressNotificationClientRequest) {
	// encoding/json decodes a number as float64.
	token, ok := req.Params.ProgressToken.(float64)
	if !ok {
		return
	}
	l.mu.Lock()
	each := l.listeners[int64(token)]
	l.mu.Unlock()
	if each != nil {
		each.progress(progressText(req.Params))
	}
}

func progressText(p *sdk.ProgressNotificationParams) string {
	text := fmt.Sprintf("%g", p.Progress)
	if p.Total > 0 {
		text = fmt.Sprintf("%g of %g", p.Progress, p.Total)
	}
	if p.Message != "" {
		text += ": " + cut(p.Message, maxProgress)
	}
	return text
}

// innermost removes the wrapping of an error of starting a program.
func innermost(err error) error {
	// Not errors.As: it could find an error about another program.
	if e, ok := err.(*exec.Error); ok {
		return e.Err
	}
	return err
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "devel"
}
