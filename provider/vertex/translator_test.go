package vertex

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// counted is a body that counts how often it was closed.
type counted struct {
	io.Reader
	closed int
}

func (c *counted) Close() error { c.closed++; return nil }

type next func(*http.Request) (*http.Response, error)

func (f next) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Whoever sends a request closes its body, also if it was put into another one or not sent.
func TestBodiesAreClosed(t *testing.T) {
	for _, c := range []struct {
		body, wrong string
		put         func(*http.Request) (string, error)
	}{
		{`{"model":"claude-sonnet-5"}`, "it was sent", toClaude},
		{`{`, "putting the request into Vertex's form", toClaude},
		{`{}`, "not put", func(*http.Request) (string, error) { return "", errors.New("not put") }},
		{`{}`, "invalid URL escape", func(*http.Request) (string, error) { return "v1/%zz", nil }},
	} {
		body := &counted{Reader: strings.NewReader(c.body)}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://aiplatform.googleapis.com/v1/messages", body)
		require.NoError(t, err)
		e := &translator{
			location: "global", project: func() string { return "p" }, put: c.put,
			next: next(func(*http.Request) (*http.Response, error) { return nil, errors.New("it was sent") }),
		}
		res, err := e.RoundTrip(r)
		if res != nil {
			res.Body.Close()
		}
		require.ErrorContains(t, err, c.wrong)
		require.Positive(t, body.closed, c.wrong)
	}
}
