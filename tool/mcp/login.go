package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/fermata-agents/fermata/tool"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

// login is one owner's access to a server: its tokens, and a sign-in in progress.
type login struct {
	*oauth
	server  *Server
	session string        // empty for an access that all share
	turn    chan struct{} // a lock for the fields below; a context can stop waiting for it
	known   access
	read    bool     // whether known was read from the vault
	proofs  []string // the credentials that were sent last

	nonce atomic.Pointer[string] // the server's last nonce for proofs of possession
}

// access is what a login stores in the vault.
type access struct {
	Token   *oauth2.Token `json:"token,omitempty"`
	At      terms         `json:"at,omitzero"` // of the token
	Pending *pending      `json:"pending,omitempty"`
}

// terms say how tokens are requested from an authorization server.
type terms struct {
	Issuer   string           `json:"issuer"`
	TokenURL string           `json:"token_url"`
	Resource string           `json:"resource"`
	Scopes   []string         `json:"scopes,omitempty"`
	Client   string           `json:"client"`
	Secret   string           `json:"secret,omitempty"`
	Style    oauth2.AuthStyle `json:"style,omitempty"`
	Key      []byte           `json:"key,omitempty"` // see pass; only if the issuer supports DPoP
}

// early is how long before its expiry a token is no longer used.
const early = 10 * time.Second

func usable(t *oauth2.Token) bool {
	return t != nil && t.AccessToken != "" && (t.Expiry.IsZero() || time.Until(t.Expiry) > early)
}

// hold waits for the turn, and reads the vault the first time.
func (l *login) hold(ctx context.Context) (done func(), err error) {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if !l.read {
		err = l.load(ctx)
	}
	if err != nil {
		<-l.turn
		return nil, err
	}
	return func() { <-l.turn }, nil
}

// load reads the vault, which another process may have changed. The caller holds the
// turn.
func (l *login) load(ctx context.Context) error {
	if !l.people() {
		return nil
	}
	raw, err := l.Vault.Secret(ctx, l.session, l.server.name)
	known := access{}
	if err == nil && raw != nil {
		err = json.Unmarshal(raw, &known)
	}
	if err != nil {
		return fmt.Errorf("reading the tokens of the MCP server %s: %w", l.server.name, err)
	}
	l.known, l.read = known, true
	l.server.hideTokens(l)
	return nil
}

func (l *login) people() bool { return l.Grant == GrantCode }

// keep stores what is known. The caller holds the turn.
func (l *login) keep(ctx context.Context) error {
	// Hidden before anybody can use or log them.
	l.server.hideTokens(l)
	if !l.people() {
		return nil // such a token can be requested again at any time
	}
	raw, err := json.Marshal(l.known)
	if err == nil {
		err = l.Vault.PutSecret(ctx, l.session, l.server.name, raw)
	}
	if err != nil {
		return fmt.Errorf("keeping the tokens of the MCP server %s: %w", l.server.name, err)
	}
	return nil
}

// pass returns what requests are sent with. It renews an expired token if nobody has to
// sign in for that.
func (l *login) pass(ctx context.Context) (pass, error) {
	done, err := l.hold(ctx)
	if err != nil {
		return pass{}, err
	}
	defer done()
	if t := l.known.Token; t == nil || usable(t) {
		return l.known.pass(), nil
	}
	// Another process may have renewed it. Refresh tokens often work only once.
	if err := l.load(ctx); err != nil {
		return pass{}, err
	}
	if t := l.known.Token; t != nil && !usable(t) {
		if err := l.refresh(ctx); err != nil {
			return pass{}, err
		}
	}
	return l.known.pass(), nil
}

func (a access) pass() pass {
	if a.Token == nil {
		return pass{}
	}
	p := pass{token: a.Token.AccessToken}
	if isBound(a.Token) {
		p.key = a.At.Key
	}
	return p
}

// isBound reports whether a token works only together with its key.
func isBound(t *oauth2.Token) bool { return strings.EqualFold(t.TokenType, "DPoP") }

// refresh renews an expired token. If that is not possible it drops the token and returns
// nil: the server then says what it wants. The caller holds the turn.
func (l *login) refresh(ctx context.Context) error {
	old, values := l.known.Token, url.Values{}
	if l.people() {
		if old.RefreshToken == "" {
			l.known.Token = nil
			return nil
		}
		values = url.Values{"grant_type": {"refresh_token"}, "refresh_token": {old.RefreshToken}}
	}
	fresh, err := l.ask(ctx, l.known.At, values)
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) && refused.Response != nil && refused.Response.StatusCode < 500 {
		l.server.log.Info("MCP server's tokens can't be renewed", "error", l.said(err))
		// A refused refresh token may have been used by another process, whose new one is
		// in the vault.
		if err := l.load(ctx); err != nil {
			return err
		}
		// Dropped only here, not in the vault: another process may be storing a newer
		// one.
		if l.known.pass().token == old.AccessToken {
			l.known.Token = nil
		}
		return nil
	}
	if err != nil {
		return l.fail("renewing the tokens of", err)
	}
	// A server that sends no refresh token means that the old one still works.
	if fresh.RefreshToken == "" {
		fresh.RefreshToken = old.RefreshToken
	}
	l.known.Token = fresh
	return l.keep(ctx)
}

// ask sends a request to a token endpoint. values are the grant's own parameters.
func (l *login) ask(ctx context.Context, at terms, values url.Values) (*oauth2.Token, error) {
	values.Set("resource", at.Resource)
	c := clientcredentials.Config{ClientID: at.Client, ClientSecret: at.Secret, TokenURL: at.TokenURL, AuthStyle: at.Style, EndpointParams: values}
	if g := values.Get("grant_type"); g == "" {
		c.Scopes = at.Scopes
	}
	if err := l.prove(ctx, at, values); err != nil {
		return nil, err
	}
	client := *l.server.outside
	// A copy of the client: the key belongs to this request.
	if at.Key != nil {
		client.Transport = binding{client.Transport, at.Key}
	}
	t, err := c.Token(context.WithValue(ctx, oauth2.HTTPClient, &client))
	if err != nil {
		return nil, err
	}
	if !strings.EqualFold(t.Type(), "Bearer") && (at.Key == nil || !isBound(t)) {
		return nil, fmt.Errorf("its token is of the type %q, and neither Bearer nor bound to the key that was shown", cut(clean(t.TokenType), maxShown))
	}
	return t, nil
}

// granted returns the scopes of a token: those that the server named, else those
// requested.
func granted(t *oauth2.Token, asked []string) []string {
	if scope, ok := t.Extra("scope").(string); ok && scope != "" {
		return strings.Fields(scope)
	}
	return asked
}

// obtain gets a token after a request was refused; the caller then repeats the request.
// used is the refused token. The error is a [*signIn] if a person has to sign in.
func (l *login) obtain(ctx context.Context, refused *http.Response, used string) error {
	done, err := l.hold(ctx)
	if err != nil {
		return err
	}
	defer done()
	// Another process may have stored a newer token.
	if l.known.pass().token == used {
		err = l.load(ctx)
	}
	if err != nil {
		return err
	}
	if usable(l.known.Token) && l.known.Token.AccessToken != used {
		return nil // another request got it meanwhile
	}
	demand := demandOf(refused)
	// A 401 with a token may only mean that the server revoked it early; try to renew it.
	if refused.StatusCode == http.StatusUnauthorized && l.people() && l.known.Token != nil {
		if err := l.refresh(ctx); err != nil || l.known.Token != nil {
			return err
		}
	}
	at, form, err := l.discover(ctx, demand)
	if err != nil {
		return l.fail("finding out how to sign in to", err)
	}
	// The person signed in and did not get these rights. Asking again would never end.
	if refused.StatusCode == http.StatusForbidden && l.known.Token != nil && covered(at.Scopes, l.known.At.Scopes) {
		return tool.Refuse("the MCP server %s refused: it needs rights that signing in did not give (%s)", l.server.name, cut(clean(strings.Join(at.Scopes, " ")), maxShown))
	}
	if l.people() {
		return l.begin(ctx, at, form)
	}
	t, err := l.ask(ctx, at, url.Values{})
	if err != nil {
		return l.fail("signing in to", err)
	}
	l.known = access{Token: t, At: at}
	return l.keep(ctx)
}

// covered reports whether one list contains all of another.
func covered(some, all []string) bool {
	return !slices.ContainsFunc(some, func(one string) bool { return !slices.Contains(all, one) })
}

// noToken is the error of a request that was refused for want of a token. It had no
// effect.
type noToken struct{ error }

// Unwrap returns the cause, which may be a [*signIn].
func (b noToken) Unwrap() error { return b.error }

// noTokenCause returns why a request has no token, or nil if its error is another one.
func noTokenCause(err error) error {
	var b noToken
	if errors.As(err, &b) {
		return b.error
	}
	return nil
}

func (l *login) fail(what string, err error) error {
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) && refused.Response != nil && refused.Response.StatusCode < 500 {
		return tool.Refuse("%s the MCP server %s: %s", what, l.server.name, l.said(err))
	}
	return fmt.Errorf("%s the MCP server %s: %s", what, l.server.name, l.said(err))
}

// said describes an error of an authorization server. It quotes at most the standard
// fields, and never a whole answer, which may contain secrets.
func (l *login) said(err error) string {
	who := "the authorization server"
	var provider notExchanged
	if errors.As(err, &provider) {
		who = "the identity provider " + provider.host
	}
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) {
		words := refused.ErrorCode
		if words == "" && refused.Response != nil {
			words = refused.Response.Status
		}
		if refused.ErrorDescription != "" {
			words += ": " + refused.ErrorDescription
		}
		return l.server.said(who + " refused: " + cut(words, maxShown))
	}
	return l.server.said(cut(plain(err), maxShown))
}
