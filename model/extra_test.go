package model_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// What can't be sent, or is the adapter's own, is refused with the path of its field, and
// no value is shown.
func TestExtraIsChecked(t *testing.T) {
	own := []string{"stream", "text.format", "additional.thinking"}
	headers := func(names ...string) model.Extra {
		x := model.Extra{Headers: map[string]string{}}
		for _, name := range names {
			x.Headers[name] = "value-0123"
		}
		return x
	}
	body := func(fields map[string]any) model.Extra { return model.Extra{Body: fields} }
	for _, c := range []struct {
		x          model.Extra
		path, text string // empty if it is sound
	}{
		{model.Extra{}, "", ""},
		{headers("X-Team", "anthropic-beta", "OpenAI-Project"), "", ""},
		{headers("Authorization"), "headers.Authorization", "key"},
		{headers("x-API-key"), "headers.x-API-key", "set by the adapter"},
		{headers("Transfer-Encoding"), "headers.Transfer-Encoding", "connection"},
		{headers("proxy-authorization"), "headers.proxy-authorization", "set by the adapter"},
		{headers("X-Amz-Date"), "headers.X-Amz-Date", "set by the adapter"},
		{headers("Host"), "headers.Host", "connection"},
		{headers("X Team"), "headers.X Team", "not the name of a header"},
		{headers("X-Team", "x-team"), "headers.x-team", "twice"},
		{model.Extra{Headers: map[string]string{"X-Team": "a\r\nHost: b"}}, "headers.X-Team", "control character"},
		{body(map[string]any{"top_k": 40, "text": map[string]any{"verbosity": "low"}}), "", ""},
		{body(map[string]any{"stream": false}), "body.stream", "by the adapter itself"},
		{body(map[string]any{"text": map[string]any{"format": 1}}), "body.text.format", "by the adapter itself"},
		{body(map[string]any{"text": "plain"}), "body.text", "must be an object"},
		{body(map[string]any{"x": make(chan int)}), "body", "not JSON"},
		{body(map[string]any{"x": strings.Repeat("x", 64<<10)}), "body", "65536 is the most"},
	} {
		err := c.x.Check(own...)
		if c.path == "" {
			require.NoError(t, err)
			continue
		}
		var what *agent.Error
		require.ErrorAs(t, err, &what)
		require.Equal(t, agent.CodeInvalidInput, what.Code)
		require.Equal(t, c.path, what.Path)
		require.Contains(t, err.Error(), c.text)
		require.NotContains(t, err.Error(), "0123")
	}
}

// What is added never replaces what is there, also if nobody checked it, and follows no
// redirect.
func TestExtraReplacesNothing(t *testing.T) {
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if r.URL.Path == "/away" {
			http.Redirect(w, r, "/there", http.StatusTemporaryRedirect)
			return
		}
		_, _ = w.Write(body)
	}))
	defer s.Close()
	post := func(x model.Extra, path, body string) (string, error) {
		base := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return nil }}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+path, strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("X-Mine", "1")
		res, err := x.Client(base).Do(r)
		if err != nil {
			return "", err
		}
		defer res.Body.Close()
		sent, err := io.ReadAll(res.Body)
		return string(sent), err
	}
	sent, err := post(model.Extra{Body: map[string]any{"a": map[string]any{"c": 2}, "d": []int{3}}}, "/", `{"a":{"b":1},"big":12345678901234567890}`)
	require.NoError(t, err)
	require.Equal(t, `{"a":{"b":1,"c":2},"big":12345678901234567890,"d":[3]}`, sent)
	require.Equal(t, 1, asked)
	for _, c := range []struct {
		x    model.Extra
		body string
		want string
	}{
		{model.Extra{Headers: map[string]string{"x-mine": "2"}}, `{}`, "a header x-mine of its own"},
		{model.Extra{Body: map[string]any{"a": 1}}, `{"a":0}`, "a field a of its own"},
		{model.Extra{Body: map[string]any{"a": map[string]any{"b": 1}}}, `{"a":{"b":null}}`, "a field a.b of its own"},
		{model.Extra{Body: map[string]any{"a": map[string]any{"b": 1}}}, `{"a":[]}`, "the body.a is not an object"},
		{model.Extra{Body: map[string]any{"a": 1}}, `[]`, "the body is not an object"},
	} {
		_, err := post(c.x, "/", c.body)
		require.ErrorContains(t, err, c.want)
		var fault *agent.Error
		require.ErrorAs(t, model.NewEndpoint("gate", s.URL).Unreachable(err, "it"), &fault)
		require.Equal(t, agent.FaultBadRequest, fault.Provider.Kind, "who tries it again gets the same")
		require.False(t, fault.Retryable)
	}
	require.Equal(t, 1, asked)
	_, err = post(model.Extra{Headers: map[string]string{"X-Key": "value-0123"}}, "/away", `{}`)
	require.ErrorContains(t, err, "redirects to another address")
	require.Equal(t, 2, asked)
}
