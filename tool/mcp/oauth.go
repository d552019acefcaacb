package mcp

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/fermata-agents/fermata/agent"
)

// Grant says how tokens for a server are obtained.
type Grant string

const (
	// GrantCode has a person sign in. The call that needs a token asks for it, as a tool
	// asks a person. A server that lists no tools without a token has only the tool
	// NAME__sign_in until then. Each session has its own tokens, unless [Options.Per] is
	// [PerWorker].
	GrantCode Grant = "authorization_code"
	// GrantClient signs in with Client and Secret or KeyFile. All sessions share one
	// client, and no person is needed.
	GrantClient Grant = "client_credentials"
	// GrantAssertion signs in with AssertionFile (RFC 7523). Otherwise it is
	// [GrantClient].
	GrantAssertion Grant = "jwt_bearer"
)

// OAuth says how to obtain the tokens that a server with a URL wants; see
// [Options.OAuth]. Endpoints are found as MCP says: the server names its authorization
// server, which names its endpoints.
type OAuth struct {
	// Grant is how tokens are obtained; empty means [GrantCode].
	Grant Grant
	// Client is our id at the authorization server. If it is empty, a client is
	// registered, where the server allows that (RFC 7591). If it is an https:// URL with
	// a path, it is the URL of the client's metadata; a server that does not read these
	// gets a registration instead.
	Client string
	// Secret is the client's secret. It may name variables of Options.Env:
	// "${WIKI_SECRET}". [GrantClient] needs a Secret or a KeyFile.
	Secret string
	// KeyFile has a private key (PEM, PKCS #8: RSA, ECDSA or Ed25519). The client signs
	// its requests with it and sends no Secret (private_key_jwt).
	KeyFile string
	// AssertionFile has a signed token (JWT) that says who this process is. A platform
	// such as Kubernetes writes and renews it. It is for [GrantAssertion] only. Both
	// files are read each time, have at most 64 KiB, and must be regular files.
	AssertionFile string
	// Exchange gives an assertion for the token in AssertionFile, which must then be a
	// person's ID token. With nil, the content of AssertionFile is sent itself.
	Exchange *Exchange
	// Issuer is the authorization server that the client belongs to. It is required with
	// a Secret, a KeyFile or an AssertionFile. Otherwise the MCP server could name any
	// authorization server, and receive the credentials there.
	Issuer string
	// Redirect is where the authorization server sends the browser after a sign-in; empty
	// means [DefaultRedirect]. Nothing needs to listen there.
	Redirect string
	// Vault keeps tokens beyond the life of this process; nil keeps them in memory.
	Vault Vault
}

// DefaultRedirect is an address on the machine of the person who signs in. They answer
// with the address that their browser then shows.
const DefaultRedirect = "http://127.0.0.1:8917/callback"

// Vault keeps secrets. It must encrypt them, and protect them from everybody who may not
// act for the session. It must be safe for use by many goroutines and processes at once.
type Vault interface {
	// Secret returns what was last stored under a name, or nil if nothing was. session is
	// empty for what belongs to no session.
	Secret(ctx context.Context, session, name string) ([]byte, error)
	// PutSecret stores a value under a name and replaces the last one.
	PutSecret(ctx context.Context, session, name string, value []byte) error
}

// maxMemory is how many secrets a vault in memory keeps. One more drops any other; its
// session has to sign in again.
const maxMemory = 10000

// memory is a [Vault] that lasts as long as the process.
type memory struct {
	mu   sync.Mutex
	kept map[[2]string][]byte
}

// Secret implements [Vault].
func (m *memory) Secret(_ context.Context, session, name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.kept[[2]string{session, name}], nil
}

// PutSecret implements [Vault].
func (m *memory) PutSecret(_ context.Context, session, name string, value []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	// Any entry: Go's map order is random, and keeping an order would need another
	// structure.
	for other := range m.kept {
		if len(m.kept) < maxMemory {
			break
		}
		delete(m.kept, other)
	}
	m.kept[[2]string{session, name}] = value
	return nil
}

// oauth is OAuth with its URLs parsed.
type oauth struct {
	OAuth
	issuer   *url.URL // nil if none is named
	redirect *url.URL
	exchange *url.URL // nil without an Exchange
	plain    bool     // see Options.Plain
}

// oauth validates the options. It returns nil if there are none.
func (o *Options) oauth(server *url.URL) (*oauth, error) {
	if o.OAuth == nil {
		return nil, nil
	}
	a := &oauth{OAuth: *o.OAuth, plain: o.Plain}
	if a.Grant == "" {
		a.Grant = GrantCode
	}
	if a.Redirect == "" {
		a.Redirect = DefaultRedirect
	}
	if a.Vault == nil {
		a.Vault = &memory{kept: map[[2]string][]byte{}}
	}
	for _, name := range Variables(a.Secret) {
		if o.Env[name] == "" {
			return nil, agent.Errorf(agent.CodeInvalidInput, "its OAuth secret names the variable %s, which has no value", name)
		}
	}
	a.Secret = o.fill(a.Secret)
	var err error
	if a.redirect, err = url.Parse(a.Redirect); err != nil || a.redirect.Host == "" || a.redirect.Scheme != "https" && (a.redirect.Scheme != "http" || !local(a.redirect.Hostname())) {
		return nil, agent.Errorf(agent.CodeInvalidInput, "its OAuth redirect must be https://, or http:// on the machine of the person who signs in")
	}
	if a.Issuer != "" {
		if a.issuer, err = address(a.Issuer, a.plain); err != nil {
			return nil, agent.Errorf(agent.CodeInvalidInput, "its OAuth issuer: %w", err)
		}
	}
	if a.Exchange != nil {
		if a.Exchange, a.exchange, err = a.Exchange.check(o); err != nil {
			return nil, err
		}
	}
	switch fault := a.fault(); {
	case fault != "":
		return nil, agent.Errorf(agent.CodeInvalidInput, "its OAuth %s", fault)
	case o.setsAuthorization():
		return nil, agent.Errorf(agent.CodeInvalidInput, "it has OAuth and an Authorization header; one of them is enough")
	case server == nil:
		return nil, agent.Errorf(agent.CodeInvalidInput, "it has OAuth and no URL")
	}
	return a, nil
}

// fault returns which options contradict each other, or nothing.
func (a *oauth) fault() string {
	proves := a.Secret != "" || a.KeyFile != ""
	switch {
	case !slices.Contains([]Grant{GrantCode, GrantClient, GrantAssertion}, a.Grant):
		return fmt.Sprintf("grant is %q; it is %s, %s or %s", a.Grant, GrantCode, GrantClient, GrantAssertion)
	case a.Grant == GrantClient && (a.Client == "" || !proves):
		return fmt.Sprintf("grant %s needs a client and its secret or key", GrantClient)
	case (a.Grant == GrantAssertion) != (a.AssertionFile != ""):
		return fmt.Sprintf("grant %s needs an assertion, and no other takes one", GrantAssertion)
	case a.Exchange != nil && a.Grant != GrantAssertion:
		return fmt.Sprintf("exchange belongs to grant %s", GrantAssertion)
	case a.Secret != "" && a.KeyFile != "":
		return "client has a secret and a key; one of them is enough"
	case proves && a.Client == "":
		return "secret or key has no client: name the client"
	case (proves || a.AssertionFile != "") && a.issuer == nil:
		return "client proves who it is: name the issuer whose client it is, so that the proof is sent to nobody else"
	}
	return ""
}

func (o *Options) setsAuthorization() bool {
	for name := range o.Headers {
		if strings.EqualFold(name, "Authorization") {
			return true
		}
	}
	return false
}

// metadata reports whether the client's id is the URL of its metadata.
func (a *oauth) metadata() bool {
	u, err := url.Parse(a.Client)
	return err == nil && u.Scheme == "https" && u.Host != "" && len(u.Path) > 1
}

// people reports whether a person has to sign in.
func (s *Server) people() bool { return s.oauth != nil && s.oauth.Grant == GrantCode }

// loginOf returns an owner's access to the server, or nil if none is needed.
func (s *Server) loginOf(who owner) *login {
	if s.oauth == nil {
		return nil
	}
	session := who.session
	if !s.people() || s.opts.Per == PerWorker {
		session = ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.logins[session]
	if l == nil {
		for other := range s.logins {
			if len(s.logins) < maxMemory {
				break
			}
			s.hidden.forget(s.logins[other])
			delete(s.logins, other) // the vault has what it knew
		}
		l = &login{oauth: s.oauth, server: s, session: session, turn: make(chan struct{}, 1)}
		s.logins[session] = l
	}
	return l
}
