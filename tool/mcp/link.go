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
	keeps   bool          // over HTTP: what is said belongs to a session of the server's
	listing chan struct{} // held by who asks for the tools on behalf of all
	calling chan struct{} // held by the one call that may ask, see replaying

	mu        sync.Mutex
	names     map[string]string // see known
	news      int               // how often the server has said that its tools are others
	listeners map[int64]*listener
	tokens    int64
	replay    *replay // of that call
}

// peer is the other end of a link.
type peer interface {
	transport() sdk.Transport
	// met begins to watch a peer that has answered the handshake.
	met(*sdk.ClientSession)
	// unmet ends one that has not, and says why.
	unmet(ctx context.Context, err error) error
	// broken is why the connection broke; nil while it stands.
	broken() error
	// attend listens to what the server says outside of its answers until done is called.
	attend(ctx context.Context) (done func())
	// leave makes the next who asks connect anew.
	leave(reason error)
	// heard counts what a program has said outside of the protocol.
	heard() int
	// fate says what became of a peer whose connection broke, after its name; doubt
	// stands before its last words, which are those after the first so many.
	fate(when, doubt string, heard int) string
	// retire ends a connection that is broken or left, and the server if it is ours.
	retire()
	// stop ends the connection, and the server if it is ours. It reports whether that
	// has ended.
	stop() bool
}

// listener is who waits for the answer of a call.
type listener struct {
	progress func(string)
	asked    []string // what the server wanted to ask a person meanwhile
}

// dial starts or reaches the server and shakes hands: in another way where the first
// may be what it does not understand.
func (s *Server) dial(ctx context.Context, as *login) (*link, error) {
	first, second := commonProtocol, newestProtocol
	begin, cancel := ctx, context.CancelFunc(func() {})
	if s.opts.Elicit != "" {
		first, second = second, first
		begin, cancel = lately(ctx, s.opts.startTimeout()/2)
	}
	defer cancel()
	l, err := s.handshake(begin, as, first, false)
	var refused refusal
	var lost unheard
	if errors.As(err, &refused) && refused.transport && ctx.Err() == nil {
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

// unheard is the error of a handshake in which a server ended or said nothing: there
// are some that do so when they do not understand.
type unheard struct{ error }

// late is the cause of a start that takes too long, and how long it was given.
type late time.Duration

// Error implements [error].
func (l late) Error() string { return fmt.Sprintf("it did not answer within %s", time.Duration(l)) }

// lately gives a start its time.
func lately(ctx context.Context, most time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, most, late(most))
}

func (s *Server) handshake(ctx context.Context, as *login, protocol string, sse bool) (*link, error) {
	var p peer
	if s.url != nil {
		p = s.visit(as, sse)
	} else {
		launched, err := s.launch()
		if err != nil {
			return nil, fmt.Errorf("the MCP server %s can't be started (%s): %w", s.name, s.shown(), bare(err))
		}
		p = launched
	}
	l := &link{peer: p, listing: make(chan struct{}, 1), calling: make(chan struct{}, 1), listeners: map[int64]*listener{}}
	client := sdk.NewClient(&sdk.Implementation{Name: "fermata", Version: version()}, &sdk.ClientOptions{
		Logger: s.log,
		// We offer nothing, neither roots nor sampling, but people to ask: see modest.
		Capabilities: &sdk.ClientCapabilities{Elicitation: &sdk.ElicitationCapabilities{
			Form: &sdk.FormElicitationCapabilities{}, URL: &sdk.URLElicitationCapabilities{},
		}},
		MultiRoundTrip:              &sdk.MultiRoundTripOptions{Disabled: true},
		ProgressNotificationHandler: l.progress,
	})
	client.AddSendingMiddleware(fresh, s.modest)
	client.AddReceivingMiddleware(l.receive)
	ctx = withTrip(ctx, &trip{})
	session, err := client.Connect(ctx, p.transport(), &sdk.ClientSessionOptions{ProtocolVersion: protocol})
	if err != nil {
		return nil, p.unmet(ctx, err)
	}
	l.session, l.keeps = session, sse || session.ID() != ""
	p.met(session)
	return l, nil
}

// modest offers nobody to ask in protocols in which a server that asks has to be
// waited for, unless its calls may be made again.
func (s *Server) modest(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		if p, ok := req.GetParams().(*sdk.InitializeParams); ok && p.Capabilities != nil && s.opts.Elicit != ElicitReplay {
			p.Capabilities.Elicitation = nil // it is of this request alone
		}
		return next(ctx, method, req)
	}
}

// fresh keeps the SDK from answering out of what it remembers, for as long as the
// server says that it may: a run asks once, and is to see what there is.
func fresh(next sdk.MethodHandler) sdk.MethodHandler {
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

// receive hears what the server says of itself. It may ask for a person in the middle
// of a call: where the call can't be made again, which it was told, it is told no, and
// who waits for the call is told too.
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
			l.names = nil
			l.news++
			l.mu.Unlock()
		}
		return next(ctx, method, req)
	}
}

// asked notes a question at every call that is under way: the protocol does not say
// which one it belongs to.
func (l *link) asked(question string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, each := range l.listeners {
		if len(each.asked) < maxAsked {
			each.asked = append(each.asked, cut(question, maxShown))
		}
	}
}

// listen gives a token for the progress of a call; stop ends listening, and gives
// what the server wanted to ask meanwhile.
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
	// A token comes back as any JSON number does.
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

// bare takes the machinery off an error of starting a program.
func bare(err error) error {
	if e, ok := err.(*exec.Error); ok { // and no one that is told of another program
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
