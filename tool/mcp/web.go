package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fermata-agents/fermata/tool"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	maxErrorBody = 64 << 10 // bytes of an error response that are read
	maxHeader    = 64 << 10 // bytes of the header of a response
	// resumes is how often a stream that broke off is resumed, if the server numbers its
	// events. All tries take some seconds.
	resumes = 3
	// pulse is how long an HTTP/2 connection may be silent before it is probed.
	pulse = 15 * time.Second
)

// web is a server that is reached over HTTP, in one session.
type web struct {
	server *Server
	as     *login // nil if nobody signs in
	sse    bool   // it speaks the HTTP with SSE of 2024-11-05: see sdk.SSEClientTransport
	client *http.Client
	stream *stream

	mu      sync.Mutex
	reason  error // why the session ended
	session *sdk.ClientSession
}

func (s *Server) visit(as *login, sse bool) *web {
	w := &web{server: s, as: as, sse: sse}
	limit := s.opts.startTimeout()
	w.client = &http.Client{
		CheckRedirect: w.redirected,
		Transport: &httpSender{server: s, web: w, base: &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            (&net.Dialer{Timeout: limit}).DialContext,
			TLSHandshakeTimeout:    limit,
			ForceAttemptHTTP2:      true,
			HTTP2:                  &http.HTTP2Config{SendPingTimeout: pulse, PingTimeout: pulse},
			IdleConnTimeout:        90 * time.Second,
			MaxIdleConnsPerHost:    16,
			MaxResponseHeaderBytes: maxHeader,
		}},
	}
	w.stream = &stream{client: w.client}
	return w
}

func (w *web) attend(ctx context.Context) (done func()) { return w.stream.attend(ctx) }

// transport returns the SDK's transport. A stream of ours carries what a server says
// unasked.
func (w *web) transport() sdk.Transport {
	if w.sse {
		return &sdk.SSEClientTransport{Endpoint: w.server.url.String(), HTTPClient: w.client, MaxEventSize: maxMessage}
	}
	return &sdk.StreamableClientTransport{
		Endpoint: w.server.url.String(), HTTPClient: w.client, MaxRetries: resumes, MaxEventSize: maxMessage,
	}
}

// handshakeDone starts to watch a session that has begun.
func (w *web) handshakeDone(session *sdk.ClientSession) {
	w.mu.Lock()
	w.session = session
	w.mu.Unlock()
	s := w.server
	s.log.Info("MCP session began", "url", s.shown(), "protocol", session.InitializeResult().ProtocolVersion)
	go func() {
		err := session.Wait()
		if w.broken() == nil && !s.isClosed() {
			s.log.Warn("MCP session ended", "error", err)
		}
		if err == nil {
			err = errHungUp
		}
		w.leave(err)
	}()
}

// handshakeFailed returns why there is no session.
func (w *web) handshakeFailed(ctx context.Context, err error) error {
	s, t := w.server, attemptOf(ctx)
	w.stop()
	answer := answered(err)
	var slow tooSlow
	switch noToken := noTokenCause(t.failure()); {
	case noToken != nil:
		return noToken
	case errors.As(context.Cause(ctx), &slow):
		return noHandshake{fmt.Errorf("the MCP server %s did not answer within %s (%s)", s.name, time.Duration(slow), s.shown())}
	case ctx.Err() != nil:
		return s.errClosed()
	case t.status() == http.StatusUnauthorized || t.status() == http.StatusForbidden: // another try changes nothing
		return tool.Refuse("the MCP server %s refuses the handshake (%s): %s", s.name, s.shown(), t.said())
	case t.status() >= 300:
		return fmt.Errorf("the MCP server %s refuses the handshake (%s): %w", s.name, s.shown(), refusal{errors.New(t.said()), answer != nil || t.status() == http.StatusBadRequest, !w.sse && slices.Contains(older, t.status())})
	case answer != nil:
		return fmt.Errorf("the MCP server %s refuses the handshake (%s): %w", s.name, s.shown(), refusal{errors.New(s.said(answer.Message)), true, false})
	case t.failure() != nil:
		return s.unreached(t.failure())
	}
	return fmt.Errorf("the MCP server %s fails the handshake (%s): %s", s.name, s.shown(), s.secrets(err.Error()))
}

// refusal is the error of a refused handshake: its form or its transport may be refused.
type refusal struct {
	error
	form, transport bool
}

// older are the statuses with which a server of the older transport refuses a request of
// the newer one.
var older = []int{http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed}

// leave makes the next caller begin a new session. Only the first reason is kept.
func (w *web) leave(reason error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.reason == nil {
		w.reason = reason
	}
}

func (w *web) broken() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reason
}

// retire ends a session when its running calls have ended: one failed call is no reason
// to cancel the others.
func (w *web) retire() { go w.close() }

func (w *web) close() {
	w.mu.Lock()
	session := w.session
	w.mu.Unlock()
	if session != nil {
		session.Close()
	}
	w.client.CloseIdleConnections()
}

// stop ends the session. It waits a moment for the server to learn of it.
func (w *web) stop() bool {
	w.leave(errHungUp)
	within(2*grace, w.close)
	return true // nothing of ours could live on
}

func (w *web) stderrLines() int { return 0 }

func (w *web) describeEnd(when, doubt string, _ int) string {
	return fmt.Sprintf("lost its connection %s: %s%s", when, w.server.secrets(plain(w.broken())), doubt)
}

// redirected allows redirects within the server, such as /mcp to /mcp/. Headers and
// arguments are for this server alone, so a redirect to another is refused.
func (w *web) redirected(req *http.Request, via []*http.Request) error {
	var err error
	switch {
	case !same(req.URL, w.server.url):
		err = fmt.Errorf("it redirects to %s, which is another server; if that is right, use its URL", origin(req.URL))
	case req.Method != via[0].Method:
		err = fmt.Errorf("it redirects to %s in a way that loses the request (a 307 or 308 would not)", req.URL.Path)
	case len(via) >= 5:
		err = errors.New("it redirects without end")
	}
	if t := attemptOf(req.Context()); t != nil && err != nil {
		t.fail(err)
	}
	return err
}

func same(a, b *url.URL) bool { return origin(a) == origin(b) }

// origin returns a URL's scheme, host and port.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// plain returns a network error without wrapping and addresses.
func plain(err error) string {
	if e := (*net.OpError)(nil); errors.As(err, &e) && e.Err != nil {
		return e.Err.Error()
	}
	if e := (*url.Error)(nil); errors.As(err, &e) {
		return e.Err.Error()
	}
	return err.Error()
}

// httpSender sends requests: it adds the headers, bounds the responses, and records on the
// request's attempt what happened.
type httpSender struct {
	server *Server
	web    *web
	base   http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (c *httpSender) RoundTrip(req *http.Request) (*http.Response, error) {
	switch {
	// In the older transport the server itself says where to send requests.
	case !same(req.URL, c.server.url):
		return nil, fmt.Errorf("it needs requests at %s, which is another server", origin(req.URL))
	case c.web.sse && req.Method == http.MethodGet:
		return c.openLongStream(req)
	case c.web.sse:
	case req.Method == http.MethodGet && req.Header.Get("Last-Event-Id") == "" && req.Context().Value(directly{}) == nil:
		return c.web.stream.answer(req), nil
	}
	waiting := attemptOf(req.Context())
	if waiting == nil {
		waiting = &attempt{} // nobody wants to know what happens to it
	}
	t := waiting
	// It resumes an answer: the call itself was sent long before, and its attempt must say
	// so.
	if req.Method != http.MethodPost {
		t = &attempt{}
	}
	// The SDK tries other requests after a failure; without a token they fail as well.
	if err := t.failure(); noTokenCause(err) != nil {
		return nil, err
	}
	resp, err := c.sendAuthorized(req, t)
	if err != nil {
		t.fail(err)
		return nil, err
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case resp.StatusCode >= 400:
		refused(c.server, t, resp, kind)
	case kind == "application/json":
		err = whole(resp)
	default:
		t.arrive(resp.StatusCode, resp.Status)
		resp.Body = &bounded{ReadCloser: resp.Body, room: maxMessage, attempt: waiting}
		if kind == "text/event-stream" {
			resp.Body = exactStream(resp.Body, waiting)
		}
	}
	if err != nil {
		t.fail(err)
		return nil, err
	}
	return resp, nil
}

// openLongStream opens the one stream of the older transport, which carries all answers. It must
// last as long as the session, so only the handshake's end before success cancels it.
func (c *httpSender) openLongStream(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(req.Context()))
	shaken := context.AfterFunc(req.Context(), cancel)
	t := attemptOf(req.Context())
	if t == nil {
		t = &attempt{}
	}
	resp, err := c.sendAuthorized(req.WithContext(ctx), t)
	// shaken returns false if the handshake ended first; then nothing needs the stream.
	if !shaken() || err != nil {
		cancel()
	}
	if err != nil {
		t.fail(err)
		return nil, err
	}
	resp.Body = &closing{exactStream(resp.Body, t), cancel}
	return resp, nil
}

// closing is a body that cancels its request when it is closed.
type closing struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close implements [io.Closer].
func (c *closing) Close() error {
	c.cancel()
	return c.ReadCloser.Close()
}

// refused records an error response. For a status such as 401 or 413 the SDK would end
// the session with all its calls, but not for 503. One refused call must not do that.
func refused(s *Server, t *attempt, resp *http.Response, kind string) {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // as far as it came
	resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(body))
	text := resp.Status
	if words := complaint(body, kind); words != "" {
		text += ": " + cut(s.said(words), maxShown)
	}
	t.arrive(resp.StatusCode, text)
	// A proper JSON-RPC error reaches its own call under any status.
	if !answers(body) {
		resp.StatusCode = http.StatusServiceUnavailable
	}
}

// whole reads a reply that is one message. Here a reply that is too large, broken off or
// invalid fails only its own call; in the SDK it would fail the whole session.
func whole(resp *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxMessage+1))
	resp.Body.Close()
	switch {
	case len(body) > maxMessage:
		return errTooLarge
	case crowded(body):
		return errTooMany
	}
	if err == nil && len(body) > 0 {
		_, err = jsonrpc.DecodeMessage(body)
	}
	resp.Body = io.NopCloser(bytes.NewReader(exact(body)))
	return err
}

// complaint returns the part of an error response that people can read.
func complaint(body []byte, kind string) string {
	var e struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &e) == nil && e.Error.Message != "" {
		return e.Error.Message
	}
	if kind == "text/html" {
		return ""
	}
	return strings.Join(strings.Fields(clean(string(body))), " ")
}

// answers reports whether a body is a JSON-RPC error, as the SDK reads it.
func answers(body []byte) bool {
	msg, err := jsonrpc.DecodeMessage(body)
	if err != nil {
		return false
	}
	response, ok := msg.(*jsonrpc.Response)
	return ok && response.Error != nil
}

// bounded is a body that fails when it has more than room bytes.
type bounded struct {
	io.ReadCloser
	room    int
	attempt *attempt
}

// Read implements [io.Reader].
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.room -= n; b.room < 0 {
		n, err = 0, errTooLarge
	}
	if err != nil && !errors.Is(err, io.EOF) {
		b.attempt.fail(err)
	}
	return n, err
}
