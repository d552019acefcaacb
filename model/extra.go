package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
)

// Extra is what requests carry beside what the adapter writes: headers and body fields
// that a gateway or your own server needs. It adds and never replaces. The zero value
// adds nothing. Printing it shows only names.
type Extra struct {
	// Headers are values by header name.
	Headers map[string]string `json:"-"`
	// Body are fields of the body, as encoding/json encodes them. Fields of an object are
	// merged into the object that the adapter writes.
	Body map[string]any `json:"-"`
	// Secrets are the parts of the values above that no message may show.
	Secrets []string `json:"-"`
}

// maxExtra is the largest size of an Extra's headers and body together, in bytes.
const maxExtra = 64 << 10

var headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

// ownHeaders belong to adapters, their SDKs, the connection, or to signing in.
var (
	ownHeaders = []string{
		"accept", "accept-encoding", "anthropic-version", "api-key", "authorization", "connection", "content-encoding", "content-length", "content-type",
		"cookie", "expect", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "user-agent", "x-api-key", "x-goog-api-key",
	}
	ownPrefixes = []string{"proxy-", "x-amz-", "x-stainless-"}
)

// Check returns an [agent.CodeInvalidInput] error for what can't be sent, or what the
// adapter writes itself. own are the paths of the adapter's fields in the body, "stream"
// or "text.format". The error's path is the wrong field, "headers.NAME" or "body.PATH".
func (x Extra) Check(own ...string) error {
	size := 0
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(x.Headers)) {
		value, key := x.Headers[name], strings.ToLower(name)
		size += len(name) + len(value)
		at := "headers." + name
		switch {
		case !headerName.MatchString(name):
			return refused(at, "%q is not the name of a header", name)
		case seen[key]:
			return refused(at, "is given twice")
		case slices.Contains(ownHeaders, key) || slices.ContainsFunc(ownPrefixes, func(p string) bool { return strings.HasPrefix(key, p) }):
			return refused(at, "is set by the adapter or by the connection; for keys there is a separate field")
		case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
			return refused(at, "has a control character in its value")
		}
		seen[key] = true
	}
	if err := taken(x.Body, "", own); err != nil {
		return err
	}
	body, err := json.Marshal(x.Body)
	if err != nil {
		return refused("body", "is not JSON: %v", err)
	}
	if size += len(body); size > maxExtra {
		return refused("body", "and headers have %d bytes together; %d is the most", size, maxExtra)
	}
	return nil
}

func refused(at, format string, args ...any) error {
	return agent.Errorf(agent.CodeInvalidInput, "%s %s", at, fmt.Sprintf(format, args...)).WithPath(at)
}

// taken returns an error if the object at a path has a field that the adapter writes.
func taken(object map[string]any, above string, own []string) error {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		path := above + name
		inner, isObject := object[name].(map[string]any)
		if slices.Contains(own, path) {
			return refused("body."+path, "is written by the adapter itself")
		}
		if !slices.ContainsFunc(own, func(o string) bool { return strings.HasPrefix(o, path+".") }) {
			continue
		}
		if !isObject {
			return refused("body."+path, "must be an object, whose fields join those that the adapter writes")
		}
		if err := taken(inner, path+".", own); err != nil {
			return err
		}
	}
	return nil
}

// Apply adds the headers to h, and returns the body with the fields. It returns an error
// if the request has one of them already. It is for adapters that sign their requests;
// others use [Extra.Client].
func (x Extra) Apply(h http.Header, body []byte) ([]byte, error) {
	for name, value := range x.Headers {
		if _, there := h[http.CanonicalHeaderKey(name)]; there {
			return nil, fmt.Errorf("the request has a header %s of its own", name)
		}
		h.Set(name, value)
	}
	if len(x.Body) == 0 {
		return body, nil
	}
	return merged(body, x.Body, "")
}

// merged returns an object with the fields of another one added.
func merged(object []byte, more map[string]any, above string) ([]byte, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(object, &fields); err != nil || fields == nil {
		return nil, fmt.Errorf("%s is not an object in the request", strings.TrimSuffix("the body."+above, "."))
	}
	for name, value := range more {
		was, there := fields[name]
		inner, isObject := value.(map[string]any)
		var err error
		// What the adapter wrote is never replaced.
		switch {
		case there && isObject:
			fields[name], err = merged(was, inner, above+name+".")
		case there:
			err = fmt.Errorf("the request has a field %s%s of its own", above, name)
		default:
			fields[name], err = json.Marshal(value)
		}
		if err != nil {
			return nil, err
		}
	}
	return json.Marshal(fields)
}

// Client returns [HTTPClient] of base whose requests carry x. It does not follow
// redirects, because what is added is meant for one address.
func (x Extra) Client(base *http.Client) *http.Client {
	c := HTTPClient(base)
	if len(x.Headers) > 0 || len(x.Body) > 0 {
		c.Transport = &carrier{add: x.Apply, next: c.Transport}
	}
	return c
}

// carrier adds an Extra to requests. It holds only a function, so printing a client shows
// no value.
type carrier struct {
	add  func(http.Header, []byte) ([]byte, error)
	next http.RoundTripper // nil means Go's own
}

// RoundTrip adds x to the request, and sends it.
func (c *carrier) RoundTrip(r *http.Request) (*http.Response, error) {
	own, err := c.carry(r)
	if r.Body != nil {
		_ = r.Body.Close() // it was read, or is not sent
	}
	if err != nil {
		return nil, Fault(agent.FaultBadRequest, 0, 0, "the model's extra headers and body can't be added: "+err.Error())
	}
	next := c.next
	if next == nil {
		next = http.DefaultTransport
	}
	return next.RoundTrip(own)
}

func (c *carrier) carry(r *http.Request) (*http.Request, error) {
	// Set only after a redirect.
	if r.Response != nil {
		return nil, errors.New("the server redirects to another address")
	}
	// A RoundTripper must not change the caller's request.
	own := r.Clone(r.Context())
	var body []byte
	var err error
	if r.Body != nil {
		body, err = io.ReadAll(r.Body)
	}
	if err == nil {
		body, err = c.add(own.Header, body)
	}
	if r.Body == nil {
		return own, err
	}
	own.Body, own.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	own.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return own, err
}

// String returns the names of headers and fields, and no values.
func (x Extra) String() string {
	return fmt.Sprintf("model.Extra{Headers: %q, Body: %q}", slices.Sorted(maps.Keys(x.Headers)), slices.Sorted(maps.Keys(x.Body)))
}

// GoString returns the same as String.
func (x Extra) GoString() string { return x.String() }
