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
// little time; and after one that waited in vain, all of the process that have no more
// leave the store to regular activities for slowFor.
const (
	localStoreTimeout = 2 * time.Second // for a run that begins or ends, and has nothing to hear
	localRestTimeout  = time.Second     // for one that rests, and that somebody waits for
	slowFor           = 5 * time.Second
)

// StorePace knows whether the store has lately kept a local activity waiting. One serves a
// whole process; its zero value is ready. A nil Pace gives the store all its time.
type StorePace struct{ slowUntil, restUntil atomic.Int64 } // nanoseconds since 1970

// errStoreSlow is returned instead of a store's answer that did not come soon enough.
var errStoreSlow = &agent.Error{Code: agent.CodeStoreUnavailable, Message: "the store did not answer at once", Retryable: true}

// withShortTimeout asks the store from a local activity of a run that begins or ends.
func (p *StorePace) withShortTimeout(ctx context.Context, ask func(context.Context) error) error {
	if p == nil {
		return ask(ctx)
	}
	return within(ctx, localStoreTimeout, &p.slowUntil, ask)
}

// withRestTimeout asks the store from a local activity of a run that rests.
func (p *StorePace) withRestTimeout(ctx context.Context, ask func(context.Context) error) error {
	if p == nil {
		return ask(ctx)
	}
	return p.withShortTimeout(ctx, func(ctx context.Context) error { return within(ctx, localRestTimeout, &p.restUntil, ask) })
}

// within gives the store so much time, and none if it is slow. It returns errSlow then.
func within(ctx context.Context, most time.Duration, slowUntil *atomic.Int64, ask func(context.Context) error) error {
	if time.Now().UnixNano() < slowUntil.Load() {
		return errStoreSlow
	}
	leave := func() { slowUntil.Store(time.Now().Add(slowFor).UnixNano()) }
	defer time.AfterFunc(most, leave).Stop() // also if it never returns
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	if err := ask(ctx); err == nil || ctx.Err() == nil {
		return err
	}
	leave()
	return errStoreSlow
}
