package azure

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// translator changes a request of OpenAI's API for Azure. The version goes into the address,
// and for a dated version the deployment too. A key goes into Azure's own header.
type translator struct {
	version string
	keyed   bool
	next    http.RoundTripper // nil means Go's own
}

// RoundTrip translates a request and sends it.
func (e *translator) RoundTrip(r *http.Request) (*http.Response, error) {
	// A RoundTripper must not change the request that it gets.
	r = r.Clone(r.Context())
	// Azure reads keys from its own header and treats a bearer as a token of Entra.
	if key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok && e.keyed {
		r.Header.Del("Authorization")
		r.Header.Set("api-key", key)
	}
	if e.version != "" {
		query := r.URL.Query()
		query.Set("api-version", e.version)
		r.URL.RawQuery = query.Encode()
	}
	if dated(e.version) {
		if err := address(r); err != nil {
			// The transport closes a body only if it gets the request.
			closeBody(r)
			return nil, err
		}
	}
	next := e.next
	if next == nil {
		next = http.DefaultTransport
	}
	return next.RoundTrip(r)
}

// closeBody closes a body that was read or is not sent, because nothing else does.
func closeBody(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close() // its error changes nothing
	}
}

// address sets the address for a dated version. Chat Completions have an address for each
// deployment, which the body names; Responses have one for all.
func address(r *http.Request) error {
	before, rest, _ := strings.Cut(r.URL.EscapedPath(), "/openai/v1/")
	path := before + "/openai/" + rest
	if rest == "chat/completions" {
		var in struct {
			Model string `json:"model"`
		}
		body, err := io.ReadAll(r.Body)
		// Read, so it must be replaced below.
		closeBody(r)
		if err != nil {
			return err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if err := json.Unmarshal(body, &in); err != nil {
			return fmt.Errorf("reading the deployment's name: %w", err)
		}
		path = before + "/openai/deployments/" + url.PathEscape(in.Model) + "/" + rest
	}
	// Both forms, because a deployment's name may have escaped characters.
	plain, err := url.PathUnescape(path)
	r.URL.Path, r.URL.RawPath = plain, path
	return err
}

// dated reports whether a version of the API is a date.
func dated(version string) bool { return version != "" && version[0] >= '0' && version[0] <= '9' }
