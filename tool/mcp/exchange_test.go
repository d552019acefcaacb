package mcp_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/tool/mcp"
)

// provider is a company's identity provider. It knows one person and one client.
type provider struct {
	*httptest.Server
	mu    sync.Mutex
	asked []url.Values
	kind  string // of the token that it gives
}

const (
	idToken     = "the-id-token-of-ana"
	grantOfAna  = "what-the-company-grants-ana"
	idpSecret   = "s3cret-at-the-provider"
	kindOfGrant = "urn:ietf:params:oauth:token-type:id-jag"
)

func newProvider(t *testing.T) *provider {
	p := &provider{kind: kindOfGrant}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		_ = r.ParseForm()
		p.asked = append(p.asked, r.PostForm)
		id, secret, _ := r.BasicAuth()
		if id != "runtime" || secret != idpSecret || r.FormValue("subject_token") != idToken {
			reply(w, 400, map[string]string{"error": "access_denied", "error_description": "you sent " + r.FormValue("subject_token") + secret})
			return
		}
		reply(w, 200, map[string]string{"access_token": grantOfAna, "issued_token_type": p.kind, "token_type": "N_A"})
	}))
	t.Cleanup(p.Close)
	return p
}

// A company's identity provider says who uses which server: for a person's ID token it gives
// what that server's authorization server takes, and nobody signs in there.
func TestCompanyThatGrants(t *testing.T) {
	g, p := newGuard(t, httpHandler(teller(), nil)), newProvider(t)
	g.signed = func(r *http.Request) bool { return r.FormValue("assertion") == grantOfAna }
	file := filepath.Join(t.TempDir(), "token")
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text+"\n"), 0o600)) }
	r := reach(t, g.mcp.URL+"/mcp", mcp.Options{Env: map[string]string{"IDP": idpSecret}, OAuth: &mcp.OAuth{
		Grant: mcp.GrantAssertion, AssertionFile: file, Issuer: g.issuer.URL, Exchange: &mcp.Exchange{URL: p.URL + "/token", Client: "runtime", Secret: "${IDP}"},
	}})

	write("the-id-token-of-mallory")
	_, err := r.List(t.Context())
	require.ErrorContains(t, err, "the identity provider "+p.Listener.Addr().String()+" refused: access_denied")
	require.Empty(t, g.grants(), "the authorization server is not asked")
	require.NotContains(t, err.Error(), "mallory", "where the provider says it again")
	require.NotContains(t, err.Error(), idpSecret)
	write(idToken)
	p.kind = "urn:ietf:params:oauth:token-type:access_token"
	_, err = r.List(t.Context())
	require.ErrorContains(t, err, "and not "+kindOfGrant)
	require.Empty(t, g.grants(), "nor shown a token of another kind")
	p.kind = kindOfGrant
	r.ok(t, "result", "")
	require.Equal(t, []string{"urn:ietf:params:oauth:grant-type:jwt-bearer"}, g.grants())
	require.Equal(t, url.Values{
		"grant_type": {"urn:ietf:params:oauth:grant-type:token-exchange"}, "requested_token_type": {kindOfGrant}, "scope": {"read"},
		"subject_token": {idToken}, "subject_token_type": {"urn:ietf:params:oauth:token-type:id_token"},
		"audience": {g.issuer.URL}, "resource": {g.mcp.URL + "/mcp"},
	}, p.asked[len(p.asked)-1])

	for _, secret := range []string{"the-id-token-of-mallory", idToken, grantOfAna, idpSecret} {
		require.NotContains(t, r.log.String(), secret)
	}
}

func TestFaultyExchange(t *testing.T) {
	for want, o := range map[string]mcp.OAuth{
		"exchange belongs to grant jwt_bearer":  {Exchange: &mcp.Exchange{URL: "https://idp.example.com", Client: "c"}},
		"OAuth exchange names no client":        {Grant: mcp.GrantAssertion, AssertionFile: "t", Issuer: "https://i.example.com", Exchange: &mcp.Exchange{URL: "https://idp.example.com"}},
		"OAuth exchange: its URL is http://":    {Grant: mcp.GrantAssertion, AssertionFile: "t", Issuer: "https://i.example.com", Exchange: &mcp.Exchange{URL: "http://idp.example.com", Client: "c"}},
		"names the variable NONE, which has no": {Grant: mcp.GrantAssertion, AssertionFile: "t", Issuer: "https://i.example.com", Exchange: &mcp.Exchange{URL: "https://idp.example.com", Client: "c", Secret: "${NONE}"}},
	} {
		require.ErrorContains(t, mcp.NewHTTP("x", "https://x.example.com/mcp", &mcp.Options{OAuth: &o}).Err(), want)
	}
}
