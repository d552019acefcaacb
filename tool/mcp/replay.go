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

// errAsks ends a call that has asked.
var errAsks = errors.New("it asks a person; the call is made again with the answer")

// patience is how long a question of a call that has been cancelled stays without an
// answer. The server gives the question up when it hears that the call is cancelled;
// answered before, it could go on with its work.
const patience = 5 * time.Second

// errGivenUp is why a connection is left after a call in it was cancelled: the server
// may still be at that, and its next question would be taken for one of another call.
var errGivenUp = errors.New("a call in it was given up, and may still ask")

// errMoved is the error of who has waited for a turn on a connection that was left.
var errMoved = errors.New("the connection was left meanwhile; nothing was done")

// replay answers what a server asks in the middle of a call that is made again, and
// cancels the call at what has no answer yet.
type replay struct {
	*talk
	cancel context.CancelCauseFunc
	over   chan struct{} // closed when nobody waits for the call any more

	mu    sync.Mutex
	used  []bool // answers, see kept.Asked
	open  *want  // what has no answer
	wrong string // with the last one that it had
}

// digest is what a question is known by when it is asked again. Of a page it is the
// host: the rest may be made for each call.
func (w want) digest() string {
	w.URL = w.host()
	raw, _ := json.Marshal(w) // texts and JSON alone
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8])
}

// replaying lets what the server asks during a call be answered, where that is
// possible. It waits for its turn: which call a question belongs to is only known
// where there is one. stop has to be called when the call is over; where the server
// was not heard to have ended it, the next call has a connection of its own.
func (t *talk) replaying(ctx context.Context, l *link) (_ context.Context, r *replay, stop func(), err error) {
	if t.server.opts.Elicit != ElicitReplay || l.rounds() {
		return ctx, nil, func() {}, nil
	}
	select {
	case l.calling <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, nil, context.Cause(ctx)
	}
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

// elicit answers a question of the server, or lets a person be asked.
func (r *replay) elicit(ctx context.Context, p *sdk.ElicitParams) (*sdk.ElicitResult, error) {
	w, err := r.server.wantOf("", p)
	if err != nil {
		return nil, unfit(err)
	}
	if result := r.known(w); result != nil {
		return result, nil
	}
	select { // until the server gives it up
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-r.over:
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select { // the end of the session is no reason: it may come before the word that the call is cancelled
	case <-ctx.Done():
	case <-timer.C:
	}
	return &sdk.ElicitResult{Action: actCancel}, nil
}

// known is the answer that there is; nil if the call has to end with the question.
func (r *replay) known(w want) *sdk.ElicitResult {
	digest := w.digest()
	r.mu.Lock()
	defer r.mu.Unlock()
	wrong := ""
	for i, asked := range r.kept.Asked {
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
	asked := append(slices.Clone(r.kept.Asked), make([]string, len(r.answers))...)[:len(r.answers)]
	return r.ask(kept{How: byReplay, Asked: append(asked, r.open.digest())}, *r.open, r.wrong)
}
