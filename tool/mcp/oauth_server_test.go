package mcp_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// guard is an MCP server that wants tokens, and the authorization server that gives them.
type guard struct {
	t      *testing.T
	mcp    *httptest.Server
	issuer *httptest.Server

	proofs *proofs // of keys that tokens are bound to; nil if who bears them may use them

	mu       sync.Mutex
	valid    map[string]bool          // access tokens
	refresh  map[string]bool          // refresh tokens
	codes    map[string]string        // challenges by code
	given    []string                 // every secret that was given out
	asked    []string                 // grants at the token endpoint
	clients  int                      // that registered
	lifetime int                      // of access tokens, in seconds; 0 leaves it out
	lacks    string                   // a scope that the server wants beside
	signed   func(*http.Request) bool // whether a request is proven by a key or an assertion; nil if a secret does
}

func newGuard(t *testing.T, h http.Handler) *guard {
	g := &guard{t: t, valid: map[string]bool{}, refresh: map[string]bool{}, codes: map[string]string{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, 200, map[string]any{"resource": g.mcp.URL + "/mcp", "authorization_servers": []string{g.issuer.URL}, "scopes_supported": []string{"read"}})
	})
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		ok, lacks := g.valid[token], g.lacks
		g.mu.Unlock()
		switch {
		case g.proofs != nil && ok:
			if g.proofs.admits(w, r, scheme, token) {
				h.ServeHTTP(w, r)
			}
		case !ok:
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+g.mcp.URL+`/.well-known/oauth-protected-resource/mcp"`)
			reply(w, 401, map[string]string{"error": "invalid_token"})
		case lacks != "":
			w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+lacks+`"`)
			reply(w, 403, map[string]string{"error": "insufficient_scope"})
		default:
			h.ServeHTTP(w, r)
		}
	})
	g.mcp = serveHTTP(t, mux)
	as := http.NewServeMux()
	as.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		var algorithms []string
		if g.proofs != nil {
			algorithms = []string{"RS256", "ES256"}
		}
		reply(w, 200, map[string]any{
			"dpop_signing_alg_values_supported": algorithms,
			"issuer":                            g.issuer.URL, "authorization_endpoint": g.issuer.URL + "/authorize", "token_endpoint": g.issuer.URL + "/token",
			"registration_endpoint": g.issuer.URL + "/register", "code_challenge_methods_supported": []string{"S256"},
			"token_endpoint_auth_methods_supported": []string{"client_secret_basic"},
		})
	})
	as.HandleFunc("/register", func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.clients++
		reply(w, 201, map[string]any{"client_id": "registered", "client_secret": g.secret("client-secret"), "token_endpoint_auth_method": "client_secret_basic"})
	})
	as.HandleFunc("/authorize", g.authorize)
	as.HandleFunc("/token", g.token)
	g.issuer = serveHTTP(t, as)
	return g
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// secret makes one. The caller has the lock.
func (g *guard) secret(kind string) string {
	s := fmt.Sprintf("%s-%d-of-the-issuer", kind, len(g.given))
	g.given = append(g.given, s)
	return s
}

func (g *guard) authorize(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	q := r.URL.Query()
	code := fmt.Sprint("code-", len(g.codes))
	g.codes[code] = q.Get("code_challenge")
	if q.Get("code_challenge_method") != "S256" || q.Get("resource") != g.mcp.URL+"/mcp" {
		http.Error(w, "no PKCE, or no resource", 400)
		return
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {code}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
}

func (g *guard) token(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	grant := r.FormValue("grant_type")
	if g.proofs != nil && !g.proofs.asks(w, r) {
		return
	}
	g.asked = append(g.asked, grant)
	id, password, _ := r.BasicAuth()
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	ok := r.FormValue("resource") == g.mcp.URL+"/mcp"
	switch {
	case g.signed != nil:
		ok = ok && g.signed(r)
	case grant == "client_credentials":
		ok = ok && id == "robot" && password == clientSecret
	case grant == "authorization_code":
		ok = ok && id == "registered" && g.codes[r.FormValue("code")] == base64.RawURLEncoding.EncodeToString(sum[:])
		delete(g.codes, r.FormValue("code"))
	case grant == "refresh_token":
		ok = ok && g.refresh[r.FormValue("refresh_token")]
		delete(g.refresh, r.FormValue("refresh_token"))
	}
	if !ok {
		reply(w, 400, map[string]string{"error": "invalid_grant", "error_description": "you sent " + r.Form.Encode() + password})
		return
	}
	access := g.secret("access")
	g.valid[access] = true
	out := map[string]any{"access_token": access, "token_type": "Bearer"}
	if g.proofs != nil {
		out["token_type"] = "DPoP"
		g.proofs.bind(access, r)
	}
	if g.lifetime != 0 {
		out["expires_in"] = g.lifetime
	}
	if grant == "authorization_code" || grant == "refresh_token" {
		fresh := g.secret("refresh")
		g.refresh[fresh] = true
		out["refresh_token"] = fresh
	}
	reply(w, 200, out)
}

const clientSecret = "s3cret-of-the-robot"

// revoke takes access tokens back, and what renews them if all is set.
func (g *guard) revoke(all bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(g.valid)
	if all {
		clear(g.refresh)
	}
}

// grants are what the token endpoint was asked for, since the last look.
func (g *guard) grants() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	asked := g.asked
	g.asked = nil
	return asked
}

// silent fails the test where a text has a secret that was given out.
func (g *guard) silent(texts ...string) {
	g.t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range append(g.given, clientSecret) {
		for _, text := range texts {
			if strings.Contains(text, s) {
				g.t.Errorf("%s is in %s", s, text)
			}
		}
	}
}
