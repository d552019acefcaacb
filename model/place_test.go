package model

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whoever has set a wrong base URL is told the one that is right, as far as the answer shows it.
func TestWrongPlace(t *testing.T) {
	for _, c := range []struct {
		base, path, location string
		status               int
		version, want        string
	}{
		{"http://api.example/v1", "/chat/completions", "https://api.example/v1/chat/completions", 301, "v1", "the base URL should be https://api.example/v1"},
		{"http://api.example/v1/", "/chat/completions", "https://api.example:443/new/v1/chat/completions", 308, "v1", "the base URL should be https://api.example/new/v1"},
		{"https://api.example/v1", "/chat/completions", "/v2/chat/completions", 307, "v1", "the base URL should be https://api.example/v2"},
		{"https://api.example", "/v1/messages", "https://login.example/sign-in?to=x", 302, "", "(to https://login.example/sign-in?to=x): the API is not there"},
		{"https://api.example", "/v1/messages", "", 302, "", "without saying where to"},
		{"https://api.example/v1/v1", "/chat/completions", "", 404, "v1", "has a version twice; the base URL should be https://api.example/v1"},
		{"https://api.example/v1", "/v1/messages", "", 404, "", "has a version twice; the base URL should be https://api.example"},
		{"https://api.example/v1beta", "/v1beta/models/x:streamGenerateContent", "", 404, "", "the base URL should be https://api.example"},
		{"http://localhost:11434", "/chat/completions", "", 404, "v1", "mostly ends in /v1: http://localhost:11434/v1"},
		{"http://localhost:11434/", "/chat/completions", "", 200, "v1", "mostly ends in /v1: http://localhost:11434/v1"},
		{"https://x:secret@api.example/v1", "/chat/completions", "", 404, "v1", "is there such an API at api.example:443? Correct the base URL https://x:xxxxx@api.example/v1"},
	} {
		u, err := url.Parse(c.base)
		require.NoError(t, err)
		res := &http.Response{StatusCode: c.status, Header: http.Header{}, Request: &http.Request{URL: u.JoinPath(c.path)}}
		if c.location != "" {
			res.Header.Set("Location", c.location)
		}
		require.Contains(t, NewEndpoint("x", c.base).WrongEndpoint(res, c.version), c.want)
	}
	require.Empty(t, NewEndpoint("x", "https://api.example").WrongEndpoint(&http.Response{StatusCode: 500}, "v1"))
	require.Contains(t, NewEndpoint("x", "https://api.example").WrongEndpoint(&http.Response{StatusCode: 404}, "v1"), "is there such an API")
}
