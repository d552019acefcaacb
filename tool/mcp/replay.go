package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// errAsks ends a call that has asked a person.
var errAsks = errors.New("it asks a person; the call is made again with the answer")

// patience is how long an open question of a cancelled call waits. The server drops the
// question when it learns that the call is cancelled. If the question were answered
// before, the server could continue its work.
const patience = 5 * time.Second

// errGivenUp is why a connection is left after a call on it was cancelled. The server may
// still work on that call, and its next question would be taken for one of another call.
var errGivenUp = errors.New("a call on it was cancelled, and may still ask")

// errMoved is the error of a call that waited for its turn on a connection that was then
// left.
var errMoved = errors.New("the connection was replaced meanwhile; nothing was done")

// replay answers what a server asks during a call that is made again. It cancels the call
// at a question that has no answer yet.
type replay struct {
	*talk
	cancel context.CancelCauseFunc
	over   chan struct{} // closed when nobody waits for the call any more

	mu    sync.Mutex
	used  []bool // which answers were used, see kept.Asked
	open  *want  // the question without an answer
	wrong string // what was wrong with its last answer
}

// digest identifies a question when it is asked again. Of a page only the host counts:
// the rest may differ for each call.
func (w want) digest() string {
	w.URL = w.host()
	raw, _ := json.Marshal(w) // texts and JSON alone
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8])
}

// replaying lets the server's questions during a call be answered, if that is possible.
// It waits for its turn: only with one call at a time is it known whose question it is.
// stop must be called when the call is over. If the server did not say that it ended the
// call, the next call has a connection of its own.
func (t *talk) replaying(ctx context.Context, l *link) (_ context.Context, r *replay, stop func(), err error) {
	if t.server.opts.Elicit != ElicitReplay || l.rounds() {
		return ctx, nil, func() {}, nil
	}
	select {
	case l.calling <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, nil, context.Cause(ctx)
	}
	// Checked after the wait: the call before may have left the connection.
	if l.peer.broken() != nil {
		<-l.calling
		return nil, nil, nil, errMoved
	}
	ctx, cancel := context.WithCancelCause(ctx)
	r = &replay{talk: t, cancel: cancel, over: make(chan struct{}), used: make([]bool, len(t.answers))}
	l.setReplay(r)
	return ctx, r, func() {
		l.setReplay(nil)
		close(r.over)
		if ctx.Err() != nil {
			l.peer.leave(errGivenUp)
		}
		cancel(nil)
		<-l.calling
	}, nil
}

func (l *link) setReplay(r *replay) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.replay = r
}

// elicit answers a question of the server, or has a person asked.
func (r *replay) elicit(ctx context.Context, p *sdk.ElicitParams) (*sdk.ElicitResult, error) {
	w, err := r.server.wantOf("", p)
	if err != nil {
		return nil, unfit(err)
	}
	if result := r.known(w); result != nil {
		return result, nil
	}
	// No answer yet: hold the question open until the call is cancelled.
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-r.over:
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	// The end of the session is ignored: it may come before the notice of the
	// cancellation.
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
	return &sdk.ElicitResult{Action: actCancel}, nil
}

// known returns the answer that exists; nil if the call has to end with the question.
func (r *replay) known(w want) *sdk.ElicitResult {
	digest := w.digest()
	r.mu.Lock()
	defer r.mu.Unlock()
	wrong := ""
	for i, asked := range r.kept.Asked {
		// Each answer serves one question, so that the same question asked twice gets
		// both answers.
		if i >= len(r.answers) || r.used[i] || asked != digest {
			continue
		}
		r.used[i] = true
		var result *sdk.ElicitResult
		if result, wrong = w.answered(r.answers[i]); wrong == "" {
			return result
		}
	}
	if r.open == nil {
		r.open, r.wrong = &w, wrong
		r.cancel(errAsks)
	}
	return nil
}

// asks asks the person what ended the call; nil if nothing did.
func (r *replay) asks() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open == nil {
		return nil
	}
	// Asked must be as long as the answers; questions that this call did not reach stay
	// empty.
	asked := append(slices.Clone(r.kept.Asked), make([]string, len(r.answers))...)[:len(r.answers)]
	return r.ask(kept{How: byReplay, Asked: append(asked, r.open.digest())}, *r.open, r.wrong)
}
