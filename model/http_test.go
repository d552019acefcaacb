package model_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

const (
	key      = "sk-test-0123456789"
	password = "pass-word"
)

func endpoint() *model.Endpoint {
	return model.NewEndpoint("gateway", "https://me:"+password+"@gateway.example/v1", key)
}

// isFault checks an error that an endpoint made.
func isFault(t *testing.T, how string, err error, kind agent.FaultKind, status int, message string) {
	t.Helper()
	var fault *agent.Error
	switch {
	case !errors.As(err, &fault) || fault.Provider == nil:
		t.Errorf("%s: got %v, want a fault", how, err)
	case fault.Provider.Kind != kind || fault.Provider.HTTP != status || fault.Message != message:
		t.Errorf("%s: got %s with status %d: %q\nwant %s with %d: %q", how, fault.Provider.Kind, fault.Provider.HTTP, fault.Message, kind, status, message)
	}
}

func TestEndpointAddr(t *testing.T) {
	for base, want := range map[string]string{
		"https://api.example":               "api.example:443",
		"http://api.example/v1":             "api.example:80",
		"http://localhost:11434/v1":         "localhost:11434",
		"https://me:pass@[2001:db8::1]/":    "[2001:db8::1]:443",
		"https://me:pass@api.example:8443/": "api.example:8443",
	} {
		e := model.NewEndpoint("x", base)
		if got := e.Addr(); got != want {
			t.Errorf("%s: got %s, want %s", base, got, want)
		}
		if err := e.WrongURL("https://host", "X_URL"); err != nil {
			t.Errorf("%s: got %v", base, err)
		}
	}
}

func TestEndpointWrongURL(t *testing.T) {
	for base, shown := range map[string]string{
		"":                    "",
		"api.example":         "api.example",
		"localhost:11434/v1":  "localhost:11434/v1",
		"ftp://me:pass@host":  "ftp://me:xxxxx@host",
		"http://":             "http:",
		"http://[::1":         "(not a URL)",
		"://":                 "(not a URL)",
		"https:///v1/no-host": "https:///v1/no-host",
	} {
		isFault(t, base, model.NewEndpoint("x", base).WrongURL("https://host", "X_URL"), agent.FaultBadRequest, 0,
			fmt.Sprintf("x: the base URL %q is not of the form https://host; correct X_URL where the worker runs", shown))
	}
}

func TestEndpointNoKey(t *testing.T) {
	isFault(t, "no key", endpoint().NoKey("X_KEY"), agent.FaultAuth, 0, "gateway: there is no API key; set X_KEY in the worker's environment")
}

func TestEndpointFault(t *testing.T) {
	err := endpoint().Faultf(agent.FaultRateLimit, 429, time.Minute, "%s answered:\r\n\t<p> %s </p>\n", "gateway", key+" "+password)
	isFault(t, "a page", err, agent.FaultRateLimit, 429, "gateway answered: <p> [secret] [secret] </p>")
	var fault *agent.Error
	if errors.As(err, &fault); fault.RetryAfter != time.Minute {
		t.Errorf("got the wait %v", fault.RetryAfter)
	}
}

// Nothing that is printed by accident has a secret.
func TestEndpointIsNotShown(t *testing.T) {
	e := endpoint()
	for _, v := range []any{e, *e, struct{ e *model.Endpoint }{e}, struct{ e model.Endpoint }{*e}} {
		for _, form := range []string{"%v", "%+v", "%#v", "%s"} {
			if s := fmt.Sprintf(form, v); strings.Contains(s, key) || strings.Contains(s, password) {
				t.Errorf("%s of %T shows a secret: %s", form, v, s)
			}
		}
	}
}

// The caller's keys stay as they are, whatever the endpoint adds to its own.
func TestEndpointLeavesTheKeysAlone(t *testing.T) {
	keys := append(make([]string, 0, 2), key, "other")[:1]
	model.NewEndpoint("x", "https://me:"+password+"@host", keys...)
	if got := keys[:2][1]; got != "other" {
		t.Errorf("the caller's memory was changed to %q", got)
	}
}

func TestEndpointUnreachable(t *testing.T) {
	post := func(err error) error {
		return fmt.Errorf("sdk: %w", &url.Error{Op: "Post", URL: "https://gateway.example/v1?key=" + key, Err: err})
	}
	for _, c := range []struct {
		name string
		err  error
		kind agent.FaultKind
		said string
	}{
		{"refused", &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}, agent.FaultTransient, "dial tcp: connection refused"},
		{"no way there in time", post(&net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}), agent.FaultTransient, "dial tcp: i/o timeout"},
		{"no answer in time", post(os.ErrDeadlineExceeded), agent.FaultTimeout, "i/o timeout"},
		{"no reading in time", post(&net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}), agent.FaultTimeout, "read tcp: i/o timeout"},
		{"hung up", post(io.EOF), agent.FaultTransient, "EOF"},
	} {
		isFault(t, c.name, endpoint().Unreachable(c.err, "that it runs"), c.kind, 0,
			"gateway gave no answer at gateway.example:443: "+c.said+"; check that it runs")
	}
}

func TestEndpointCut(t *testing.T) {
	for _, c := range []struct {
		err  error
		kind agent.FaultKind
		said string
	}{
		{nil, agent.FaultTransient, "unexpected EOF"},
		{errors.New("connection\nreset"), agent.FaultTransient, "connection reset"},
		{fmt.Errorf("reading: %w", os.ErrDeadlineExceeded), agent.FaultTimeout, "reading: i/o timeout"},
	} {
		isFault(t, c.said, endpoint().Truncated(200, 1234, c.err), c.kind, 200, "gateway: the stream broke off after 1234 bytes: "+c.said)
	}
}

func TestEndpointCancelled(t *testing.T) {
	for _, why := range []error{context.Canceled, context.DeadlineExceeded} {
		err := endpoint().Cancelled(why)
		var fault *agent.Error
		if !errors.Is(err, why) || errors.As(err, &fault) || err.Error() != "asking gateway: "+why.Error() {
			t.Errorf("got %v", err)
		}
	}
}

func TestRedactedURL(t *testing.T) {
	for raw, want := range map[string]string{
		"https://api.example/v1":  "https://api.example/v1",
		"https://me@api.example":  "https://me@api.example",
		"https://me:p@ss@a.b/c?d": "https://me:xxxxx@a.b/c?d",
		"https://me:pass@[::1":    "(not a URL)",
	} {
		if got := model.RedactedURL(raw); got != want {
			t.Errorf("%s: got %s, want %s", raw, got, want)
		}
	}
}

// Our own client has no timeout and follows nobody; one that has a policy of its
// own keeps it, and nobody's client is changed.
func TestHTTPClient(t *testing.T) {
	there := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	defer there.Close()
	here := httptest.NewServer(http.RedirectHandler(there.URL, http.StatusTemporaryRedirect))
	defer here.Close()
	theirs := &http.Client{Timeout: time.Minute}
	follow := func(*http.Request, []*http.Request) error { return nil }
	for name, c := range map[string]struct {
		base    *http.Client
		timeout time.Duration
		status  int
	}{
		"ours":          {nil, 0, http.StatusTemporaryRedirect},
		"theirs":        {theirs, time.Minute, http.StatusTemporaryRedirect},
		"with a policy": {&http.Client{CheckRedirect: follow}, 0, http.StatusTeapot},
	} {
		client := model.HTTPClient(c.base)
		if client == c.base || client.Timeout != c.timeout {
			t.Errorf("%s: got the timeout %v, want %v", name, client.Timeout, c.timeout)
		}
		res, err := client.Get(here.URL)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != c.status {
			t.Errorf("%s: got the status %d, want %d", name, res.StatusCode, c.status)
		}
	}
	if theirs.CheckRedirect != nil || http.DefaultClient.CheckRedirect != nil {
		t.Error("a client that is not ours was changed")
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	in := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	for _, c := range []struct {
		name    string
		headers []string
		resets  []time.Duration
		want    time.Duration
	}{
		{"none", nil, nil, 0},
		{"seconds", []string{"retry-after", "17"}, nil, 17 * time.Second},
		{"a fraction", []string{"retry-after", "0.5"}, nil, 500 * time.Millisecond},
		{"milliseconds first", []string{"retry-after-ms", "250", "retry-after", "9"}, nil, 250 * time.Millisecond},
		{"milliseconds of nonsense", []string{"retry-after-ms", "x", "retry-after", "9"}, nil, 9 * time.Second},
		{"a date", []string{"retry-after", in(40 * time.Second)}, nil, 40 * time.Second},
		{"a date gone by", []string{"retry-after", in(-time.Hour)}, nil, 0},
		{"a date of next year", []string{"retry-after", in(365 * 24 * time.Hour)}, nil, 24 * time.Hour},
		{"below zero", []string{"retry-after", "-3"}, nil, 0},
		{"nonsense", []string{"retry-after", "soon"}, nil, 0},
		{"for ever", []string{"retry-after", "1e300"}, nil, 24 * time.Hour},
		{"infinite", []string{"retry-after-ms", "Inf"}, nil, 24 * time.Hour},
		{"no number", []string{"retry-after", "NaN"}, nil, 0},
		{"the longest limit", nil, []time.Duration{time.Second, 90 * time.Second, -time.Hour}, 90 * time.Second},
		{"a limit gone by", nil, []time.Duration{-time.Hour}, 0},
		{"a limit of weeks", nil, []time.Duration{1 << 62}, 24 * time.Hour},
		{"a header before the limits", []string{"retry-after", "2"}, []time.Duration{time.Hour}, 2 * time.Second},
		{"a header that says now", []string{"retry-after", "0"}, []time.Duration{time.Hour}, 0},
		{"nonsense before the limits", []string{"retry-after", "soon"}, []time.Duration{time.Hour}, time.Hour},
	} {
		h := http.Header{}
		for i := 0; i+1 < len(c.headers); i += 2 {
			h.Set(c.headers[i], c.headers[i+1])
		}
		if got := model.RetryAfter(h, now, c.resets...); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

// closing reports whether it was closed.
type closing struct {
	io.Reader
	closed bool
}

func (c *closing) Close() error { c.closed = true; return nil }

func TestBody(t *testing.T) {
	broken := errors.New("broken")
	was := &closing{Reader: io.MultiReader(iotest.OneByteReader(strings.NewReader(": ping")), iotest.ErrReader(broken))}
	res := &http.Response{Body: was}
	signs := 0
	body := model.WatchBody(res, func(d model.Delta) {
		if d != (model.Delta{}) {
			t.Errorf("emitted %+v, want a sign of life", d)
		}
		signs++
	})
	if res.Body != io.ReadCloser(body) || body.Bytes() != 0 {
		t.Errorf("the answer has %T as its body, after %d bytes", res.Body, body.Bytes())
	}
	data, err := io.ReadAll(res.Body)
	if string(data) != ": ping" || !errors.Is(err, broken) {
		t.Errorf("read %q, %v", data, err)
	}
	if body.Bytes() != 6 || signs != 6 {
		t.Errorf("counted %d bytes and %d signs of life, want 6 and 6", body.Bytes(), signs)
	}
	if err := res.Body.Close(); err != nil || !was.closed {
		t.Errorf("closing gave %v; closed: %v", err, was.closed)
	}
}

// A server that never ends is given up: whatever it sends would be kept in memory.
func TestEndlessAnswers(t *testing.T) {
	served := func(piece string) *model.Body {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := io.WriteString(w, piece); err != nil {
					return
				}
			}
		}))
		t.Cleanup(s.Close)
		res, err := http.Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { res.Body.Close() })
		return model.WatchBody(res, func(model.Delta) {})
	}
	take := func([]byte) error { return nil }
	long := strings.Repeat("x", 64<<10)
	for name, c := range map[string]struct {
		piece string
		most  int64
		read  func(*model.Body) error
	}{
		"events": {"data: " + long + "\n\n", 129 << 20, func(b *model.Body) error { return model.Events(b, take) }},
		"event":  {"data: " + long + "\n", 17 << 20, func(b *model.Body) error { return model.Events(b, take) }},
		"line":   {"data: " + long, 17 << 20, func(b *model.Body) error { return model.Events(b, take) }},
		"whole":  {"data: " + long, 17 << 20, func(b *model.Body) error { _, err := b.Whole(); return err }},
	} {
		body := served(c.piece)
		err := c.read(body)
		if err == nil || body.Bytes() > c.most {
			t.Errorf("%s: got %v after %d bytes, want an error within %d", name, err, body.Bytes(), c.most)
			continue
		}
		fault, ok := errors.AsType[*agent.Error](endpoint().Truncated(200, 1234, err))
		if !ok || fault.Code != agent.CodeBadOutput || fault.Retryable || fault.Message != "gateway: reading the answer stopped after 1234 bytes: it is too long" {
			t.Errorf("%s: got %v", name, fault)
		}
	}
}

// A line that comes in many pieces is looked at once: a million pieces would take minutes.
func TestLineInPieces(t *testing.T) {
	line := strings.Repeat("x", 1<<20)
	var got []byte
	err := model.Events(iotest.OneByteReader(strings.NewReader("data: "+line+"\r\n\r\n")), func(data []byte) error {
		got = append(got, data...)
		return nil
	})
	if err != nil || string(got) != line {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
}
