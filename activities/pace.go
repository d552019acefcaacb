package activities

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// A local activity holds its run's workflow task, one of the process's slots for such
// tasks and one for local activities. With a store that hangs these would all be held,
// and every other run on the process would wait. So local activities give the store
// only storeSoon; and after one that waited in vain, all of the process leave the store
// to regular activities for slowFor.
const (
	storeSoon = 2 * time.Second
	slowFor   = 5 * time.Second
)

// Pace knows whether the store has lately kept a local activity waiting. One serves a
// whole process; its zero value is ready. A nil Pace gives the store all its time.
type Pace struct{ slowUntil atomic.Int64 } // nanoseconds since 1970

// errSlow is returned in place of a store's answer that did not come soon enough.
var errSlow = &agent.Error{Code: agent.StoreUnavailable, Message: "the store did not answer at once", Retryable: true}

// soon asks the store from a local activity. It returns errSlow without asking if the
// store is slow, and if it did not answer in storeSoon.
func (p *Pace) soon(ctx context.Context, ask func(context.Context) error) error {
	if p == nil {
		return ask(ctx)
	}
	if time.Now().UnixNano() < p.slowUntil.Load() {
		return errSlow
	}
	ctx, cancel := context.WithTimeout(ctx, storeSoon)
	defer cancel()
	err := ask(ctx)
	if err != nil && ctx.Err() != nil {
		p.slow()
		return errSlow
	}
	return err
}

// slow notes that the store has kept a local activity waiting.
func (p *Pace) slow() {
	if p != nil {
		p.slowUntil.Store(time.Now().Add(slowFor).UnixNano())
	}
}
