package mcp

import (
	"context"
	"net/http"
	"sync"
)

// attempt records what happened to a request over HTTP. The SDK's errors do not tell whether
// a request was sent, which decides whether it may be made again.
type attempt struct {
	cancel      context.CancelCauseFunc // ends the wait for the answer
	stderrLines int                     // see peer.stderrLines; 0 counts all

	mu      sync.Mutex
	session bool // it was a request within a session
	left    bool // there was a connection to send it on
	code    int  // of the answer; 0 before there is one
	text    string
	err     error // of the network, or why the answer can't be used
	over    bool  // nobody waits any more
}

type attemptKey struct{}

func withAttempt(ctx context.Context, t *attempt) context.Context {
	return context.WithValue(ctx, attemptKey{}, t)
}

// attemptOf returns the attempt of a request, or nil if it has none.
func attemptOf(ctx context.Context) *attempt {
	t, _ := ctx.Value(attemptKey{}).(*attempt)
	return t
}

// note changes the attempt while somebody waits. What is sent later, such as the notice of a
// cancellation, does not belong to it.
func (t *attempt) note(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.over {
		f()
	}
}

func (t *attempt) begin(session bool) {
	t.note(func() { t.session, t.left, t.code, t.text, t.err = session, false, 0, "", nil })
}

func (t *attempt) leave() { t.note(func() { t.left = true }) }

func (t *attempt) arrive(code int, text string) { t.note(func() { t.code, t.text = code, text }) }

func (t *attempt) end() { t.note(func() { t.over = true }) }

// fail records an error. An answer that is too large also ends the wait for it.
func (t *attempt) fail(err error) {
	t.note(func() {
		t.err = err
		if tooMuch(err) && t.cancel != nil {
			t.cancel(err)
		}
	})
}

func (t *attempt) status() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.code
}

// said returns the answer's status with the server's words.
func (t *attempt) said() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return t.err.Error()
	}
	return t.text
}

func (t *attempt) failure() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// stayed reports whether the request was not sent.
func (t *attempt) stayed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.left
}

// orphaned reports whether the server no longer knows the session. It says so with 404,
// and many servers with 400. Either way it has not looked at the request.
func (t *attempt) orphaned() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.session && (t.code == http.StatusNotFound || t.code == http.StatusBadRequest)
}
