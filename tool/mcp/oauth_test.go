//go:build unix

package mcp_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/toolcall"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/tool/mcp"
	"github.com/stretchr/testify/require"
)

// robot signs in as a client.
func robot(g *guard) *mcp.OAuth {
	return &mcp.OAuth{Grant: mcp.GrantClient, Client: "robot", Secret: "${SECRET}", Issuer: g.issuer.URL}
}

var robotEnv = map[string]string{"SECRET": clientSecret}

func TestClientCredentials(t *testing.T) {
	g := newGuard(t, httpHandler(teller(), nil))
	r := reach(t, g.mcp.URL+"/mcp", mcp.Options{OAuth: robot(g), Env: robotEnv})
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			c := tool.Call{ID: "t1.1", Session: fmt.Sprint("s", i), Tool: "tickets__result", Arguments: []byte(`{"text":"x"}`)}
			text, err := r.Call(t.Context(), &c)
			if err != nil || !strings.Contains(text, "Bearer [token]") {
				t.Errorf("%q %v", text, err)
			}
			g.silent(text)
		})
	}
	all.Wait()
	require.Equal(t, []string{"client_credentials"}, g.grants(), "one token for all")
	g.revoke(true)
	r.ok(t, "result", "")
	require.Equal(t, []string{"client_credentials"}, g.grants(), "another, when the server takes it back")
	g.silent(r.log.String())
}

// A token whose time is over is replaced before it is used.
func TestClientCredentialsThatEnd(t *testing.T) {
	g := newGuard(t, httpHandler(teller(), nil))
	g.lifetime = 1
	r := reach(t, g.mcp.URL+"/mcp", mcp.Options{OAuth: robot(g), Env: robotEnv})
	r.ok(t, "result", "")
	require.Greater(t, len(g.grants()), 1)
}

func TestClientThatIsRefused(t *testing.T) {
	g := newGuard(t, httpHandler(teller(), nil))
	o := robot(g)
	o.Secret = "not-the-secret"
	r := reach(t, g.mcp.URL+"/mcp", mcp.Options{OAuth: o})
	_, err := r.List(t.Context())
	require.ErrorIs(t, err, agent.CodeDenied)
	require.ErrorContains(t, err, "signing in to the MCP server tickets: the authorization server refused: invalid_grant")
	require.NotContains(t, err.Error()+r.log.String(), "not-the-secret")

	g.mu.Lock()
	g.lacks = "write"
	g.mu.Unlock()
	r = reach(t, g.mcp.URL+"/mcp", mcp.Options{OAuth: robot(g), Env: robotEnv})
	_, err = r.List(t.Context())
	require.ErrorIs(t, err, agent.CodeDenied)
	require.LessOrEqual(t, len(g.grants()), 5, "it does not go round for ever")
}

// A server that names another authorization server does not get the client's secret there.
func TestSecretIsForItsIssuer(t *testing.T) {
	g := newGuard(t, httpHandler(teller(), nil))
	o := robot(g)
	o.Issuer = "http://127.0.0.1:1"
	r := reach(t, g.mcp.URL+"/mcp", mcp.Options{OAuth: o, Env: robotEnv})
	_, err := r.List(t.Context())
	require.ErrorContains(t, err, "and not http://127.0.0.1:1, whose client this is")
	require.Empty(t, g.grants())
}

func TestFaultyOAuth(t *testing.T) {
	for _, c := range []struct {
		o    mcp.OAuth
		says string
	}{
		{mcp.OAuth{Grant: "password"}, "its OAuth grant is \"password\""},
		{mcp.OAuth{Grant: mcp.GrantClient, Client: "robot"}, "needs a client and its secret or key"},
		{mcp.OAuth{Grant: mcp.GrantAssertion, Issuer: "https://i.example.com"}, "needs an assertion"},
		{mcp.OAuth{AssertionFile: "x", Issuer: "https://i.example.com"}, "no other takes one"},
		{mcp.OAuth{Grant: mcp.GrantAssertion, AssertionFile: "x"}, "name the issuer"},
		{mcp.OAuth{Client: "robot", Secret: "x", KeyFile: "x", Issuer: "https://i.example.com"}, "a secret and a key"},
		{mcp.OAuth{Client: "robot", KeyFile: "x"}, "name the issuer"},
		{mcp.OAuth{Secret: "x"}, "has no client"},
		{mcp.OAuth{Client: "robot", Secret: "x"}, "name the issuer"},
		{mcp.OAuth{Client: "robot", Secret: "${NONE}"}, "NONE, which has no value"},
		{mcp.OAuth{Issuer: "http://login.example.com"}, "its OAuth issuer"},
		{mcp.OAuth{Redirect: "http://example.com/cb"}, "its OAuth redirect"},
	} {
		err := mcp.NewHTTP("tickets", "https://example.com/mcp", &mcp.Options{OAuth: &c.o}).Err()
		require.ErrorIs(t, err, agent.CodeInvalidInput, c.says)
		require.ErrorContains(t, err, c.says)
	}
	require.ErrorContains(t, mcp.New("tickets", []string{"true"}, &mcp.Options{OAuth: &mcp.OAuth{}}).Err(), "no URL")
	require.ErrorContains(t, mcp.NewHTTP("tickets", "https://example.com/mcp", &mcp.Options{OAuth: &mcp.OAuth{}, Headers: map[string]string{"authorization": "x"}}).Err(), "one of them is enough")
}

// visitor is a person who is asked to sign in, in one session.
type visitor struct {
	t       *testing.T
	r       rig
	session string
	answers []agent.ToolAnswer
}

func (v *visitor) list() []string {
	v.t.Helper()
	specs, err := v.r.List(tool.WithCaller(v.t.Context(), v.session, "r"))
	require.NoError(v.t, err)
	return fullNames(specs)
}

// call makes a call, and returns what it asks; nil if it has ended.
func (v *visitor) call(name string) (string, *agent.ToolQuestion, error) {
	c := tool.Call{ID: "t1.1", Session: v.session, Run: "r", Tool: "tickets__" + name}
	if name == "result" {
		c.Arguments = []byte(`{"text":"x"}`)
	}
	hooks := &toolcall.Hooks{Answers: v.answers}
	made := c.With(hooks)
	text, err := v.r.Call(v.t.Context(), made)
	return text, hooks.Question, err
}

func (v *visitor) asked(name string) *agent.ToolQuestion {
	v.t.Helper()
	_, q, err := v.call(name)
	require.ErrorIs(v.t, err, tool.ErrAsked)
	return q
}

func (v *visitor) answer(q *agent.ToolQuestion, a agent.ToolAnswer) {
	a.State = q.State
	v.answers = append(v.answers, a)
}

// browse opens the page of a question, and returns the address where the browser ends.
func (v *visitor) browse(q *agent.ToolQuestion) string {
	v.t.Helper()
	_, rest, ok := strings.Cut(q.Text, "sign in: ")
	require.True(v.t, ok, q.Text)
	page, _, _ := strings.Cut(rest, "\n")
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := browser.Get(page)
	require.NoError(v.t, err)
	resp.Body.Close()
	require.Equal(v.t, http.StatusFound, resp.StatusCode)
	return resp.Header.Get("Location")
}

func TestSignIn(t *testing.T) {
	g := newGuard(t, httpHandler(teller(), nil))
	vault := &chest{kept: map[string][]byte{}}
	r := reach(t, g.mcp.URL+"/mcp", mcp.Options{OAuth: &mcp.OAuth{Vault: vault}})
	ana := &visitor{t: t, r: r, session: "ana"}
	require.Equal(t, []string{"tickets__sign_in"}, ana.list())
	q := ana.asked("sign_in")
	require.Contains(t, q.Text, "Its host is "+strings.TrimPrefix(g.issuer.URL, "http://"))
	require.Equal(t, q, ana.asked("sign_in"), "who is asked twice is asked the same")

	ana.answer(q, said("done"))
	q = ana.asked("sign_in")
	require.Contains(t, q.Context, "The last answer did not fit")
	back := ana.browse(q)
	ana.answer(q, said(strings.Replace(back, "state=", "state=x", 1)))
	q = ana.asked("sign_in")
	require.Contains(t, q.Context, "another sign-in")
	ana.answer(q, said(back))
	text, _, err := ana.call("sign_in")
	require.NoError(t, err)
	require.Contains(t, text, "Somebody has signed in")
	require.Contains(t, ana.list(), "tickets__result")
	require.Equal(t, 1, g.clients)

	// Another process goes on with what is kept; another session has nothing of it.
	again := reach(t, g.mcp.URL+"/mcp", mcp.Options{OAuth: &mcp.OAuth{Vault: vault}})
	later := &visitor{t: t, r: again, session: "ana"}
	text, _, err = later.call("result")
	require.NoError(t, err)
	require.Equal(t, []string{"tickets__sign_in"}, (&visitor{t: t, r: r, session: "bob"}).list())
	require.Equal(t, 1, g.clients, "bob is asked by the same client")
	g.silent(text, r.log.String(), again.log.String(), string(q.State), q.Text, q.Context)
}

// Two calls of a turn ask for the same sign-in. Whoever has done it for one says so to the
// other, in any words.
func TestSignInOfTwoCalls(t *testing.T) {
	g := newGuard(t, httpHandler(teller(), nil))
	r := reach(t, g.mcp.URL+"/mcp", mcp.Options{OAuth: &mcp.OAuth{}})
	first, second := &visitor{t: t, r: r, session: "ana"}, &visitor{t: t, r: r, session: "ana"}
	q := first.asked("result")
	require.Equal(t, q, second.asked("result"))
	first.answer(q, said(first.browse(q)))
	_, _, err := first.call("result")
	require.NoError(t, err)
	second.answer(q, said("done"))
	_, _, err = second.call("result")
	require.NoError(t, err)
	require.Equal(t, []string{"authorization_code"}, g.grants())
}

func TestTokensAreRenewed(t *testing.T) {
	g := newGuard(t, httpHandler(teller(), nil))
	r := reach(t, g.mcp.URL+"/mcp", mcp.Options{OAuth: &mcp.OAuth{}})
	ana := &visitor{t: t, r: r, session: "ana"}
	q := ana.asked("result")
	ana.answer(q, said(ana.browse(q)))
	_, _, err := ana.call("result")
	require.NoError(t, err, "the call goes on")
	require.Equal(t, []string{"authorization_code"}, g.grants())

	g.revoke(false)
	_, _, err = ana.call("result")
	require.NoError(t, err)
	require.Equal(t, []string{"refresh_token"}, g.grants())

	g.revoke(true)
	ana.answers = nil
	q = ana.asked("result")
	require.Equal(t, []string{"refresh_token"}, g.grants(), "nobody is asked for what could be renewed")
	ana.answer(q, agent.ToolAnswer{Declined: true})
	_, _, err = ana.call("result")
	require.ErrorContains(t, err, "nothing was done")
	g.silent(r.log.String(), err.Error())
}

// A code is of no use to whoever reads the answer that brings it.
func TestCodeWantsItsVerifier(t *testing.T) {
	g := newGuard(t, httpHandler(teller(), nil))
	r := reach(t, g.mcp.URL+"/mcp", mcp.Options{OAuth: &mcp.OAuth{}})
	ana := &visitor{t: t, r: r, session: "ana"}
	q := ana.asked("result")
	back := ana.browse(q)
	bob := &visitor{t: t, r: r, session: "bob"}
	own := bob.asked("result")
	bob.answer(own, said(back))
	require.Contains(t, bob.asked("result").Context, "another sign-in")
	bob.answers = nil
	bob.answer(q, said(back))
	require.NotEqual(t, q.Text, bob.asked("result").Text, "nor with the question's state")
	require.Empty(t, g.grants())
}

func TestHostileMetadata(t *testing.T) {
	for says, metadata := range map[string]string{
		"of another resource":           `{"resource":"https://bank.example.com/mcp","authorization_servers":["https://x.example.com"]}`,
		"names no authorization server": `{"resource":"URL/mcp"}`,
		"is http:// on another machine": `{"resource":"URL/mcp","authorization_servers":["http://login.example.com"]}`,
		"has a user or a password":      `{"resource":"URL/mcp","authorization_servers":["https://a:b@login.example.com"]}`,
		"is on an inner network":        `{"resource":"URL/mcp","authorization_servers":["https://169.254.169.254"]}`,
		"is not written in ASCII":       `{"resource":"URL/mcp","authorization_servers":["https://login.b\u0430nk.example"]}`,
		"can't be read":                 `{"resource":"` + strings.Repeat("x", 1<<20) + `"}`,
	} {
		t.Run(says, func(t *testing.T) {
			var server *httptest.Server
			server = serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasPrefix(r.URL.Path, "/.well-known/") {
					w.Header().Set("Content-Type", "application/json")
					fmt.Fprint(w, strings.ReplaceAll(metadata, "URL", server.URL))
					return
				}
				w.WriteHeader(http.StatusUnauthorized)
			}))
			r := reach(t, server.URL+"/mcp", mcp.Options{OAuth: &mcp.OAuth{}})
			_, err := r.List(t.Context())
			require.ErrorContains(t, err, says)
		})
	}
}

// chest is a vault of a test's.
type chest struct {
	mu   sync.Mutex
	kept map[string][]byte
}

func (c *chest) Secret(_ context.Context, session, name string) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kept[session+"/"+name], nil
}

func (c *chest) PutSecret(_ context.Context, session, name string, value []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept[session+"/"+name] = value
	return nil
}
