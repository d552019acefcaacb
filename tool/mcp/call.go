package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/tool"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// KeyMeta is the field of a call's _meta that holds the runtime's idempotency key.
const KeyMeta = "com.github.fermata-agents/idempotency-key"

// duringCall is the time of an error: during a call, whose effect is then unknown.
const duringCall = "during the call"

// Call calls a tool by its full name. An error that the server reports is a failure of
// the call. A tool or arguments that the server does not accept make a refusal
// ([tool.Refuse]). An unknown outcome is [tool.ErrUnknown].
func (s *Server) Call(ctx context.Context, c *tool.Call) (string, error) {
	if !strings.HasPrefix(c.Tool, s.name+tool.Separator) {
		return "", agent.Errorf(agent.CodeUnknownTool, "tool %q is none of the MCP server %s", c.Tool, s.name)
	}
	arguments := bytes.TrimSpace(c.Arguments)
	if len(arguments) == 0 {
		arguments = []byte("{}")
	}
	if arguments[0] != '{' || !json.Valid(arguments) {
		return "", tool.Refuse("the arguments are not a JSON object")
	}
	if s.opts.CallTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, s.opts.CallTimeout, errCallTime)
		defer cancel()
	}
	t, err := s.resume(ctx, c)
	if err != nil {
		return "", err
	}
	who := s.ownerOf(c)
	// From now on the shared server may keep state of this call. No session may take it over.
	if who == (owner{}) {
		s.share()
	}
	var text string
	err = s.with(ctx, who, func(l *link) error {
		// The run may know a tool from before the server dropped it, or from another process.
		name, own, err := s.own(ctx, l, c.Tool)
		defer l.peer.attend(ctx)()
		switch {
		case err != nil:
		case own:
			text, err = s.callTool(ctx, l, t, name, arguments)
		case name == toolSignIn:
			text, err = s.signedIn(t.Call, l)
		default:
			text, err = s.extra(ctx, l, t.Call, name, arguments)
		}
		return err
	})
	var asks *signIn
	if errors.As(err, &asks) {
		return "", t.signIn(asks)
	}
	return text, err
}

var errCallTime = errors.New("the call's time is up")

func (s *Server) callTool(ctx context.Context, l *link, t *talk, name string, arguments json.RawMessage) (string, error) {
	params := &sdk.CallToolParams{Meta: sdk.Meta{}, Name: name, Arguments: arguments}
	if t.Key != "" {
		params.Meta[KeyMeta] = t.Key
	}
	if err := t.fill(l, params); err != nil {
		return "", err
	}
	// Calls with ElicitReplay run one after the other: old protocols do not say which
	// call a question belongs to.
	ctx, again, over, err := t.replaying(ctx, l)
	switch {
	case errors.Is(err, errMoved):
		return "", err
	case err != nil:
		return "", tool.Refuse("the MCP server %s was busy with another call for too long; nothing was done: %w", s.name, err)
	}
	defer over()
	token, stop := l.listen(func(text string) { t.Progress("%s", s.said(text)) })
	params.SetProgressToken(token)
	// Counted before the request: only output that comes later can explain its failure.
	stderrLines := l.peer.stderrLines()
	result, attempt, err := request(ctx, s, func(ctx context.Context) (*sdk.CallToolResult, error) { return l.session.CallTool(ctx, params) })
	refused := s.said(strings.Join(stop(), " / "))
	if asks := t.asked(l, result, again, err); asks != nil {
		return "", asks
	}
	text := ""
	if err != nil {
		attempt.stderrLines = stderrLines
		err = s.failure(ctx, l, attempt, err)
	} else if text, err = answer(result, s.shower(ctx, t.Call)); err == nil {
		text = s.said(text)
	} else {
		err = errors.New(s.said(err.Error()))
	}
	switch {
	case refused == "":
	case err != nil:
		err = fmt.Errorf("%w\n"+declined, err, refused)
	default:
		text += fmt.Sprintf("\n"+declined, refused)
	}
	return text, err
}

const declined = "[The server wanted to ask a person during the call, which is not possible here. It was told so: %s]"

// request makes a request. It returns when its context ends or the server is closed,
// whatever the SDK waits for. The SDK then tells the server that the request is
// cancelled.
func request[R any](ctx context.Context, s *Server, send func(context.Context) (R, error)) (R, *attempt, error) {
	inner, cancel := context.WithCancelCause(ctx)
	// This also ends the rest of an answer's stream.
	defer cancel(nil)
	defer context.AfterFunc(s.alive, func() { cancel(context.Cause(s.alive)) })()
	t := &attempt{cancel: cancel}
	defer t.end()
	inner = withAttempt(inner, t)
	type outcome struct {
		result R
		err    error
	}
	// Room for one, so that the goroutine ends even if nobody waits any more.
	done := make(chan outcome, 1)
	go func() {
		result, err := send(inner)
		done <- outcome{result, err}
	}()
	var o outcome
	select {
	case o = <-done:
	case <-inner.Done():
		o.err = inner.Err()
	}
	// The cause says why: the call's time is up, or the server was closed.
	if o.err != nil && inner.Err() != nil {
		o.err = context.Cause(inner)
	}
	return o.result, t, o.err
}

// failure returns the error of a call that has no answer.
func (s *Server) failure(ctx context.Context, l *link, t *attempt, err error) error {
	switch {
	// The server may have done its work, so the effect is unknown.
	case errors.Is(context.Cause(ctx), errCallTime):
		return tool.Unknown("the MCP server %s did not answer within %s; the call was cancelled, and may or may not have had its effect", s.name, s.opts.CallTimeout)
	case ctx.Err() != nil:
		return fmt.Errorf("the call of the MCP server %s was cancelled: %w", s.name, context.Cause(ctx))
	}
	return s.trouble(l, t, err, duringCall)
}

// trouble returns the error of a server, as opposed to one within its tools.
func (s *Server) trouble(l *link, t *attempt, err error, when string) error {
	answer, fail, doubt := answered(err), fmt.Errorf, ""
	// A token that can't be had was noticed before anything was sent, so the call has no
	// effect.
	if noToken := noTokenCause(t.failure()); noToken != nil {
		return noToken
	}
	if when == duringCall {
		fail, doubt = tool.Unknown, "; the call may or may not have had its effect"
	}
	switch {
	case s.isClosed():
		return fail("the MCP server %s was closed %s%s", s.name, when, doubt)
	case s.url != nil && (answer == nil || t.status() >= 300):
		return s.lostAnswer(l, t, err, when)
	// Nothing was sent on this connection: another call of the session may be made on a
	// new one.
	case answer == nil && when != duringCall && errors.Is(l.peer.broken(), errGivenUp):
		return errMoved
	case answer == nil && l.peer.broken() == nil:
		return fail("the MCP server %s does not answer as it should: %w%s", s.name, err, doubt)
	case answer == nil:
		return fail("the MCP server %s %s", s.name, l.peer.describeEnd(when, doubt, t.stderrLines))
	}
	words := cut(s.said(answer.Message), maxDescription)
	switch answer.Code {
	case jsonrpc.CodeInvalidParams, jsonrpc.CodeMethodNotFound:
		return tool.Refuse("the MCP server %s refused: %s", s.name, words)
	case sdk.CodeURLElicitationRequired:
		return tool.Refuse("the MCP server %s needs a person to open a page first, which is not possible here: %s", s.name, words)
	}
	return fmt.Errorf("the MCP server %s failed %s: %s (code %d)", s.name, when, words, answer.Code)
}

// lostAnswer returns the error of a request over HTTP that has no answer.
func (s *Server) lostAnswer(l *link, t *attempt, err error, when string) error {
	fail, doubt := fmt.Errorf, ""
	if when == duringCall {
		fail, doubt = tool.Unknown, "; the call may or may not have had its effect"
	}
	status, words := t.status(), s.secrets(err.Error())
	if e := t.failure(); e != nil {
		words = s.secrets(plain(e))
	}
	switch {
	case t.orphaned():
		return forgotten{tool.Refuse("the MCP server %s refused: %s", s.name, t.said())}
	case status >= 500:
		return fail("the MCP server %s failed %s: %s%s", s.name, when, t.said(), doubt)
	case status >= 400:
		return tool.Refuse("the MCP server %s refused: %s", s.name, t.said())
	case status >= 300:
		return tool.Refuse("the MCP server %s refused: %s", s.name, words)
	case tooMuch(err):
		return fail("the MCP server %s was cut off %s: %w%s", s.name, when, err, doubt)
	case t.stayed() && t.failure() != nil:
		return s.unreached(t.failure())
	case t.stayed():
		return forgotten{fmt.Errorf("the MCP server %s has no connection: %s", s.name, words)}
	}
	// Read before leave, which breaks the connection itself.
	lost := t.failure() != nil || l.peer.broken() != nil
	// Nobody knows whether such a session still works.
	l.peer.leave(err)
	if !lost {
		return fail("the MCP server %s does not answer as it should: %s%s", s.name, words, doubt)
	}
	return fail("the connection to the MCP server %s broke %s: %s%s", s.name, when, words, doubt)
}

// unreached returns the error of a request over HTTP that never reached the server.
func (s *Server) unreached(why error) error {
	err := fmt.Errorf("the MCP server %s can't be reached (%s): %s; nothing was done", s.name, s.shown(), s.secrets(plain(why)))
	if errors.Is(why, syscall.ECONNREFUSED) {
		return away{err}
	}
	return err
}

// answered returns the error with which a server answered, or nil if the error is not the
// server's. The SDK reports errors of a transport in the same form.
func answered(err error) *jsonrpc.Error {
	const rejected = -32005
	var wire *jsonrpc.Error
	if !errors.As(err, &wire) || errors.Is(err, sdk.ErrConnectionClosed) || wire.Code == rejected && wire.Message == "rejected by transport" {
		return nil
	}
	return wire
}

// answer returns a result as the model reads it.
func answer(r *sdk.CallToolResult, show shower) (string, error) {
	text := contents(r.Content, show)
	more, err := structure(r)
	if err != nil {
		return "", err
	}
	text = under(text, clean(more))
	if err := pendingInput(r, r.InputRequests); err != nil {
		return "", err
	}
	switch {
	case r.IsError && text == "":
		return "", errors.New("the tool failed and did not say why")
	case r.IsError:
		return "", errors.New(text)
	case text == "":
		return "(no output)", nil
	}
	return text, nil
}

// pendingInput returns an error if a result is not final yet: the server first wants something
// of us, or wants to be called again later.
func pendingInput(r interface{ NeedsInput() bool }, requests sdk.InputRequestMap) error {
	if !r.NeedsInput() && len(requests) == 0 {
		return nil
	}
	var questions []string
	for _, id := range slices.Sorted(maps.Keys(requests)) {
		if q, ok := requests[id].(*sdk.ElicitParams); ok && len(questions) < maxAsked {
			questions = append(questions, cut(clean(q.Message), maxShown))
		}
	}
	switch {
	case len(requests) == 0:
		return errors.New("the server is busy and asks for a retry later; it has done nothing yet")
	case len(questions) > 0:
		return errors.New("the tool asks for input from a person, which is not possible here: " + strings.Join(questions, " / "))
	}
	return errors.New("the tool asks for input from a person, which is not possible here")
}

// clean makes text valid for JSON everywhere: UTF-8 without NUL.
func clean(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

// cut shortens a text to at most so many bytes, and marks it with an ellipsis.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	// The cut may fall inside a character; ToValidUTF8 drops the rest of it.
	return strings.ToValidUTF8(text[:most], "") + "…"
}
