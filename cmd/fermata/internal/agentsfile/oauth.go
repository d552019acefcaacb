package agentsfile

import (
	"maps"
	"slices"

	"github.com/fermata-agents/fermata/tool/mcp"
)

// oauthEntry is how the worker gets the tokens for an MCP server with a URL.
type oauthEntry struct {
	// Grant is how a token is got: a person signs in, or the worker does by itself.
	Grant mcp.Grant `json:"grant" default:"authorization_code"`
	// Client is the client's id, or the https:// URL of its metadata; empty registers a client.
	Client string `json:"client"`
	// Secret is the client's secret, as a variable of the worker's environment, "${NAME}".
	Secret string `json:"secret"`
	// Key is a file with the client's private key (PEM, PKCS #8), relative to the agents file.
	// The client signs with it instead of sending a secret.
	Key string `json:"key"`
	// Assertion is a file with a signed token (JWT) that the platform renews, relative to the
	// agents file. It is for the grant jwt_bearer.
	Assertion string `json:"assertion"`
	// Issuer is the URL of the authorization server; empty means the one that the MCP server
	// names. It is required with a secret, a key or an assertion.
	Issuer string `json:"issuer"`
	// Redirect is the address at which the browser arrives after a sign-in.
	Redirect string `json:"redirect" default:"http://127.0.0.1:8917/callback"`
	// Exchange is the identity provider that gives an assertion for the ID token of a person;
	// nil sends the assertion itself.
	Exchange *exchangeEntry `json:"exchange"`
}

// exchangeEntry is an identity provider that exchanges the ID token of a person for an
// assertion.
type exchangeEntry struct {
	// URL is the provider's token endpoint.
	URL string `json:"url"`
	// Client is the client's id at the provider.
	Client string `json:"client"`
	// Secret is the client's secret, as a variable of the worker's environment, "${NAME}".
	Secret string `json:"secret"`
}

// secrets returns an entry's secrets by their field.
func (o *oauthEntry) secrets() map[string]string {
	secrets := map[string]string{"oauth.secret": o.Secret}
	if o.Exchange != nil {
		secrets["oauth.exchange.secret"] = o.Exchange.Secret
	}
	return secrets
}

// plainSecret returns the field of a secret that is written in the file; empty if there
// is none.
func (e serverEntry) plainSecret() string {
	if e.OAuth == nil {
		return ""
	}
	secrets := e.OAuth.secrets()
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		if secrets[name] != "" && len(mcp.Variables(secrets[name])) == 0 {
			return name
		}
	}
	return ""
}

// options returns the server's options; nil if there are none.
func (o *oauthEntry) options(vault mcp.Vault) *mcp.OAuth {
	if o == nil {
		return nil
	}
	out := &mcp.OAuth{
		Grant: o.Grant, Client: o.Client, Secret: o.Secret, KeyFile: o.Key, AssertionFile: o.Assertion,
		Issuer: o.Issuer, Redirect: o.Redirect, Vault: vault,
	}
	if x := o.Exchange; x != nil {
		out.Exchange = &mcp.Exchange{URL: x.URL, Client: x.Client, Secret: x.Secret}
	}
	return out
}
