package bedrock

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

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

// Model calls all models of one region. It is safe for concurrent use. Make one with
// [New].
type Model struct {
	name      string
	client    *http.Client
	connector *connector
	hour      bool // what is written to the cache lives for an hour
	tier      string
	cites     bool // documents may be cited
	// extra adds the options' Extra to a request before it is signed.
	extra func(http.Header, []byte) ([]byte, error)
	wrong error // of the options
}

var _ model.Model = (*Model)(nil)

// New returns a Model; o may be nil. It sends nothing and reads no file. If something is
// missing, the first call fails: a worker that never calls Bedrock needs no credentials.
func New(o *Options) *Model {
	if o == nil {
		o = &Options{}
	}
	return &Model{
		name: o.name(), client: model.HTTPClient(o.HTTPClient), connector: newConnector(o),
		hour: o.CacheTTL == time.Hour, tier: o.ServiceTier, cites: o.Citations, extra: o.Extra.Apply, wrong: o.Check(),
	}
}

// Check returns why no model can be called: there is no region, or there are no
// credentials. It fetches credentials like a call, and calls no model.
func (m *Model) Check(ctx context.Context) error {
	_, err := m.connector.open(ctx)
	return err
}

// Generate implements [model.Model]. It calls the model once and streams its reply.
func (m *Model) Generate(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
	// A call whose context has ended must not fetch credentials.
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("asking %s: %w", m.name, err)
	}
	a, err := m.connector.open(ctx)
	if err != nil {
		return nil, err
	}
	c := call{m, a}
	if m.wrong != nil {
		return nil, c.Faultf(agent.FaultBadRequest, 0, 0, "%s: %v", m.name, m.wrong)
	}
	files := filesOf(req.Messages, req.Files, m.cites && strings.HasPrefix(family(req.Model), claudes) && len(req.Output) == 0)
	res, err := c.send(ctx, req, files)
	if res != nil {
		defer res.Body.Close()
	}
	var fault *agent.Error
	// First: a cancelled call also has an error.
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
	reply, err := c.read(ctx, res, newReply(emit, files.shown))
	if reply != nil {
		reply.ProviderModel = m.name + "/" + req.Model
	}
	return reply, err
}

// call is one model call, with its credentials.
type call struct {
	*Model
	*access
}

// send sends the request.
func (c call) send(ctx context.Context, req *model.Request, files *shownFiles) (*http.Response, error) {
	asked, err := c.request(req, files)
	var body []byte
	if err == nil {
		body, err = json.Marshal(asked)
	}
	var r *http.Request
	header := http.Header{"Content-Type": {"application/json"}}
	if err == nil {
		// Before the signature, which covers headers and body.
		body, err = c.extra(header, body)
	}
	if err == nil {
		r, err = http.NewRequestWithContext(ctx, http.MethodPost, c.url(req.Model), bytes.NewReader(body))
	}
	if err != nil {
		return nil, c.Faultf(agent.FaultBadRequest, 0, 0, "%s was not called: %v", c.name, err)
	}
	r.Header = header
	if err := c.sign(r, body); err != nil {
		return nil, c.Faultf(agent.FaultAuth, 0, 0, "%s was not called: the request can't be signed: %v", c.name, err)
	}
	return c.client.Do(r)
}

// url returns the address of a model. Its id, which may be an ARN, is one element of the
// path.
func (c call) url(id string) string {
	return strings.TrimSuffix(c.base, "/") + "/model/" + httpbinding.EscapePath(id, true) + "/converse-stream"
}
