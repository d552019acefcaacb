package azure

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// scope returns the scope of tokens: Azure's AI services, in the endpoint's cloud.
func (o *Options) scope() string {
	if o.Scope != "" {
		return o.Scope
	}
	domain := "azure.com"
	// Azure's government cloud has its own tokens.
	if u, err := url.Parse(o.endpoint()); err == nil && strings.HasSuffix(u.Hostname(), ".azure.us") {
		domain = "azure.us"
	}
	return "https://cognitiveservices." + domain + "/.default"
}

// entra returns tokens of Entra. The SDK caches and renews them.
type entra struct {
	name, scope string

	mu         sync.Mutex
	credential azcore.TokenCredential // nil until it is set up
}

func newEntra(name, scope string, c azcore.TokenCredential) *entra {
	return &entra{name: name, scope: scope, credential: c}
}

// token is a model.SignIn.
func (e *entra) token(ctx context.Context) (string, error) {
	c, err := e.chain()
	var token azcore.AccessToken
	if err == nil {
		token, err = c.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{e.scope}})
	}
	if err != nil {
		// The SDK's errors have many lines.
		message := strings.Join(strings.Fields(err.Error()), " ")
		return "", model.Fault(kindOf(err), 0, 0, e.name+": signing in to Entra failed; check the worker's identity, or set "+envKey+": "+message)
	}
	return token.Token, nil
}

// chain returns the default chain. If it could not be set up, the next call tries again.
func (e *entra) chain() (azcore.TokenCredential, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.credential != nil {
		return e.credential, nil
	}
	// Not in New: the chain reads files and variables of the worker.
	c, err := azidentity.NewDefaultAzureCredential(nil)
	if err != nil {
		return nil, err
	}
	e.credential = c
	return c, nil
}

// kindOf returns the kind of a failure to sign in. A failing server of Entra's may work
// again later; everything else needs a person.
func kindOf(err error) agent.FaultKind {
	var failed *azidentity.AuthenticationFailedError
	var res *http.Response
	if errors.As(err, &failed) {
		res = failed.RawResponse
	}
	// Managed identities fail with this type instead.
	if answered, ok := errors.AsType[*azcore.ResponseError](err); ok && res == nil {
		res = answered.RawResponse
	}
	if res != nil && (res.StatusCode >= 500 || res.StatusCode == http.StatusTooManyRequests) {
		return agent.FaultTransient
	}
	return agent.FaultAuth
}
