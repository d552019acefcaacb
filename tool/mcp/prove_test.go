//go:build unix

package mcp_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/tool/mcp"
)

// keyFile writes a private key as an operator would.
func keyFile(t *testing.T, key crypto.PrivateKey) string {
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "key.pem")
	require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}), 0o600))
	return path
}

func TestClientThatSigns(t *testing.T) {
	weak, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	p256, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	require.NoError(t, err)
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	for method, key := range map[string]crypto.Signer{"RS256": weak, "ES256": p256, "ES384": p384, "EdDSA": ed} {
		t.Run(method, func(t *testing.T) {
			g := newGuard(t, httpHandler(teller(), nil))
			seen := map[string]bool{}
			g.signed = func(r *http.Request) bool {
				var claims jwt.RegisteredClaims
				_, err := jwt.ParseWithClaims(r.FormValue("client_assertion"), &claims, func(*jwt.Token) (any, error) { return key.Public(), nil },
					jwt.WithValidMethods([]string{method}), jwt.WithAudience(g.issuer.URL), jwt.WithIssuer("robot"), jwt.WithSubject("robot"), jwt.WithExpirationRequired())
				once := !seen[claims.ID]
				seen[claims.ID] = true
				return err == nil && once && r.FormValue("client_id") == "robot" && r.FormValue("client_secret") == ""
			}
			o := robot(g)
			o.Secret, o.KeyFile = "", keyFile(t, key)
			r := reach(t, g.mcp.URL+"/mcp", mcp.Options{OAuth: o})
			r.ok(t, "result", "")
			g.revoke(true)
			r.ok(t, "result", "")
			require.Equal(t, []string{"client_credentials", "client_credentials"}, g.grants(), "signed anew each time")
		})
	}
}

// What a platform puts into a file is read each time, for it is renewed there.
func TestAssertionOfThePlatform(t *testing.T) {
	g := newGuard(t, httpHandler(teller(), nil))
	file := filepath.Join(t.TempDir(), "token")
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text+"\n"), 0o600)) }
	good := "the-first-assertion"
	g.signed = func(r *http.Request) bool { return r.FormValue("assertion") == good }
	r := reach(t, g.mcp.URL+"/mcp", mcp.Options{OAuth: &mcp.OAuth{Grant: mcp.GrantAssertion, AssertionFile: file, Issuer: g.issuer.URL}})

	write(good)
	r.ok(t, "result", "")
	g.revoke(true)
	good = "the-second-assertion"
	_, err := r.List(t.Context())
	require.ErrorContains(t, err, "the authorization server refused: invalid_grant")
	require.NotContains(t, err.Error()+r.log.String(), "the-first-assertion", "nor where the server says it again")
	require.Len(t, g.grants(), 2, "it is not tried twice")
	write(good)
	r.ok(t, "result", "")
	require.Zero(t, g.clients, "and no client is registered")
}

func TestFaultyProof(t *testing.T) {
	g := newGuard(t, httpHandler(teller(), nil))
	folder := t.TempDir()
	long, pipe := filepath.Join(folder, "long"), filepath.Join(folder, "pipe")
	require.NoError(t, os.WriteFile(long, []byte(strings.Repeat("x", 65<<10)), 0o600))
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for path, says := range map[string]string{
		filepath.Join(folder, "none"): "no such file", long: "has more than 65536 bytes", pipe: "is no file", os.DevNull: "is no file", "prove_test.go": "is not PEM",
	} {
		o := robot(g)
		o.Secret, o.KeyFile = "", path
		_, err := reach(t, g.mcp.URL+"/mcp", mcp.Options{OAuth: o}).List(t.Context())
		require.ErrorContains(t, err, says)
	}
	require.Empty(t, g.grants())
}
