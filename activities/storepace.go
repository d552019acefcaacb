package activities

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// A local activity holds its run's workflow task, a workflow task slot of the process,
// and a local activity slot. If the store hangs, these would all be held, and every other
// run of the process would wait. So local activities give the store little time. After
// one timed out, those that have no more time leave the store to regular activities for
// slowFor.
const (
	localStoreTimeout = 2 * time.Second // for a run that begins or ends: nobody waits for it
	localRestTimeout  = time.Second     // for a run that is being suspended, and that somebody waits for
	slowFor           = 5 * time.Second
)

// StorePace remembers whether the store has lately kept a local activity waiting. One
// serves a whole process. Its zero value is ready. A nil StorePace gives the store
// unlimited time. It is safe for concurrent use.
type StorePace struct{ slowUntil, restUntil atomic.Int64 } // nanoseconds since 1970

// errStoreSlow is returned if the store's answer did not come in time.
var errStoreSlow = &agent.Error{Code: agent.CodeStoreUnavailable, Message: "the store did not answer at once", Retryable: true}

// withShortTimeout calls the store from a local activity of a run that begins or ends.
func (p *StorePace) withShortTimeout(ctx context.Context, ask func(context.Context) error) error {
	if p == nil {
		return ask(ctx)
	}
	return within(ctx, localStoreTimeout, &p.slowUntil, ask)
}

// withRestTimeout calls the store from a local activity of a run that is being suspended.
func (p *StorePace) withRestTimeout(ctx context.Context, ask func(context.Context) error) error {
	if p == nil {
		return ask(ctx)
	}
	return p.withShortTimeout(ctx, func(ctx context.Context) error { return within(ctx, localRestTimeout, &p.restUntil, ask) })
}

// within gives the store a limited time, or none if it was slow lately. Then it returns
// errStoreSlow.
func within(ctx context.Context, most time.Duration, slowUntil *atomic.Int64, ask func(context.Context) error) error {
	if time.Now().UnixNano() < slowUntil.Load() {
		return errStoreSlow
	}
	leave := func() { slowUntil.Store(time.Now().Add(slowFor).UnixNano()) }
	defer time.AfterFunc(most, leave).Stop() // also if ask ignores its context and never returns
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	// An error within the time is the store's own, and says nothing about its pace.
	if err := ask(ctx); err == nil || ctx.Err() == nil {
		return err
	}
	leave()
	return errStoreSlow
}
