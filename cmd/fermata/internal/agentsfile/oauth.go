package agentsfile

import (
	"maps"
	"slices"

	"github.com/fermata-agents/fermata/tool/mcp"
)

// oauthEntry is how the tokens of a server are got; see [mcp.OAuth].
type oauthEntry struct {
	Grant  mcp.Grant `json:"grant"`
	Client string    `json:"client"`
	// Secret is a variable of this process, "${NAME}".
	Secret string `json:"secret"`
	// Key and Assertion are files, from the agents file's folder.
	Key       string `json:"key"`
	Assertion string `json:"assertion"`
	Issuer    string `json:"issuer"`
	Redirect  string `json:"redirect"`
	// Exchange is of an identity provider; see [mcp.Exchange].
	Exchange *exchangeEntry `json:"exchange"`
}

type exchangeEntry struct {
	URL    string `json:"url"`
	Client string `json:"client"`
	Secret string `json:"secret"` // as above
}

// secrets are the variables that an entry names as secrets, by what they are.
func (o *oauthEntry) secrets() map[string]string {
	secrets := map[string]string{"oauth.secret": o.Secret}
	if o.Exchange != nil {
		secrets["oauth.exchange.secret"] = o.Exchange.Secret
	}
	return secrets
}

// plainSecret names a secret that stands in the file; empty if none does.
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

// options are as the server wants them; nil if there are none.
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
