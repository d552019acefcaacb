package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"

	"github.com/fermata-agents/fermata/internal/inner"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
)

// maxMetadata bounds how much of an authorization server's answer is read, in bytes.
const maxMetadata = 256 << 10

// demand is what a server asks for when it refuses a request.
type demand struct {
	metadata string // the URL of the server's metadata; empty if it names none
	scopes   []string
}

func demandOf(refused *http.Response) (d demand) {
	challenges, err := oauthex.ParseWWWAuthenticate(refused.Header.Values("WWW-Authenticate"))
	if err != nil {
		return demand{}
	}
	for _, c := range challenges {
		if c.Scheme == "bearer" || c.Scheme == "dpop" {
			d.metadata, d.scopes = c.Params["resource_metadata"], strings.Fields(c.Params["scope"])
		}
	}
	return d
}

// demands reports whether a response asks for a token, or for one with more rights.
func demands(resp *http.Response) bool {
	if resp.StatusCode != http.StatusForbidden {
		return resp.StatusCode == http.StatusUnauthorized
	}
	challenges, _ := oauthex.ParseWWWAuthenticate(resp.Header.Values("WWW-Authenticate"))
	return slices.ContainsFunc(challenges, func(c oauthex.Challenge) bool {
		return (c.Scheme == "bearer" || c.Scheme == "dpop") && c.Params["error"] == "insufficient_scope"
	})
}

// discover finds the authorization server, the scopes to request and the client to use.
func (l *login) discover(ctx context.Context, d demand) (terms, *issuer, error) {
	resource, err := l.resource(ctx, d.metadata)
	if err != nil {
		return terms{}, nil, err
	}
	named := resource.AuthorizationServers[0]
	// The client and its secret are for this issuer only, whichever the server names.
	if l.issuer != nil {
		if !slices.ContainsFunc(resource.AuthorizationServers, l.names) {
			return terms{}, nil, fmt.Errorf("it names the authorization server %s, and not %s, whose client this is", cut(clean(named), maxShown), l.Issuer)
		}
		named = l.Issuer
	}
	server, err := l.authority(ctx, named)
	if err != nil {
		return terms{}, nil, err
	}
	at := terms{Issuer: server.Issuer, TokenURL: server.TokenEndpoint, Resource: resource.Resource, Scopes: d.scopes}
	if len(at.Scopes) == 0 {
		at.Scopes = resource.ScopesSupported
	}
	if l.known.At.Issuer == at.Issuer && l.known.Token != nil {
		// A new sign-in replaces the token. Without the old scopes it would lose rights.
		at.Scopes = union(l.known.At.Scopes, at.Scopes)
	}
	// Some servers give no refresh token without this scope.
	if l.people() && slices.Contains(server.ScopesSupported, "offline_access") {
		at.Scopes = union(at.Scopes, []string{"offline_access"})
	}
	if slices.Contains(server.Proofs, "ES256") {
		if at.Key, err = newKey(); err != nil {
			return terms{}, nil, err
		}
	}
	return at, server, l.enlist(ctx, &at, &server.AuthServerMeta)
}

// issuer is the metadata of an authorization server.
type issuer struct {
	oauthex.AuthServerMeta
	// Proofs lists the signature algorithms for proof of possession (RFC 9449).
	Proofs []string `json:"dpop_signing_alg_values_supported"`
}

func (l *login) names(issuer string) bool {
	return strings.TrimSuffix(issuer, "/") == strings.TrimSuffix(l.Issuer, "/")
}

func union(a, b []string) []string {
	out := slices.Clone(a)
	for _, one := range b {
		if !slices.Contains(out, one) {
			out = append(out, one)
		}
	}
	return out
}

// resource returns the MCP server's metadata (RFC 9728); by default it is its own issuer.
func (l *login) resource(ctx context.Context, named string) (*oauthex.ProtectedResourceMetadata, error) {
	server := l.server.url
	at := func(path string) string {
		return (&url.URL{Scheme: server.Scheme, Host: server.Host, Path: path}).String()
	}
	places := []string{named, at("/.well-known/oauth-protected-resource" + strings.TrimSuffix(server.Path, "/")), at("/.well-known/oauth-protected-resource")}
	for _, place := range slices.Compact(places) {
		if place == "" {
			continue
		}
		var meta oauthex.ProtectedResourceMetadata
		found, err := l.fetch(ctx, place, &meta)
		switch {
		case err != nil:
			return nil, err
		case !found:
			continue
		// Otherwise a server could make us obtain, and send it, another resource's token.
		case !covers(meta.Resource, server):
			return nil, fmt.Errorf("its metadata is of another resource, %s", cut(clean(meta.Resource), maxShown))
		case len(meta.AuthorizationServers) == 0:
			return nil, errors.New("its metadata names no authorization server")
		}
		return &meta, nil
	}
	return &oauthex.ProtectedResourceMetadata{Resource: server.String(), AuthorizationServers: []string{at("")}}, nil
}

// covers reports whether a resource is the server, or a part of its host around it.
func covers(resource string, server *url.URL) bool {
	u, err := url.Parse(resource)
	if err != nil || u.Host == "" || !same(u, server) {
		return false
	}
	whole := strings.TrimSuffix(u.Path, "/") + "/"
	return strings.HasPrefix(strings.TrimSuffix(server.Path, "/")+"/", whole)
}

// authority returns the metadata of an authorization server (RFC 8414 or OpenID Connect).
func (l *login) authority(ctx context.Context, named string) (*issuer, error) {
	u, err := l.place(named)
	if err != nil {
		return nil, fmt.Errorf("the authorization server: %w", err)
	}
	path := strings.TrimSuffix(u.Path, "/")
	at := func(path string) string { return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: path}).String() }
	for _, place := range slices.Compact([]string{
		at("/.well-known/oauth-authorization-server" + path), at("/.well-known/openid-configuration" + path), at(path + "/.well-known/openid-configuration"),
	}) {
		var meta issuer
		found, err := l.fetch(ctx, place, &meta)
		if err != nil {
			return nil, err
		}
		if found {
			return &meta, l.sound(&meta, named)
		}
	}
	// Endpoints are only guessed for the old protocol: the server is its own issuer.
	if !same(u, l.server.url) {
		return nil, fmt.Errorf("the authorization server %s has no metadata", cut(clean(named), maxShown))
	}
	meta := &issuer{AuthServerMeta: oauthex.AuthServerMeta{
		Issuer: named, AuthorizationEndpoint: at("/authorize"), TokenEndpoint: at("/token"), RegistrationEndpoint: at("/register"),
		CodeChallengeMethodsSupported: []string{"S256"},
	}}
	return meta, l.sound(meta, named)
}

// sound refuses metadata that an authorization server must not have.
func (l *login) sound(meta *issuer, named string) error {
	if strings.TrimSuffix(meta.Issuer, "/") != strings.TrimSuffix(named, "/") {
		return fmt.Errorf("the authorization server %s calls itself %s", cut(clean(named), maxShown), cut(clean(meta.Issuer), maxShown))
	}
	for _, place := range []string{meta.TokenEndpoint, meta.AuthorizationEndpoint, meta.RegistrationEndpoint} {
		if place == "" {
			continue
		}
		if _, err := l.place(place); err != nil {
			return err
		}
	}
	switch {
	case meta.TokenEndpoint == "", l.people() && meta.AuthorizationEndpoint == "":
		return errors.New("the authorization server has no endpoint for that")
	case l.people() && !slices.Contains(meta.CodeChallengeMethodsSupported, "S256"):
		return errors.New("the authorization server does not say that it knows PKCE by S256, without which nobody should sign in")
	}
	return nil
}

// place parses a URL from somebody else that we request or that people open.
func (l *login) place(text string) (*url.URL, error) {
	u, err := address(text, l.plain)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", cut(clean(text), maxShown), err)
	// A remote server could otherwise have us send requests to services of this machine.
	case u.Scheme == "http" && local(u.Hostname()) && !local(l.server.url.Hostname()) && (l.issuer == nil || !same(u, l.issuer)):
		return nil, fmt.Errorf("%s is on this machine, and the server is not", cut(clean(text), maxShown))
	}
	if foreign(u) {
		return nil, errForeign
	}
	return u, nil
}

// fetch reads JSON from a URL, and reports whether there was any.
func (l *login) fetch(ctx context.Context, place string, into any) (found bool, err error) {
	if _, err := l.place(place); err != nil {
		return false, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, place, nil)
	if err != nil {
		return false, err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := l.server.outside.Do(req)
	if err != nil {
		return false, fmt.Errorf("%s can't be reached: %s", cut(place, maxShown), plain(err))
	}
	defer resp.Body.Close()
	// An outage does not mean that the document is missing: do not use the next place or defaults.
	if resp.StatusCode >= 500 {
		return false, fmt.Errorf("%s answers with %s", cut(place, maxShown), resp.Status)
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode != http.StatusOK || kind != "application/json" {
		return false, nil
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxMetadata+1))
	if err == nil && len(raw) > maxMetadata {
		err = fmt.Errorf("it has more than %d bytes", maxMetadata)
	}
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		return false, fmt.Errorf("%s can't be read: %s", cut(place, maxShown), plain(err))
	}
	return true, nil
}

// enlist chooses the client that requests tokens, and registers one if none is known.
func (l *login) enlist(ctx context.Context, at *terms, server *oauthex.AuthServerMeta) error {
	at.Style = styleOf(server.TokenEndpointAuthMethodsSupported, l.Secret)
	switch {
	case l.Client != "" && (!l.metadata() || server.ClientIDMetadataDocumentSupported), l.Grant == GrantAssertion:
		at.Client, at.Secret = l.Client, l.Secret
		return nil
	case server.RegistrationEndpoint == "":
		return errors.New("the authorization server does not allow clients to register: name one of its clients")
	}
	kept := "client of " + l.server.name + " at " + at.Issuer
	raw, err := l.Vault.Secret(ctx, "", kept)
	var known oauthex.ClientRegistrationResponse
	if err != nil {
		return fmt.Errorf("reading the client that is registered: %w", err)
	}
	if raw == nil || json.Unmarshal(raw, &known) != nil || !slices.Contains(known.RedirectURIs, l.Redirect) {
		asked := &oauthex.ClientRegistrationMetadata{
			RedirectURIs: []string{l.Redirect}, ClientName: "Fermata", ApplicationType: "web",
			GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
		}
		if local(l.redirect.Hostname()) {
			asked.ApplicationType = "native"
		}
		if methods := server.TokenEndpointAuthMethodsSupported; slices.Contains(methods, "none") {
			asked.TokenEndpointAuthMethod = "none"
		} else if len(methods) > 0 {
			asked.TokenEndpointAuthMethod = methods[0]
		}
		fresh, err := oauthex.RegisterClient(ctx, server.RegistrationEndpoint, asked, l.server.outside)
		if err != nil {
			return fmt.Errorf("registering a client: %s", unregistered(err))
		}
		known = *fresh
		known.RedirectURIs = []string{l.Redirect}
		if raw, err = json.Marshal(&known); err == nil {
			err = l.Vault.PutSecret(ctx, "", kept, raw)
		}
		if err != nil {
			return fmt.Errorf("keeping the client that was registered: %w", err)
		}
	}
	at.Client, at.Secret = known.ClientID, known.ClientSecret
	if known.TokenEndpointAuthMethod != "" {
		at.Style = styleOf([]string{known.TokenEndpointAuthMethod}, known.ClientSecret)
	}
	return nil
}

// unregistered returns why a client could not be registered. It leaves out the rest of
// the answer, which may contain a secret.
func unregistered(err error) string {
	var refused *oauthex.ClientRegistrationError
	var lost *url.Error
	switch {
	case errors.As(err, &refused):
		return cut(refused.Error(), maxShown)
	case errors.As(err, &lost):
		return plain(err)
	}
	return "the authorization server refuses, or its answer can't be read"
}

// styleOf returns how a client authenticates at a token endpoint.
func styleOf(methods []string, secret string) oauth2.AuthStyle {
	switch {
	case secret == "" || slices.Contains(methods, "client_secret_post"):
		return oauth2.AuthStyleInParams
	case len(methods) == 0 || slices.Contains(methods, "client_secret_basic"):
		return oauth2.AuthStyleInHeader
	}
	return oauth2.AuthStyleAutoDetect
}

// outsideClient returns the HTTP client for all but the server. It sends no headers of the server,
// follows no redirect to another host, and reaches no inner network that only it named.
func (s *Server) outsideClient() *http.Client {
	limit := s.opts.startTimeout()
	trusted := []*url.URL{s.url}
	if s.oauth != nil && s.oauth.issuer != nil {
		trusted = append(trusted, s.oauth.issuer)
	}
	if s.oauth != nil && s.oauth.exchange != nil {
		trusted = append(trusted, s.oauth.exchange)
	}
	for _, scheme := range []string{"https", "http"} {
		if proxy, err := http.ProxyFromEnvironment(&http.Request{URL: &url.URL{Scheme: scheme, Host: "example.com"}}); err == nil && proxy != nil {
			trusted = append(trusted, proxy)
		}
	}
	return &http.Client{
		Timeout: limit,
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if !same(req.URL, via[0].URL) || len(via) >= 5 {
				return fmt.Errorf("it redirects to %s", origin(req.URL))
			}
			return nil
		},
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSHandshakeTimeout: limit, ForceAttemptHTTP2: true, MaxResponseHeaderBytes: maxHeader, DisableKeepAlives: true,
			DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				d := net.Dialer{Timeout: limit}
				// At dial time, after the name was resolved: resolving it twice gains nothing.
				if !slices.ContainsFunc(trusted, func(u *url.URL) bool { return strings.HasSuffix(origin(u), "://"+addr) }) {
					d.Control = s.outer
				}
				return d.DialContext(ctx, network, addr)
			},
		},
	}
}

// outer refuses addresses of inner networks, and of this machine unless the server is on it.
func (s *Server) outer(_, addr string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(addr)
	if err != nil {
		return err
	}
	kind := inner.KindOf(at.Addr())
	if kind == inner.Outer || kind == inner.Loopback && local(s.url.Hostname()) {
		return nil
	}
	return fmt.Errorf("%s is on an inner network, and only the server names it; name it as the issuer if that is right", at.Addr().Unmap())
}
