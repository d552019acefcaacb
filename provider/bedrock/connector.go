package bedrock

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// service is the name of the service in signatures.
const service = "bedrock"

// fetchTime limits one request for credentials, because all calls wait for the same one.
const fetchTime = 30 * time.Second

// connector has Bedrock's address and the credentials. AWS's configuration is read once, by
// the first call that needs it.
type connector struct {
	name, base string
	signer     *v4.Signer
	// bearer adds the API key to a request; nil if there is none. Only it and endpoint
	// know the key, so printing a connector shows no secret.
	bearer   func(r *http.Request, body []byte) error
	endpoint func(base string) *model.Endpoint

	mu          sync.Mutex
	region      string
	credentials aws.CredentialsProvider // nil until they are known
}

func newConnector(o *Options) *connector {
	// The key stays in closures: a field could be printed.
	key := o.apiKey()
	d := &connector{name: o.name(), base: o.baseURL(), region: o.Region, signer: v4.NewSigner()}
	d.endpoint = func(base string) *model.Endpoint {
		return model.NewEndpoint(d.name, base, key).Hiding(o.Extra.Secrets...)
	}
	if key != "" {
		d.bearer = func(r *http.Request, _ []byte) error {
			r.Header.Set("Authorization", "Bearer "+key)
			return nil
		}
	}
	if o.Credentials != nil {
		// Cached: each call would fetch them otherwise.
		d.credentials = aws.NewCredentialsCache(o.Credentials)
	}
	return d
}

// access is the address and the credentials of one call: the next call may have others.
// Its endpoint removes the secrets from faults.
type access struct {
	*model.Endpoint
	base string
	sign func(r *http.Request, body []byte) error
	// forget makes the next call fetch its credentials again.
	forget func()
}

// open returns the access for a call.
func (d *connector) open(ctx context.Context) (*access, error) {
	region, credentials, err := d.configured(ctx)
	base := d.base
	// The region decides the address unless one is named.
	if base == "" && region != "" {
		base = regional(region)
	}
	e := d.endpoint(base)
	switch {
	// First: reading the configuration also fails when the context has ended.
	case ctx.Err() != nil:
		return nil, e.Cancelled(ctx.Err())
	case err != nil:
		return nil, e.Faultf(agent.FaultAuth, 0, 0, "%s: AWS's configuration can't be read: %v", d.name, err)
	// A key needs no region if the address is known; a signature always does.
	case region == "" && (base == "" || d.bearer == nil):
		return nil, e.Faultf(agent.FaultBadRequest, 0, 0, "%s: there is no region; set %s in the worker's environment, or region for the model", d.name, envRegion)
	}
	if wrong := e.WrongURL("https://host", envBaseURL); wrong != nil {
		return nil, wrong
	}
	a := &access{Endpoint: e, base: base, forget: func() {}}
	if d.bearer != nil {
		a.sign = d.bearer
		return a, nil
	}
	return d.signed(ctx, a, region, credentials)
}

// signed adds the present credentials to an access.
func (d *connector) signed(ctx context.Context, a *access, region string, from aws.CredentialsProvider) (*access, error) {
	creds, err := from.Retrieve(ctx)
	switch {
	case ctx.Err() != nil:
		return nil, a.Cancelled(ctx.Err())
	case err != nil:
		return nil, a.Faultf(kindOfChain(err), 0, 0, "%s: there are no AWS credentials; check the worker's environment and role, or set %s: %v", d.name, envKey, err)
	}
	// The keys of this call are removed from its faults.
	a.Endpoint = a.Hiding(creds.SecretAccessKey, creds.SessionToken)
	if cache, ok := from.(*aws.CredentialsCache); ok {
		a.forget = cache.Invalidate
	}
	// The digest covers the body as it is sent, so nothing may change it afterwards.
	a.sign = func(r *http.Request, body []byte) error {
		sum := sha256.Sum256(body)
		return d.signer.SignHTTP(r.Context(), creds, r, hex.EncodeToString(sum[:]), service, region, time.Now())
	}
	return a, nil
}

// kindOfChain returns the kind of a failure to get credentials. A failing server of AWS's
// may work again later; everything else needs a person.
func kindOfChain(err error) agent.FaultKind {
	if res, ok := errors.AsType[interface {
		error
		HTTPStatusCode() int
	}](err); ok && (res.HTTPStatusCode() >= 500 || res.HTTPStatusCode() == http.StatusTooManyRequests) {
		return agent.FaultTransient
	}
	return agent.FaultAuth
}

// configured returns the region and the source of credentials. If they could not be read,
// the next call tries again: somebody may have corrected them.
func (d *connector) configured(ctx context.Context) (string, aws.CredentialsProvider, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	// With a key nothing else is read: shared files may be missing or broken.
	if d.region != "" && (d.bearer != nil || d.credentials != nil) {
		return d.region, d.credentials, nil
	}
	cfg, err := config.LoadDefaultConfig(ctx, config.WithHTTPClient(awshttp.NewBuildableClient().WithTimeout(fetchTime)))
	if err != nil {
		return d.region, d.credentials, err
	}
	if d.region == "" {
		d.region = cfg.Region
	}
	if d.credentials == nil {
		d.credentials = cfg.Credentials
	}
	return d.region, d.credentials, nil
}

// domains are the domains of AWS's partitions, by the beginning of their regions' names.
var domains = []struct{ begins, domain string }{
	{"cn-", "amazonaws.com.cn"}, {"eusc-", "amazonaws.eu"}, {"us-isof-", "csp.hci.ic.gov"}, {"us-isob-", "sc2s.sgov.gov"}, {"us-iso-", "c2s.ic.gov"},
}

// regional returns the address of a region's models.
func regional(region string) string {
	domain := "amazonaws.com"
	for _, d := range domains {
		if strings.HasPrefix(region, d.begins) {
			domain = d.domain
			break
		}
	}
	return "https://bedrock-runtime." + region + "." + domain
}
