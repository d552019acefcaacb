package vertex

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/fermata-agents/fermata/model"
)

// translator translates a request of another API for Vertex.
type translator struct {
	location string
	project  func() string // known after the first sign-in
	put      func(r *http.Request) (path string, err error)
	next     http.RoundTripper // nil means Go's own
}

// around returns a client that sends requests through the translator.
func (e translator) around(client *http.Client, put func(*http.Request) (string, error)) *http.Client {
	c := model.HTTPClient(client)
	// e is a copy, so both adapters can have their own.
	e.put, e.next = put, c.Transport
	c.Transport = &e
	return c
}

// RoundTrip translates a request and sends it.
func (e *translator) RoundTrip(r *http.Request) (*http.Response, error) {
	body := r.Body
	// A RoundTripper must not change the request that it gets.
	r = r.Clone(r.Context())
	before, _, _ := strings.Cut(r.URL.EscapedPath(), "/v1")
	path, err := e.put(r)
	if err != nil {
		// The transport closes a body only if it gets the request.
		closeBody(body)
		return nil, fmt.Errorf("putting the request into Vertex's form: %w", err)
	}
	version, rest, _ := strings.Cut(path, "/")
	// The project is known only after the sign-in, which the adapter has done.
	path = fmt.Sprintf("%s/%s/projects/%s/locations/%s/%s", before, version, url.PathEscape(e.project()), url.PathEscape(e.location), rest)
	if r.URL.Path, err = url.PathUnescape(path); err != nil {
		closeBody(body)
		return nil, err
	}
	r.URL.RawPath = path
	next := e.next
	if next == nil {
		next = http.DefaultTransport
	}
	return next.RoundTrip(r)
}

// closeBody closes a body that was read or is not sent, because nothing else does.
func closeBody(body io.Closer) {
	if body != nil {
		_ = body.Close() // its error changes nothing
	}
}

// toGemini translates a request of the Gemini API: its body stays as it is.
func toGemini(r *http.Request) (string, error) {
	_, rest, _ := strings.Cut(r.URL.EscapedPath(), "/v1beta/")
	// Tuned models have another path, which stays.
	if strings.HasPrefix(rest, "models/") {
		rest = "publishers/google/" + rest
	}
	return "v1beta1/" + rest, nil
}

// anthropicVersion is the version of the Messages API in Vertex, which each request's
// body has.
const anthropicVersion = `"vertex-2023-10-16"`

// toClaude translates a request of the Messages API: the model's name moves from the body
// to the address.
func toClaude(r *http.Request) (string, error) {
	var name string
	var body map[string]json.RawMessage
	sent, err := io.ReadAll(r.Body)
	closeBody(r.Body)
	if err == nil {
		err = json.Unmarshal(sent, &body)
	}
	if err == nil {
		err = json.Unmarshal(body["model"], &name)
	}
	if err != nil {
		return "", err
	}
	delete(body, "model")
	body["anthropic_version"] = json.RawMessage(anthropicVersion)
	if sent, err = json.Marshal(body); err != nil {
		return "", err
	}
	// The length has changed, and a wrong one breaks the request.
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(sent)), int64(len(sent))
	// The transport may send the body again on a new connection.
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(sent)), nil }
	return "v1/publishers/anthropic/models/" + url.PathEscape(name) + ":streamRawPredict", nil
}
