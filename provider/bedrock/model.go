package bedrock

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go/encoding/httpbinding"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

const (
	defaultName = "bedrock"

	envKey     = "AWS_BEARER_TOKEN_BEDROCK"
	envBaseURL = "AWS_ENDPOINT_URL_BEDROCK_RUNTIME"
	envRegion  = "AWS_REGION"
)

// Options say how to reach Bedrock. The zero value, and nil, take everything from the
// environment and AWS's shared files, at the first call.
type Options struct {
	// Region is where the models are, "eu-central-1". Empty means that of AWS's default
	// chain: $AWS_REGION, or that of the profile.
	Region string

	// APIKey is a Bedrock API key, which is sent as it is. Empty means
	// $AWS_BEARER_TOKEN_BEDROCK, read by New, unless Credentials are set; if that is empty
	// too, requests are signed.
	APIKey string `json:"-"`

	// Credentials sign the requests. Nil means AWS's default chain.
	Credentials aws.CredentialsProvider `json:"-"`

	// BaseURL is where the API is: "https://vpce-1.bedrock-runtime.example". Empty means
	// $AWS_ENDPOINT_URL_BEDROCK_RUNTIME, or else the region's own.
	BaseURL string

	// HTTPClient makes the requests to models. Nil means a client of our own, which has no
	// timeout: the context of a call has one. Credentials are fetched by the SDK's.
	HTTPClient *http.Client `json:"-"`

	// Name is what the provider is called in full names of models, the part before the
	// first slash. Empty means "bedrock".
	Name string
}

func (o *Options) apiKey() string {
	if o.APIKey != "" || o.Credentials != nil {
		return o.APIKey
	}
	return strings.TrimSpace(os.Getenv(envKey))
}

func (o *Options) name() string { return cmp.Or(o.Name, defaultName) }

func (o *Options) baseURL() string { return cmp.Or(o.BaseURL, os.Getenv(envBaseURL)) }

// String shows the options without the key.
func (o Options) String() string {
	return fmt.Sprintf("bedrock.Options{Name: %q, Region: %q, BaseURL: %q}", o.name(), o.Region, model.RedactedURL(o.baseURL()))
}

// GoString shows the options without the key.
func (o Options) GoString() string { return o.String() }

// Model is all models of a region. It may be used from many goroutines.
type Model struct {
	name   string
	client *http.Client
	door   *door
}

var _ model.Model = (*Model)(nil)

// New makes a Model. It makes no request and reads no file: what is missing is told by
// the first call, so that a worker that never asks Bedrock needs no credentials.
func New(o *Options) *Model {
	if o == nil {
		o = &Options{}
	}
	return &Model{name: o.name(), client: model.HTTPClient(o.HTTPClient), door: newDoor(o)}
}

// Check reports why no model could be asked: there is no region, or there are no
// credentials. It fetches credentials as a call would, and asks no model.
func (m *Model) Check(ctx context.Context) error {
	_, err := m.door.open(ctx)
	return err
}

// Generate asks once for a reply and streams it.
func (m *Model) Generate(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("asking %s: %w", m.name, err)
	}
	a, err := m.door.open(ctx)
	if err != nil {
		return nil, err
	}
	c := call{m.name, a}
	res, err := c.send(ctx, m.client, req)
	if res != nil {
		defer res.Body.Close()
	}
	var fault *agent.Error
	switch {
	case ctx.Err() != nil:
		return nil, c.Cancelled(ctx.Err())
	case errors.As(err, &fault):
		return nil, fault
	case err != nil:
		return nil, c.Unreachable(err, "that the worker can reach it, the region, and "+envBaseURL)
	case res.StatusCode != http.StatusOK:
		return nil, c.refused(res)
	}
	reply, err := c.read(ctx, res, emit)
	if reply != nil {
		reply.Maker = m.name + "/" + req.Model
	}
	return reply, err
}

// call is one question to Bedrock, with the credentials that it has.
type call struct {
	name string
	*access
}

// send makes the request.
func (c call) send(ctx context.Context, client *http.Client, req *model.Request) (*http.Response, error) {
	asked, err := c.request(req)
	var body []byte
	if err == nil {
		body, err = json.Marshal(asked)
	}
	var r *http.Request
	if err == nil {
		r, err = http.NewRequestWithContext(ctx, http.MethodPost, c.url(req.Model), bytes.NewReader(body))
	}
	if err != nil {
		return nil, c.Faultf(agent.FaultBadRequest, 0, 0, "%s was not asked: %v", c.name, err)
	}
	r.Header.Set("Content-Type", "application/json")
	if err := c.sign(r, body); err != nil {
		return nil, c.Faultf(agent.FaultAuth, 0, 0, "%s was not asked: the request can't be signed: %v", c.name, err)
	}
	return client.Do(r)
}

// url is where a model is asked. Its id, which may be an ARN, is one element of the path.
func (c call) url(id string) string {
	return strings.TrimSuffix(c.base, "/") + "/model/" + httpbinding.EscapePath(id, true) + "/converse-stream"
}
