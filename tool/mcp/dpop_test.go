//go:build unix

package mcp_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/tool/mcp"
)

// proofs are what an issuer and an MCP server look at that bind tokens to keys, each with a
// nonce of its own (RFC 9449).
type proofs struct {
	t *testing.T

	mu    sync.Mutex
	seen  map[string]bool   // ids
	keys  map[string]string // by token
	nonce string            // of the MCP server
}

func newProofs(t *testing.T) *proofs {
	return &proofs{t: t, seen: map[string]bool{}, keys: map[string]string{}, nonce: "first-nonce"}
}

// read is a request's proof, and the key that made it.
func (p *proofs) read(r *http.Request) (jwt.MapClaims, string, error) {
	var key string
	claims := jwt.MapClaims{}
	_, err := jwt.ParseWithClaims(r.Header.Get("DPoP"), claims, func(t *jwt.Token) (any, error) {
		k, _ := t.Header["jwk"].(map[string]any)
		if t.Header["typ"] != "dpop+jwt" || len(k) != 4 || k["crv"] != "P-256" {
			return nil, errors.New("not a proof")
		}
		x, _ := base64.RawURLEncoding.DecodeString(k["x"].(string))
		y, _ := base64.RawURLEncoding.DecodeString(k["y"].(string))
		key = string(x) + string(y)
		return ecdsa.ParseUncompressedPublicKey(elliptic.P256(), append([]byte{4}, key...))
	}, jwt.WithValidMethods([]string{"ES256"}), jwt.WithIssuedAt())
	if err != nil {
		return nil, "", err
	}
	id, _ := claims["jti"].(string)
	if p.seen[id] || claims["htm"] != r.Method || claims["htu"] != "http://"+r.Host+r.URL.Path {
		return nil, "", errors.New("a proof of another request")
	}
	p.seen[id] = true
	return claims, key, nil
}

// asks looks at a request for a token, and answers one that is wrong.
func (p *proofs) asks(w http.ResponseWriter, r *http.Request) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	claims, key, err := p.read(r)
	switch {
	case err != nil:
		reply(w, 400, map[string]string{"error": "invalid_dpop_proof", "error_description": err.Error()})
	case claims["nonce"] != "nonce-of-the-issuer":
		w.Header().Set("DPoP-Nonce", "nonce-of-the-issuer")
		reply(w, 400, map[string]string{"error": "use_dpop_nonce"})
	default:
		p.keys[r.Header.Get("DPoP")] = key
		return true
	}
	return false
}

// bind binds a token to the key of the request that it was got with.
func (p *proofs) bind(token string, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys[token] = p.keys[r.Header.Get("DPoP")]
}

// admits looks at a request to the MCP server, and answers one that is wrong.
func (p *proofs) admits(w http.ResponseWriter, r *http.Request, scheme, token string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	claims, key, err := p.read(r)
	sum := sha256.Sum256([]byte(token))
	w.Header().Set("DPoP-Nonce", p.nonce)
	switch {
	case err != nil, scheme != "DPoP", key != p.keys[token], claims["ath"] != base64.RawURLEncoding.EncodeToString(sum[:]):
		w.Header().Set("WWW-Authenticate", `DPoP error="invalid_token"`)
		reply(w, 401, map[string]string{"error": "invalid_token"})
	case claims["nonce"] != p.nonce:
		w.Header().Set("WWW-Authenticate", `DPoP error="use_dpop_nonce"`)
		reply(w, 401, map[string]string{"error": "use_dpop_nonce"})
	default:
		return true
	}
	return false
}

func (p *proofs) turn(nonce string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.nonce = nonce
}

func TestTokensThatAreBound(t *testing.T) {
	g := newGuard(t, httpHandler(teller(), nil))
	g.proofs = newProofs(t)
	vault := &chest{kept: map[string][]byte{}}
	r := reach(t, g.mcp.URL+"/mcp", mcp.Options{OAuth: &mcp.OAuth{Vault: vault}})
	ana := &visitor{t: t, r: r, session: "ana"}
	q := ana.asked("result")
	ana.answer(q, said(ana.browse(q)))
	text, _, err := ana.call("result")
	require.NoError(t, err, "with the nonce of each of the two")
	require.Contains(t, text, "DPoP [token]")
	require.Equal(t, []string{"authorization_code"}, g.grants(), "the code is used once")

	g.proofs.turn("second-nonce")
	_, _, err = ana.call("result")
	require.NoError(t, err, "a nonce may change")
	require.Empty(t, g.grants(), "and is no reason for another token")

	require.NoError(t, r.Close())
	g.revoke(false)
	later := &visitor{t: t, r: reach(t, g.mcp.URL+"/mcp", mcp.Options{OAuth: &mcp.OAuth{Vault: vault}}), session: "ana"}
	_, _, err = later.call("result")
	require.NoError(t, err, "another process has the key")
	require.Equal(t, []string{"refresh_token"}, g.grants())
	keys := map[string]bool{}
	for token, key := range g.proofs.keys {
		if strings.HasPrefix(token, "access-") {
			keys[key] = true
		}
	}
	require.Len(t, keys, 1, "a session has one key")
	g.silent(r.log.String(), text)
}
