package callback

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/signals"
)

// Without a way to know the senders, or the explicit wish to know none, there is no endpoint
// (HX-89).
func TestNewNeedsToKnowWhoSends(t *testing.T) {
	c := client.New(nil, nil)
	for _, o := range []*Options{nil, {}, {Hosts: []string{"a.example"}}, {Authenticate: bearer(t), AllowUnauthenticated: true}} {
		h, err := New(c, o)
		require.ErrorIs(t, err, agent.CodeInvalidInput)
		require.Nil(t, h)
	}
	_, err := New(nil, &Options{AllowUnauthenticated: true})
	require.ErrorIs(t, err, agent.CodeInvalidInput)
	for _, o := range []*Options{{Authenticate: bearer(t)}, {AllowUnauthenticated: true}} {
		_, err := New(c, o)
		require.NoError(t, err)
	}
}

// The address alone is enough: the run gets the body as the event that it waits for. By is the
// handler's, whatever the body says.
func TestACallbackWakesARun(t *testing.T) {
	f := parked(agent.Conditions{Event: event("orders.paid")})
	d := opened(t, f, bearer(t))
	a := d.post("/callback/trip-42", `{"order":118,"by":"ana@acme.com"}`, with("Idempotency-Key", `"evt-1"`))
	require.Equal(t, http.StatusOK, a.status, a.text)
	id := digest("id", "callback:shop", "evt-1")
	require.JSONEq(t, `{"v":1,"session":"trip-42","run":"r-1","verb":"emit","topic":"orders.paid","id":"`+id+`"}`, a.text)
	require.Equal(t, "no-store", a.header.Get("Cache-Control"))
	require.Len(t, f.verbs(), 1)
	o := f.verbs()[0].(agent.EmitCommand)
	require.Equal(t, agent.CommandHeader{ID: id, By: "callback:shop"}, o.CommandHeader)
	require.JSONEq(t, `{"order":118,"by":"ana@acme.com"}`, string(o.Payload))
}

// An address that a tool made before the run waited names everything, children included.
func TestAddresses(t *testing.T) {
	require.Equal(t, "https://h.example/callback/trip-42%2Fpay-1?run=r-1&topic=orders.paid",
		Address{Session: "trip-42/pay-1", Run: "r-1", Topic: "orders.paid"}.URL("https://h.example/"))
	for path, want := range map[string]agent.EmitCommand{
		"/callback/trip-42%2Fpay-1":                     {CommandHeader: agent.CommandHeader{}, Topic: "a"},
		"/callback/trip-42/pay-1":                       {CommandHeader: agent.CommandHeader{}, Topic: "a"},
		"/callback/trip-42%2Fpay-1?run=r-1&topic=other": {CommandHeader: agent.CommandHeader{Run: "r-1"}, Topic: "other"},
	} {
		f := parked(agent.Conditions{Event: event("a")})
		f.status.Session = "trip-42/pay-1"
		a := opened(t, f, bearer(t)).post(path, "{}")
		require.Equal(t, http.StatusOK, a.status, a.text)
		o := f.verbs()[0].(agent.EmitCommand)
		require.Equal(t, []string{want.Run, want.Topic}, []string{o.Run, o.Topic}, path)
	}
}

// What a run waits for decides what a callback is. People's decisions are never one
// (OA-118: what fits no run has a code of its own).
func TestWhatACallbackIs(t *testing.T) {
	asks := func(kind agent.RequestType, approvers ...string) agent.Request {
		return agent.Request{ID: "q-" + string(kind), Type: kind, Run: "r-1", Approvers: approvers}
	}
	rests := func(requests ...agent.Request) *agent.Suspension {
		return &agent.Suspension{ID: "s-1", Requests: requests}
	}
	two := agent.Conditions{Any: []agent.Condition{{Event: event("a")}, {Event: event("b")}}}
	for name, tt := range map[string]struct {
		rests  *agent.Suspension
		status agent.Status // suspended unless said
		query  string
		verb   string // and what it is about, or
		code   agent.Code
		says   string
	}{
		"one topic":                       {rests: &agent.Suspension{Conditions: &agent.Conditions{Event: event("a")}}, verb: "emit a"},
		"one topic or a time":             {rests: &agent.Suspension{Conditions: &agent.Conditions{Any: []agent.Condition{{Event: event("a")}, {At: time.Now()}}}}, verb: "emit a"},
		"one topic, two payloads":         {rests: &agent.Suspension{Conditions: &agent.Conditions{Any: []agent.Condition{{Event: event("a")}, {Event: event("a")}}}}, verb: "emit a"},
		"a step of a flow":                {rests: &agent.Suspension{Waits: []agent.StepWait{{Step: "wait", Conditions: agent.Conditions{Event: event("a")}}}}, verb: "emit a"},
		"a topic, held":                   {rests: &agent.Suspension{Conditions: &agent.Conditions{Event: event("a")}, Holds: []agent.Hold{{ID: "h-1"}}}, verb: "emit a"},
		"two topics":                      {rests: &agent.Suspension{Conditions: &two}, code: agent.CodeAmbiguous, says: "topic=a, topic=b"},
		"two topics, one named":           {rests: &agent.Suspension{Conditions: &two}, query: "?topic=b", verb: "emit b"},
		"a client tool":                   {rests: rests(asks(agent.RequestClientTool)), verb: "answers q-client_tool"},
		"a client tool, named":            {rests: rests(asks(agent.RequestClientTool), asks(agent.RequestApproval)), query: "?request=q-client_tool", verb: "answers q-client_tool"},
		"a client tool and a topic":       {rests: &agent.Suspension{Conditions: &agent.Conditions{Event: event("a")}, Requests: []agent.Request{asks(agent.RequestClientTool)}}, code: agent.CodeAmbiguous, says: "request=q-client_tool"},
		"a client tool with approvers":    {rests: rests(asks(agent.RequestClientTool, "ana")), code: agent.CodeNeedsAnswer},
		"an approval":                     {rests: rests(asks(agent.RequestApproval)), code: agent.CodeNeedsAnswer},
		"an approval, named":              {rests: rests(asks(agent.RequestApproval)), query: "?request=q-approval", code: agent.CodeDenied, says: "decided by people"},
		"a question, named":               {rests: rests(asks(agent.RequestQuestion)), query: "?request=q-question", code: agent.CodeDenied},
		"a limit, named":                  {rests: rests(asks(agent.RequestLimit)), query: "?request=q-limit", code: agent.CodeDenied},
		"a tool with approvers, named":    {rests: rests(asks(agent.RequestClientTool, "ana")), query: "?request=q-client_tool", code: agent.CodeDenied},
		"a request that is not open":      {rests: rests(), query: "?request=q-9", code: agent.CodeStale},
		"a resume":                        {rests: &agent.Suspension{Conditions: &agent.Conditions{}}, code: agent.CodeStale},
		"a time":                          {rests: &agent.Suspension{Conditions: &agent.Conditions{At: time.Now()}}, code: agent.CodeStale},
		"children":                        {rests: &agent.Suspension{Kind: agent.SuspensionAwaitingChildren}, code: agent.CodeStale},
		"nothing: it works":               {status: agent.StatusRunning, code: agent.CodeNotSuspended, says: "Send it again"},
		"nothing: it works, a topic":      {status: agent.StatusRunning, query: "?topic=a", code: agent.CodeStale},
		"nothing: it has ended":           {status: agent.StatusCompleted, code: agent.CodeClosed},
		"a topic that can't be":           {rests: &agent.Suspension{}, query: "?topic=a%20b", code: agent.CodeInvalidInput},
		"a topic and a request":           {rests: &agent.Suspension{}, query: "?topic=a&request=q-1", code: agent.CodeInvalidInput},
		"a parameter that is not known":   {rests: &agent.Suspension{}, query: "?topc=a", code: agent.CodeInvalidInput, says: `"topc" in the URL's query is not known here`},
		"a parameter that is there twice": {rests: &agent.Suspension{}, query: "?topic=a&topic=b", code: agent.CodeInvalidInput, says: `"topic" in the URL's query is there 2 times`},
		"a parameter without a value":     {rests: &agent.Suspension{}, query: "?topic=", code: agent.CodeInvalidInput, says: `"topic" in the URL's query has no value`},
		"a query that can't be read":      {rests: &agent.Suspension{}, query: "?topic=%zz", code: agent.CodeInvalidInput},
	} {
		t.Run(name, func(t *testing.T) {
			f := parked(agent.Conditions{})
			f.status.Suspension = tt.rests
			if tt.status != "" {
				f.status.Status = tt.status
			}
			a := opened(t, f, bearer(t)).post("/callback/trip-42"+tt.query, `{"seat":"12A"}`)
			if tt.code != "" {
				require.Equal(t, []any{tt.code, statusOf(tt.code)}, []any{a.Code, a.status}, a.text)
				require.Contains(t, a.Detail, tt.says)
				require.Empty(t, f.verbs())
				return
			}
			require.Equal(t, http.StatusOK, a.status, a.text)
			require.Len(t, f.verbs(), 1)
			switch o := f.verbs()[0].(type) {
			case agent.EmitCommand:
				require.Equal(t, tt.verb, "emit "+o.Topic)
			case agent.AnswersCommand:
				require.Equal(t, tt.verb, "answers "+o.Answers[0].Request)
				require.Equal(t, []string{"callback:shop", "r-1"}, []string{o.By, o.Run})
				require.JSONEq(t, `{"seat":"12A"}`, string(o.Answers[0].Answer.Data))
			}
		})
	}
}

// What is no callback never reaches a session, nor does what is not authenticated.
func TestHostileRequests(t *testing.T) {
	deep := strings.Repeat("[", 40) + strings.Repeat("]", 40)
	for name, tt := range map[string]struct {
		path, body string
		change     func(*http.Request)
		status     int
		code       agent.Code
		passes     bool // the door; the run's own rules refuse it
	}{
		"another host":              {change: func(r *http.Request) { r.Host = "evil.example" }, status: 421},
		"a host that begins so":     {change: func(r *http.Request) { r.Host = "127.0.0.1.evil.example" }, status: 421},
		"the host, another port":    {change: func(r *http.Request) { r.Host = "127.0.0.1:1" }, status: 421},
		"the host without its port": {change: func(r *http.Request) { r.Host = "127.0.0.1" }, status: 421},
		"a page of another origin":  {change: with("Origin", "https://evil.example"), status: 403, code: agent.CodeDenied},
		"a page of no origin":       {change: with("Origin", "null"), status: 403, code: agent.CodeDenied},
		"a browser":                 {change: with("Sec-Fetch-Site", "cross-site"), status: 403, code: agent.CodeDenied},
		"a form":                    {change: with("Content-Type", "application/x-www-form-urlencoded"), status: 415},
		"text":                      {change: with("Content-Type", "text/plain"), status: 415},
		"no type":                   {change: with("Content-Type", ""), status: 415},
		"a type that begins so":     {change: with("Content-Type", "application/json-patch+json"), status: 415},
		"compressed":                {change: with("Content-Encoding", "gzip"), status: 415},
		"a GET":                     {change: func(r *http.Request) { r.Method = http.MethodGet }, status: 405},
		"a PUT":                     {change: func(r *http.Request) { r.Method = http.MethodPut }, status: 405},
		"another path":              {path: "/", status: 404, code: agent.CodeNotFound},
		"a path above":              {path: "/callback", status: 404, code: agent.CodeNotFound},
		"too long":                  {body: strings.Repeat(" ", MaxBody+1), status: 413, code: agent.CodeTooLarge},
		"too long, in pieces":       {body: strings.Repeat(" ", MaxBody+1), change: func(r *http.Request) { r.ContentLength = -1 }, status: 413, code: agent.CodeTooLarge},
		"no token":                  {change: func(r *http.Request) { r.Header.Del("Authorization") }, status: 403, code: agent.CodeDenied},
		"another token":             {change: with("Authorization", "Bearer "+token+"x"), status: 403, code: agent.CodeDenied},
		"a part of the token":       {change: with("Authorization", "Bearer "+token[:20]), status: 403, code: agent.CodeDenied},
		"an empty token":            {change: with("Authorization", "Bearer "), status: 403, code: agent.CodeDenied},
		"another scheme":            {change: with("Authorization", "Basic "+token), status: 403, code: agent.CodeDenied},
		"the token in the query":    {path: "/callback/trip-42?token=" + token, change: func(r *http.Request) { r.Header.Del("Authorization") }, status: 403, code: agent.CodeDenied},

		"no session":                    {path: "/callback/", status: 404, code: agent.CodeNotFound},
		"a session of dots":             {path: "/callback/%2e%2e%2ftrip-42", status: 404, code: agent.CodeNotFound},
		"a path of dots":                {path: "/callback/trip-42%2f..%2ftrip-42", status: 404, code: agent.CodeNotFound},
		"a session with an end of line": {path: "/callback/trip-42%0a", status: 404, code: agent.CodeNotFound},
		"a session with a zero":         {path: "/callback/trip-42%00", status: 404, code: agent.CodeNotFound},
		"a session encoded twice":       {path: "/callback/trip-42%252fpay-1", status: 404, code: agent.CodeNotFound},
		"a workflow of ours":            {path: "/callback/fermata%2fprocess%2fp-1", status: 404, code: agent.CodeNotFound},
		"a long session":                {path: "/callback/trip-42" + strings.Repeat("%2fpay-1", 50), status: 404, code: agent.CodeNotFound},

		"no JSON":                 {body: "{", status: 400, code: agent.CodeInvalidInput, passes: true},
		"JSON and more":           {body: "{} {}", status: 400, code: agent.CodeInvalidInput, passes: true},
		"bytes that are no UTF-8": {body: "\"\xff\"", status: 400, code: agent.CodeInvalidInput, passes: true},
		"deep JSON":               {body: deep, status: 400, code: agent.CodeInvalidInput, passes: true},
		"very deep JSON":          {body: strings.Repeat("[", 100_000), status: 400, code: agent.CodeInvalidInput, passes: true},
		"a name twice":            {body: `{"a":1,"a":2}`, status: 400, code: agent.CodeInvalidInput, passes: true},
		"null":                    {body: `null`, status: 400, code: agent.CodeInvalidInput, passes: true},
		"longer than an event":    {body: `"` + strings.Repeat("x", 70<<10) + `"`, status: 413, code: agent.CodeTooLarge, passes: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := parked(agent.Conditions{Event: event("a")})
			path, body := tt.path, tt.body
			if path == "" {
				path = "/callback/trip-42"
			}
			if body == "" {
				body = "{}"
			}
			d := opened(t, f, bearer(t))
			var change []func(*http.Request)
			if tt.change != nil {
				change = append(change, tt.change)
			}
			code := tt.code
			if code == "" {
				code = agent.CodeInvalidInput
			}
			a := d.post(path, body, change...)
			require.Equal(t, []any{tt.status, code}, []any{a.status, a.Code}, a.text)
			require.Empty(t, f.verbs())
			if !tt.passes {
				require.Zero(t, f.asked, "the server was asked")
			}
			if tt.status == http.StatusMethodNotAllowed {
				require.Equal(t, http.MethodPost, a.header.Get("Allow"))
			}
			require.Equal(t, http.StatusOK, d.post("/callback/trip-42", "{}").status, "a good one passes yet")
		})
	}
}

// A sender that is slow is cut off, in the body and behind a refusal, and holds no slot.
func TestSlowBodies(t *testing.T) {
	f := parked(agent.Conditions{Event: event("a")})
	d := opened(t, f, bearer(t))
	d.h.bodyWithin = 50 * time.Millisecond
	for _, kind := range []string{"application/json", "text/plain"} {
		conn, err := net.Dial("tcp", d.Listener.Addr().String())
		require.NoError(t, err)
		defer conn.Close()
		_, err = fmt.Fprintf(conn, "POST /callback/trip-42 HTTP/1.1\r\nHost: %s\r\nContent-Type: %s\r\nAuthorization: Bearer %s\r\nContent-Length: 100000\r\n\r\n{", d.Listener.Addr(), kind, token)
		require.NoError(t, err)
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
		in := bufio.NewReader(conn)
		w, err := http.ReadResponse(in, nil)
		require.NoError(t, err)
		require.GreaterOrEqual(t, w.StatusCode, 400)
		for err == nil { // until the server closes the connection
			_, err = in.ReadByte()
		}
		var late net.Error
		require.False(t, errors.As(err, &late) && late.Timeout(), "it is open yet")
	}
	require.Eventually(t, func() bool { return len(d.h.reading) == 0 }, time.Minute, time.Millisecond)
	require.Zero(t, f.asked)
}

// The time for a body is over when it is there: a run may take longer.
func TestASlowRun(t *testing.T) {
	f := parked(agent.Conditions{Event: event("a")})
	d := opened(t, f, bearer(t))
	d.h.bodyWithin = 20 * time.Millisecond
	f.slow = func(ctx context.Context) {
		select {
		case <-ctx.Done():
		case <-time.After(10 * d.h.bodyWithin):
		}
	}
	a := d.post("/callback/trip-42", "{}")
	require.Equal(t, http.StatusOK, a.status, a.text)
}

// Requests that no HTTP client would send.
func TestRawRequests(t *testing.T) {
	f := parked(agent.Conditions{Event: event("a")})
	d := opened(t, f, bearer(t))
	at := d.Listener.Addr().String()
	const good = "Content-Type: application/json\r\nAuthorization: Bearer " + token + "\r\n"
	for name, tt := range map[string]struct {
		text   string
		status int
	}{
		"another host in the first line": {"POST http://evil.example/callback/trip-42 HTTP/1.1\r\nHost: " + at + "\r\n" + good + "Content-Length: 2\r\n\r\n{}", 421},
		"two hosts":                      {"POST /callback/trip-42 HTTP/1.1\r\nHost: " + at + "\r\nHost: evil.example\r\n" + good + "Content-Length: 2\r\n\r\n{}", 400},
		"no host":                        {"POST /callback/trip-42 HTTP/1.0\r\n" + good + "Content-Length: 2\r\n\r\n{}", 421},
		"two lengths":                    {"POST /callback/trip-42 HTTP/1.1\r\nHost: " + at + "\r\n" + good + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400},
		"a length that is not":           {"POST /callback/trip-42 HTTP/1.1\r\nHost: " + at + "\r\n" + good + "Content-Length: -2\r\n\r\n{}", 400},
		"a piece without end":            {"POST /callback/trip-42 HTTP/1.1\r\nHost: " + at + "\r\n" + good + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n{}", 400},
		"a piece without a size":         {"POST /callback/trip-42 HTTP/1.1\r\nHost: " + at + "\r\n" + good + "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}", 400},
		"a body that breaks off":         {"POST /callback/trip-42 HTTP/1.1\r\nHost: " + at + "\r\n" + good + "Content-Length: 3\r\n\r\n{}", 400},
	} {
		conn, err := net.Dial("tcp", at)
		require.NoError(t, err)
		_, err = conn.Write([]byte(tt.text))
		require.NoError(t, err)
		require.NoError(t, conn.(*net.TCPConn).CloseWrite())
		w, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err, name)
		require.Equal(t, tt.status, w.StatusCode, name)
		require.NoError(t, conn.Close())
	}
	require.Empty(t, f.verbs())
	a := d.post("/callback/trip-42", "{}", func(r *http.Request) { r.ContentLength = -1 })
	require.Equal(t, http.StatusOK, a.status, "a body in pieces is fine: "+a.text)
}

// Beyond the most that are in progress at once, senders are asked to come again. Large bodies and
// deliveries have slots of their own; a small body needs none to be read.
func TestTooManyAtOnce(t *testing.T) {
	large := `"` + strings.Repeat("x", smallBody) + `"`
	pieces := func(r *http.Request) { r.ContentLength = -1 }
	full := func(d *door, body string, change ...func(*http.Request)) {
		t.Helper()
		a := d.post("/callback/trip-42", body, change...)
		require.Equal(t, []any{429, agent.CodeQueueFull, true}, []any{a.status, a.Code, a.Retryable}, a.text)
		require.Equal(t, "10", a.header.Get("Retry-After"))
	}
	signs, err := Signed("shop", key)
	require.NoError(t, err)
	for _, prove := range []Authenticate{bearer(t), signs, nil} {
		f := parked(agent.Conditions{Event: event("a")})
		d := opened(t, f, prove)
		id := 0
		proof := func(body string) func(*http.Request) {
			id++
			sign := signed(key, fmt.Sprint("m-", id), time.Now(), body)
			return func(r *http.Request) { sign(r); r.Header.Set("Authorization", "Bearer "+token) }
		}
		for range atOnce {
			require.NoError(t, d.h.reading.take())
		}
		full(d, large, proof(large))
		full(d, "{}", proof("{}"), pieces)
		a := d.post("/callback/trip-42", "{}", proof("{}"))
		require.Equal(t, http.StatusOK, a.status, a.text)
		for range atOnce {
			d.h.reading.leave()
			require.NoError(t, d.h.delivering.take())
		}
		f.parks("a", 0)
		full(d, "{}", proof("{}"))
		require.Len(t, f.verbs(), 1)
		d.h.delivering.leave()
		a = d.post("/callback/trip-42", large, proof(large))
		require.Equal(t, http.StatusOK, a.status, a.text)
		require.Empty(t, d.h.reading)
		require.Len(t, d.h.delivering, atOnce-1)
	}
}

// Strangers with slow bodies, as many as there are slots, shut nobody out: what their headers lack is
// refused before their bodies are read.
func TestSlowStrangers(t *testing.T) {
	signs, err := Signed("shop", key)
	require.NoError(t, err)
	old := fmt.Sprintf("webhook-id: m-1\r\nwebhook-timestamp: %d\r\nwebhook-signature: v1,abcd\r\n", time.Now().Add(-time.Hour).Unix())
	for name, tt := range map[string]struct {
		prove  Authenticate
		header string
		good   func(*http.Request)
	}{
		"no token":     {bearer(t), "", with("X-Nothing", "")},
		"no signature": {signs, "", signed(key, "m-1", time.Now(), "{}")},
		"an old one":   {signs, old, signed(key, "m-1", time.Now(), "{}")},
	} {
		f := parked(agent.Conditions{Event: event("a")})
		d := opened(t, f, tt.prove)
		d.h.bodyWithin = time.Hour
		for range atOnce {
			conn, err := net.Dial("tcp", d.Listener.Addr().String())
			require.NoError(t, err)
			defer conn.Close()
			_, err = fmt.Fprintf(conn, "POST /callback/x HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n%sContent-Length: 500000\r\n\r\n", d.Listener.Addr(), tt.header)
			require.NoError(t, err)
			require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
			w, err := http.ReadResponse(bufio.NewReader(conn), nil)
			require.NoError(t, err, name+": it waits for the body")
			require.Equal(t, 403, w.StatusCode, name)
		}
		a := d.post("/callback/trip-42", "{}", tt.good)
		require.Equal(t, http.StatusOK, a.status, name+a.text)
	}
}

// Who is not authenticated gets one answer for every session. Who is gets one for every session that
// is not there, and for workflows of other programs and other tenants (OA-118).
func TestNobodyLearnsWhichSessionsAreThere(t *testing.T) {
	f := parked(agent.Conditions{Event: event("a")})
	d := opened(t, f, bearer(t))
	paths := []string{"/callback/trip-42", "/callback/trip-43", "/callback/trip-42%2fpay-1", "/callback/..", "/callback/trip-42?topc=a"}
	var answers []string
	for _, path := range paths {
		answers = append(answers, d.post(path, "{}", with("Authorization", "Bearer wrong")).text)
	}
	for _, a := range answers {
		require.Equal(t, answers[0], a)
	}
	require.Zero(t, f.asked)

	unknown := d.post("/callback/trip-43", "{}")
	require.Equal(t, []any{404, agent.CodeNotFound}, []any{unknown.status, unknown.Code})
	f.kind = "billing"
	require.Equal(t, unknown.text, d.post("/callback/trip-42", "{}").text)
	require.Equal(t, unknown.text, d.post("/callback/trip-42?topic=a", "{}").text)
	f.kind, f.queue = signals.WorkflowType, "another-tenant"
	require.Equal(t, unknown.text, d.post("/callback/trip-42", "{}").text)
	require.Equal(t, unknown.text, d.post("/callback/trip-42?topic=a", "{}").text)
	require.Empty(t, f.verbs())
}

// The run's refusals keep their codes and their statuses. What is wrong on our side stays with us.
func TestErrorsOfARun(t *testing.T) {
	for _, tt := range []struct {
		err    error
		status int
		code   agent.Code
		hidden bool
	}{
		{agent.Errorf(agent.CodeDenied, "emit refused: only billing may say it"), 403, agent.CodeDenied, false},
		{agent.Errorf(agent.CodeQueueFull, "256 events wait already"), 429, agent.CodeQueueFull, false},
		{serviceerror.NewNotFound("workflow execution already completed"), 409, agent.CodeClosed, false},
		{serviceerror.NewNotFound("workflow not found"), 404, agent.CodeNotFound, false},
		{serviceerror.NewUnavailable("dial 10.0.0.5:7233"), 503, agent.CodeUnreachable, true},
		{agent.Errorf(agent.CodeNotWritten, "emit refused: /var/log/audit.jsonl is full"), 500, agent.CodeNotWritten, true},
		{errors.New("panic in /home/ana"), 500, agent.CodeInternal, true},
	} {
		f := parked(agent.Conditions{Event: event("a")})
		f.refuse = tt.err
		a := opened(t, f, bearer(t)).post("/callback/trip-42", "{}")
		require.Equal(t, []any{tt.status, tt.code}, []any{a.status, a.Code}, a.text)
		require.Equal(t, tt.code.HelpURL(), a.Type)
		require.Equal(t, tt.hidden, strings.Contains(a.Detail, "could not be reached"), a.Detail)
		require.Equal(t, tt.code.Retryable(), a.header.Get("Retry-After") != "")
	}
}

// The log has who sent what, and why somebody was refused. The sender does not learn it.
func TestLog(t *testing.T) {
	var text strings.Builder
	f := parked(agent.Conditions{Event: event("a")})
	d := opened(t, f, bearer(t))
	d.h.o.Logger = slog.New(slog.NewTextHandler(&text, nil))
	require.Equal(t, http.StatusOK, d.post("/callback/trip-42", "{}", with("Idempotency-Key", "evt-1")).status)
	a := d.post("/callback/trip-42", "{}", with("Authorization", "Bearer wrong"))
	d.Close()
	require.Contains(t, text.String(), `msg="callback delivered"`)
	require.Contains(t, text.String(), "by=callback:shop sent_id=evt-1 session=trip-42 verb=emit topic=a")
	require.Contains(t, text.String(), " id="+f.verbs()[0].Header().ID)
	require.Contains(t, text.String(), `code=denied error="the bearer token is missing or wrong"`)
	require.NotContains(t, a.text, "bearer")
	require.NotContains(t, text.String(), token)
}

// Without authentication callbacks pass, and say so.
func TestUnauthenticated(t *testing.T) {
	f := parked(agent.Conditions{Event: event("a")})
	a := opened(t, f, nil).post("/callback/trip-42", "", func(r *http.Request) { r.Header.Del("Authorization") })
	require.Equal(t, http.StatusOK, a.status, a.text)
	o := f.verbs()[0].(agent.EmitCommand)
	require.Equal(t, "callback:unauthenticated", o.By)
	require.Empty(t, o.Payload)
}

// A function that authenticates has to name somebody.
func TestASenderHasAName(t *testing.T) {
	for _, name := range []string{"", " ", strings.Repeat("x", maxName+1)} {
		f := parked(agent.Conditions{Event: event("a")})
		a := opened(t, f, func(*http.Request, func() ([]byte, error)) (string, error) { return name, nil }).post("/callback/trip-42", "{}")
		require.Equal(t, 403, a.status, a.text)
		require.Zero(t, f.asked)
	}
}
