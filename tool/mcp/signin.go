package mcp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/tool"
	"golang.org/x/oauth2"
)

// toolSignIn is the tool of a server that lists its tools only to people who signed in.
const toolSignIn = tool.SignIn

// pending is a sign-in that a person is asked for. Somebody who reads the person's answer
// can't use its code: that needs the verifier, which stays in the vault.
type pending struct {
	State    string    `json:"state"`
	Verifier string    `json:"verifier"`
	URL      string    `json:"url"`
	At       terms     `json:"at"`
	Names    bool      `json:"names,omitempty"` // the redirect names the issuer (RFC 9207)
	Began    time.Time `json:"began"`
}

// pendingTime is how long a sign-in is reused, for example by a second call at the same
// time, before a new one begins.
const pendingTime = time.Hour

// signIn is the error of a request that needs a person to sign in; nothing was done.
type signIn struct {
	server, url, state string
}

// Error implements [error].
func (e *signIn) Error() string {
	return fmt.Sprintf("the MCP server %s needs a person to sign in; nothing was done", e.server)
}

// begin begins a sign-in, and returns the [*signIn] that asks for it. The caller holds
// the turn.
func (l *login) begin(ctx context.Context, at terms, server *issuer) error {
	if p := l.known.Pending; p == nil || time.Since(p.Began) > pendingTime || p.At.Issuer != at.Issuer || p.At.Client != at.Client || !covered(at.Scopes, p.At.Scopes) {
		p = &pending{State: rand.Text(), Verifier: oauth2.GenerateVerifier(), At: at, Names: server.AuthorizationResponseIssParameterSupported, Began: time.Now()}
		c := oauth2.Config{ClientID: at.Client, Endpoint: oauth2.Endpoint{AuthURL: server.AuthorizationEndpoint}, RedirectURL: l.Redirect, Scopes: at.Scopes}
		p.URL = c.AuthCodeURL(p.State, oauth2.S256ChallengeOption(p.Verifier), oauth2.SetAuthURLParam("resource", at.Resource))
		if len(p.URL) > maxURL {
			return fmt.Errorf("the page to sign in to the MCP server %s has a URL of more than %d bytes", l.server.name, maxURL)
		}
		l.known.Pending = p
		if err := l.keep(ctx); err != nil {
			return err
		}
	}
	return &signIn{l.server.name, l.known.Pending.URL, l.known.Pending.State}
}

// finish takes the answer of a person who signed in. again says why they are asked once
// more; an error ends the sign-in.
func (l *login) finish(ctx context.Context, state string, a agent.ToolAnswer) (again string, err error) {
	done, err := l.hold(ctx)
	if err != nil {
		return "", err
	}
	defer done()
	if err := l.load(ctx); err != nil {
		return "", err
	}
	p := l.known.Pending
	// The answer to another call finished it, or it is not known any more. The call is
	// made again, and the server says what it needs.
	if p == nil || p.State != state {
		return "", nil
	}
	text := a.Text
	_ = json.Unmarshal(a.Data, &text) // it may come in quotes
	back := redirected(text)
	switch {
	case back.Get("state") == "" || back.Get("code") == "" && back.Get("error") == "":
		return "it is not the address that the browser shows after the sign-in, with code= and state= in it", nil
	// RFC 6749: without this check somebody could slip in the code of their own account.
	case back.Get("state") != state:
		return "it is the address of another sign-in", nil
	}
	// A code works once. Whatever happens below, this sign-in is over.
	l.known.Pending = nil
	switch iss := back.Get("iss"); {
	case iss == "" && p.Names:
		err = fmt.Errorf("the sign-in to the MCP server %s came back without the issuer, which %s adds to it; the sign-in was cancelled", l.server.name, p.At.Issuer)
	case iss != "" && iss != p.At.Issuer:
		err = fmt.Errorf("the sign-in to the MCP server %s came back from %s, and not from %s; the sign-in was cancelled", l.server.name, cut(clean(iss), maxShown), p.At.Issuer)
	case back.Get("error") != "":
		err = tool.Refuse("the sign-in to the MCP server %s was refused: %s", l.server.name, l.server.said(cut(strings.TrimSuffix(back.Get("error")+": "+back.Get("error_description"), ": "), maxShown)))
	}
	if err != nil {
		return "", errors.Join(err, l.keep(ctx))
	}
	t, err := l.ask(ctx, p.At, url.Values{"grant_type": {"authorization_code"}, "code": {back.Get("code")}, "redirect_uri": {l.Redirect}, "code_verifier": {p.Verifier}})
	if err != nil {
		return "", errors.Join(l.fail("signing in to", err), l.keep(ctx))
	}
	// The server may give fewer scopes than requested. obtain compares with the real
	// ones.
	p.At.Scopes = granted(t, p.At.Scopes)
	l.known = access{Token: t, At: p.At}
	return "", l.keep(ctx)
}

// redirected returns the parameters of the address at which a sign-in ended.
func redirected(text string) url.Values {
	text = strings.TrimSpace(text)
	if _, query, ok := strings.Cut(text, "?"); ok {
		text = query
	}
	// People also paste only the query.
	text, _, _ = strings.Cut(text, "#")
	values, err := url.ParseQuery(text)
	if err != nil {
		return nil
	}
	return values
}

// SignIn returns the full name of the sign-in tool of a server with this name. It is the
// server's only tool until somebody has signed in.
func SignIn(server string) string { return server + tool.Separator + toolSignIn }

// signInSpec is the only tool of a server that lists nothing before somebody has signed
// in.
func (s *Server) signInSpec() agent.ToolSpec {
	return agent.ToolSpec{
		Name:        SignIn(s.name),
		Description: "Lets a person sign in to the MCP server " + s.name + ", which shows its tools only after a sign-in. Call this first if you need it: you then have its tools from your next turn on.",
		Input:       json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`),
	}
}

// signedIn is the result of the sign-in tool. The call has listed the server's tools.
func (s *Server) signedIn(c *tool.Call, l *link) (string, error) {
	h := s.knownToolsOf(owner{c.Session, c.Run})
	s.mu.Lock()
	h.signedIn = true
	s.mu.Unlock()
	return fmt.Sprintf("Somebody has signed in. You have the tools of %s, %d of them, from your next turn on.", s.name, len(l.known())), nil
}

// signIn asks a person to sign in. The call is then made again.
func (t *talk) signIn(e *signIn) error {
	w := want{Message: "The MCP server " + t.server.name + " needs somebody to sign in.", URL: e.url, State: e.state}
	k := kept{How: byVisit, Wants: []want{w}, Asked: t.kept.Asked}
	// The answers of the round were given before; the repeated call needs them again.
	if t.kept.How == byRound {
		k.Round = &t.kept
	}
	return t.all(k)
}

// signsIn takes the answer of a person who was asked to sign in.
func (t *talk) signsIn(ctx context.Context, w want, a agent.ToolAnswer) (again string, err error) {
	l := t.server.loginOf(t.server.ownerOf(t.Call))
	if l == nil || !l.people() {
		return "", tool.Refuse("nobody signs in to the MCP server %s any more; nothing was done", t.server.name)
	}
	return l.finish(ctx, w.State, a)
}
