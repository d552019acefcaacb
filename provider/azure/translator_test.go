package azure

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
	for _, c := range []struct{ body, wrong string }{
		{`{"model":"gpt-5.6"}`, "it was sent"},
		{`{`, "reading the deployment's name"},
	} {
		body := &counted{Reader: strings.NewReader(c.body)}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://x.openai.azure.com/openai/v1/chat/completions", body)
		require.NoError(t, err)
		e := &translator{version: "2024-10-21", next: next(func(*http.Request) (*http.Response, error) { return nil, errors.New("it was sent") })}
		res, err := e.RoundTrip(r)
		if res != nil {
			res.Body.Close()
		}
		require.ErrorContains(t, err, c.wrong)
		require.Positive(t, body.closed, c.wrong)
	}
}
