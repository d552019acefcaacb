package mcp

import (
	"context"
	"net/http"
	"sync"
)

// trip is what became of a request over HTTP. The SDK's errors do not tell whether
// a request has left, which decides whether it may be made again.
type trip struct {
	cancel context.CancelCauseFunc // of who waits for the answer
	heard  int                     // see peer.heard; 0 counts all

	mu      sync.Mutex
	session bool // it was a request within a session
	left    bool // there was a connection to send it over
	code    int  // of the answer; 0 before there is one
	text    string
	err     error // of the network, or why the answer is none
	over    bool  // nobody waits any more
}

type tripKey struct{}

func withTrip(ctx context.Context, t *trip) context.Context {
	return context.WithValue(ctx, tripKey{}, t)
}

// tripOf is the trip that a request belongs to; nil if it has none.
func tripOf(ctx context.Context) *trip {
	t, _ := ctx.Value(tripKey{}).(*trip)
	return t
}

// note changes the trip while somebody waits: what is sent later, as the word that
// a call is cancelled, is no part of it.
func (t *trip) note(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.over {
		f()
	}
}

func (t *trip) begin(session bool) {
	t.note(func() { t.session, t.left, t.code, t.text, t.err = session, false, 0, "", nil })
}

func (t *trip) leave() { t.note(func() { t.left = true }) }

func (t *trip) arrive(code int, text string) { t.note(func() { t.code, t.text = code, text }) }

func (t *trip) end() { t.note(func() { t.over = true }) }

// fail notes what went wrong. Nobody needs to wait on for an answer that is too large.
func (t *trip) fail(err error) {
	t.note(func() {
		t.err = err
		if tooMuch(err) && t.cancel != nil {
			t.cancel(err)
		}
	})
}

func (t *trip) status() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.code
}

// said is the answer's status, and what was said of it.
func (t *trip) said() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return t.err.Error()
	}
	return t.text
}

func (t *trip) failure() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// stayed tells that the request has not left.
func (t *trip) stayed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.left
}

// orphaned tells that the server does not know the session any more. It says so by
// 404, and many say 400; either way it has not looked at the request.
func (t *trip) orphaned() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.session && (t.code == http.StatusNotFound || t.code == http.StatusBadRequest)
}
