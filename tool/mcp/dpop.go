package mcp

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// pass is what admits a request; the zero pass is none.
type pass struct {
	token string
	key   []byte // the key that the token is bound to (DPoP, RFC 9449); nil for a bearer token
}

// newKey returns a new key to bind tokens to: a private key in PKCS #8.
func newKey() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return x509.MarshalPKCS8PrivateKey(key)
}

// possession returns a proof, for one request, that the sender has the key. token is
// empty when a token is requested. nonce is empty if the server gave none.
func possession(raw []byte, method string, at *url.URL, token, nonce string) (string, error) {
	parsed, err := x509.ParsePKCS8PrivateKey(raw)
	if err != nil {
		return "", errors.New("the key that the token is bound to can't be read")
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return "", errors.New("the key that the token is bound to is of another kind")
	}
	point, err := key.PublicKey.Bytes()
	if err != nil {
		return "", err
	}
	text := base64.RawURLEncoding.EncodeToString
	claims := jwt.MapClaims{
		"jti": rand.Text(), "iat": time.Now().Unix(), "htm": method,
		// The proof covers the URL without its query, as RFC 9449 says.
		"htu": (&url.URL{Scheme: at.Scheme, Host: at.Host, Path: at.Path, RawPath: at.RawPath}).String(),
	}
	if token != "" {
		sum := sha256.Sum256([]byte(token))
		claims["ath"] = text(sum[:])
	}
	if nonce != "" {
		claims["nonce"] = nonce
	}
	proof := jwt.NewWithClaims(jwt.SigningMethodES256, claims)
	half := len(point) / 2 // of the point, without the byte that names its format
	proof.Header["typ"] = "dpop+jwt"
	proof.Header["jwk"] = map[string]string{"kty": "EC", "crv": "P-256", "x": text(point[1 : half+1]), "y": text(point[half+1:])}
	return proof.SignedString(key)
}

const headerNonce = "DPoP-Nonce"

// wantsNonce reports whether an MCP server wants the request again, with its nonce.
func wantsNonce(resp *http.Response) bool {
	if resp.StatusCode != http.StatusUnauthorized || resp.Header.Get(headerNonce) == "" {
		return false
	}
	challenges, _ := oauthex.ParseWWWAuthenticate(resp.Header.Values("WWW-Authenticate"))
	return slices.ContainsFunc(challenges, func(c oauthex.Challenge) bool {
		return c.Scheme == "dpop" && c.Params["error"] == "use_dpop_nonce"
	})
}

// binding requests tokens that are bound to a key.
type binding struct {
	base http.RoundTripper
	key  []byte
}

// RoundTrip implements [http.RoundTripper].
func (b binding) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.try(req, "")
	// Without a nonce from the server, a repetition would be refused again.
	if err != nil || resp.StatusCode < 400 || resp.StatusCode >= 500 || resp.Header.Get(headerNonce) == "" || req.GetBody == nil {
		return resp, err
	}
	// The body is read to find the error code, and put back for the caller.
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	resp.Body.Close()
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	if !bytes.Contains(body, []byte(`"use_dpop_nonce"`)) {
		// An authorization code works once. A request refused for another reason is not
		// repeated.
		return resp, nil
	}
	again := req.Clone(req.Context())
	if again.Body, err = req.GetBody(); err != nil {
		return nil, err
	}
	return b.try(again, resp.Header.Get(headerNonce))
}

func (b binding) try(req *http.Request, nonce string) (*http.Response, error) {
	proof, err := possession(b.key, req.Method, req.URL, "", nonce)
	if err != nil {
		return nil, err
	}
	req = req.Clone(req.Context())
	req.Header.Set("DPoP", proof)
	return b.base.RoundTrip(req)
}

// show adds the pass to a request to the MCP server, with the server's last nonce.
func (p pass) show(req *http.Request, nonce string) error {
	switch {
	case p.token == "":
		return nil
	case p.key == nil:
		req.Header.Set("Authorization", "Bearer "+p.token)
		return nil
	}
	proof, err := possession(p.key, req.Method, req.URL, p.token, nonce)
	req.Header.Set("Authorization", "DPoP "+p.token)
	req.Header.Set("DPoP", proof)
	return err
}
