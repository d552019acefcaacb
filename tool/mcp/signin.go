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

// toolSignIn is what a server has that lists its tools only to who has signed in.
const toolSignIn = tool.SignIn

// pending is a sign-in that a person is asked for. The code that they bring is of no use to
// whoever reads their answer: that wants the verifier, which stays in the vault.
type pending struct {
	State    string    `json:"state"`
	Verifier string    `json:"verifier"`
	URL      string    `json:"url"`
	At       terms     `json:"at"`
	Names    bool      `json:"names,omitempty"` // the redirect says who sends it (RFC 9207)
	Began    time.Time `json:"began"`
}

// pendingTime is for how long a sign-in that was begun is asked for again, as by a second
// call at the same time, before there is a new one.
const pendingTime = time.Hour

// signIn is the error of what needs a person to sign in: nothing was done.
type signIn struct {
	server, url, state string
}

// Error implements [error].
func (e *signIn) Error() string {
	return fmt.Sprintf("the MCP server %s needs a person to sign in; nothing was done", e.server)
}

// begin begins a sign-in, and returns the [*signIn] that asks for it. The caller has the turn.
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

// finish takes what a person brings from a sign-in. again says why they are asked for the
// same once more; an error ends the sign-in.
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
	if p == nil || p.State != state {
		return "", nil // it was finished by the answer to another call, or nobody knows of it any more: the server tells
	}
	text := a.Text
	_ = json.Unmarshal(a.Data, &text) // it may come in quotes
	back := redirected(text)
	switch {
	case back.Get("state") == "" || back.Get("code") == "" && back.Get("error") == "":
		return "it is not the address that the browser shows after the sign-in, with code= and state= in it", nil
	case back.Get("state") != state:
		return "it is the address of another sign-in", nil
	}
	l.known.Pending = nil
	switch iss := back.Get("iss"); {
	case iss == "" && p.Names:
		err = fmt.Errorf("the sign-in to the MCP server %s came back without the issuer, which %s adds to it; it was given up", l.server.name, p.At.Issuer)
	case iss != "" && iss != p.At.Issuer:
		err = fmt.Errorf("the sign-in to the MCP server %s came back from %s, and not from %s; it was given up", l.server.name, cut(clean(iss), maxShown), p.At.Issuer)
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
	p.At.Scopes = granted(t, p.At.Scopes)
	l.known = access{Token: t, At: p.At}
	return "", l.keep(ctx)
}

// redirected are the parameters of the address that a sign-in ended at.
func redirected(text string) url.Values {
	text = strings.TrimSpace(text)
	if _, query, ok := strings.Cut(text, "?"); ok {
		text = query
	}
	text, _, _ = strings.Cut(text, "#")
	values, err := url.ParseQuery(text)
	if err != nil {
		return nil
	}
	return values
}

// SignIn is the full name of the tool that a server of a name has alone as long as nobody has
// signed in to it.
func SignIn(server string) string { return server + tool.Separator + toolSignIn }

// signInSpec is the one tool of a server that lists nothing before somebody has signed in.
func (s *Server) signInSpec() agent.ToolSpec {
	return agent.ToolSpec{
		Name:        SignIn(s.name),
		Description: "Lets a person sign in to the MCP server " + s.name + ", which tells its tools to nobody else. Call this first if you need it: you then have its tools from your next turn on.",
		Input:       json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`),
	}
}

// signedIn is what the call of that tool comes to, which has listed the server's others.
func (s *Server) signedIn(c *tool.Call, l *link) (string, error) {
	h := s.heardBy(owner{c.Session, c.Run})
	s.mu.Lock()
	h.anew = true
	s.mu.Unlock()
	return fmt.Sprintf("Somebody has signed in. You have the tools of %s, %d of them, from your next turn on.", s.name, len(l.known())), nil
}

// signIn asks a person to sign in; the call is made again then.
func (t *talk) signIn(e *signIn) error {
	w := want{Message: "The MCP server " + t.server.name + " needs somebody to sign in.", URL: e.url, State: e.state}
	k := kept{How: byVisit, Wants: []want{w}, Asked: t.kept.Asked}
	if t.kept.How == byRound {
		k.Round = &t.kept
	}
	return t.all(k)
}

// signsIn takes the answer of who was asked to sign in.
func (t *talk) signsIn(ctx context.Context, w want, a agent.ToolAnswer) (again string, err error) {
	l := t.server.loginOf(t.server.ownerOf(t.Call))
	if l == nil || !l.people() {
		return "", tool.Refuse("nobody signs in to the MCP server %s any more; nothing was done", t.server.name)
	}
	return l.finish(ctx, w.State, a)
}
