package mcp

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime/debug"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// commonProtocol is what every server of today speaks.
	commonProtocol = "2025-11-25"
	// newestProtocol lets the SDK begin with its newest.
	newestProtocol = ""
)

// link is a server that runs and has answered the handshake.
type link struct {
	process *process
	conn    *conn
	session *sdk.ClientSession
	listing chan struct{} // held by who asks for the tools on behalf of all

	mu        sync.Mutex
	names     map[string]string // see known
	listeners map[int64]func(string)
	tokens    int64
}

// dial starts the server and shakes hands.
func (s *Server) dial(ctx context.Context) (*link, error) {
	l, err := s.handshake(ctx, commonProtocol)
	var answer *jsonrpc.Error
	if errors.As(err, &answer) && !errors.Is(err, sdk.ErrConnectionClosed) {
		s.log.Info("MCP server refuses initialize, trying server/discover", "error", err)
		l, err = s.handshake(ctx, newestProtocol)
	}
	if err != nil {
		return nil, err
	}
	s.log.Info("MCP server started", "pid", l.process.cmd.Process.Pid, "protocol", l.session.InitializeResult().ProtocolVersion)
	return l, nil
}

func (s *Server) handshake(ctx context.Context, protocol string) (*link, error) {
	p, err := s.launch()
	if err != nil {
		return nil, fmt.Errorf("the MCP server %s can't be started (%s): %w", s.name, s.shown(), bare(err))
	}
	l := &link{process: p, conn: p.conn, listing: make(chan struct{}, 1), listeners: map[int64]func(string){}}
	client := sdk.NewClient(&sdk.Implementation{Name: "fermata", Version: version()}, &sdk.ClientOptions{
		Logger: s.log,
		// We offer nothing: no roots, no sampling, nobody to ask.
		Capabilities:                &sdk.ClientCapabilities{},
		MultiRoundTrip:              &sdk.MultiRoundTripOptions{Disabled: true},
		ProgressNotificationHandler: l.progress,
	})
	l.session, err = client.Connect(ctx, p.conn, &sdk.ClientSessionOptions{ProtocolVersion: protocol})
	if err == nil {
		go s.mourn(l)
		return l, nil
	}
	var answer *jsonrpc.Error
	switch {
	case errors.As(err, &answer) && !errors.Is(err, sdk.ErrConnectionClosed):
		p.stop()
		return nil, fmt.Errorf("the MCP server %s refuses the handshake (%s): %w", s.name, s.shown(), err)
	case errors.Is(context.Cause(ctx), errStartTime):
		p.stop()
		return nil, fmt.Errorf("the MCP server %s did not answer within %s (%s)%s", s.name, s.opts.startTimeout(), s.shown(), p.words())
	case ctx.Err() != nil:
		p.stop()
		return nil, s.errClosed()
	case p.conn.broken() != nil:
		return nil, fmt.Errorf("the MCP server %s %s (%s)%s", s.name, p.fate("while it started"), s.shown(), p.words())
	}
	p.stop()
	return nil, fmt.Errorf("the MCP server %s fails the handshake (%s): %w%s", s.name, s.shown(), err, p.words())
}

// mourn logs the end of a server that nobody wanted to end.
func (s *Server) mourn(l *link) {
	<-l.process.exited
	if !s.isClosed() {
		s.log.Warn("MCP server ended", "status", l.process.status(), "stderr", l.process.stderr.String())
	}
}

// shown is the command as it may be shown.
func (s *Server) shown() string {
	text := s.secrets(fmt.Sprintf("%q", s.command))
	if len(text) > maxShown {
		text = text[:maxShown] + "…"
	}
	return "command " + text
}

// listen gives a token for the progress of a call; stop ends listening.
func (l *link) listen(f func(string)) (token int64, stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tokens++
	token = l.tokens
	l.listeners[token] = f
	return token, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.listeners, token)
	}
}

func (l *link) progress(_ context.Context, req *sdk.ProgressNotificationClientRequest) {
	// A token comes back as any JSON number does.
	token, ok := req.Params.ProgressToken.(float64)
	if !ok {
		return
	}
	l.mu.Lock()
	listener := l.listeners[int64(token)]
	l.mu.Unlock()
	if listener != nil {
		listener(progressText(req.Params))
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
	if e := (*exec.Error)(nil); errors.As(err, &e) {
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
