package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/store"
)

// Expired is a session whose retention is over.
type Expired struct {
	Session string `json:"session"`
	Agent   string `json:"agent"`
	// DeleteAfter is the end of its retention.
	DeleteAfter time.Time `json:"delete_after"`
	// Deleted says what was deleted; nil if nothing was.
	Deleted *DeleteResult `json:"deleted,omitempty"`
	// Error is why the session was not deleted, or not all of it. Another call tries again.
	Error *agent.Error `json:"error,omitempty"`
}

// ExpireOptions are optional; nil means all defaults.
type ExpireOptions struct {
	// DryRun deletes nothing, and yields what would be deleted.
	DryRun bool
	// Before is called before a session is deleted, for example to record the deletion. An error
	// keeps the session. Nil is not called.
	Before func(session string) error
}

// expireTimeout bounds the deletion of one session.
const expireTimeout = time.Minute

// DeleteAfter returns the time after which a session may be deleted, see
// [agent.Definition.Retention]. It is zero for a session that is kept forever, and while its last
// run has not ended. A run that was terminated from outside counts from then, although the store
// does not know. Errors are [agent.CodeNotSetUp] without [Options.Store],
// [agent.CodeNotFound], and those of the server and the store.
func (c *Client) DeleteAfter(ctx context.Context, session string) (time.Time, error) {
	if c.log == nil {
		return time.Time{}, agent.Errorf(agent.CodeNotSetUp, "reading the retention of session %s: %w", session, ErrNoStore)
	}
	h, err := c.log.Head(ctx, session)
	if err != nil {
		return time.Time{}, err
	}
	return c.deleteAfter(ctx, h)
}

// deleteAfter is [store.Head.DeleteAfter], also for a run that could not store its end. If Temporal
// has forgotten it, its last write counts as the end.
func (c *Client) deleteAfter(ctx context.Context, h store.Head) (time.Time, error) {
	after := h.DeleteAfter()
	if !after.IsZero() || h.Retention <= 0 || h.Import != "" || c.temporal == nil {
		return after, nil
	}
	info, err := c.last(ctx, h.Session)
	switch {
	case errors.Is(err, agent.CodeNotFound):
	case err != nil:
		return time.Time{}, err
	case !durable.Closed(info):
		return time.Time{}, nil
	case info.GetCloseTime().AsTime().After(h.Updated):
		h.Updated = info.GetCloseTime().AsTime()
	}
	h.Status = agent.StatusCancelled
	return h.DeleteAfter(), nil
}

// DeleteExpired deletes, as [Client.Delete] does, every session whose retention is over, and yields
// them one after the other. It reads every head of the store, and asks Temporal for the end of a
// run that has not stored it. Several
// calls at once, or one that was interrupted, do no harm: another call does the rest.
//
// Sessions with a live run are kept, suspended ones too. What a fork needs of the session that it
// was forked from stays in the store. A session that a run begins to write meanwhile is kept.
//
// An error ends it: [agent.CodeNotSetUp] without [Options.Store], and those of the store. A session
// that can't be deleted is yielded with its error, and the next one follows.
func (c *Client) DeleteExpired(ctx context.Context, o *ExpireOptions) iter.Seq2[Expired, error] {
	return func(yield func(Expired, error) bool) {
		if c.log == nil {
			yield(Expired{}, agent.Errorf(agent.CodeNotSetUp, "deleting expired sessions: %w", ErrNoStore))
			return
		}
		for h, err := range c.log.Store().Heads(ctx, "") {
			if errors.Is(err, agent.CodeChunkDamaged) {
				continue // store check and gc report it
			}
			if err != nil {
				yield(Expired{}, fmt.Errorf("looking for expired sessions: %w", err))
				return
			}
			// A session below another one is deleted with it.
			if strings.Contains(h.Session, "/") {
				continue
			}
			after := h.DeleteAfter()
			if after.IsZero() && time.Now().After(h.Updated.Add(time.Duration(h.Retention))) {
				if after, err = c.deleteAfter(ctx, h); err != nil {
					yield(Expired{}, fmt.Errorf("looking for the end of session %s: %w", h.Session, err))
					return
				}
			}
			if after.IsZero() || time.Now().Before(after) {
				continue
			}
			e := Expired{Session: h.Session, Agent: h.Agent, DeleteAfter: after}
			if !c.expire(ctx, h, &e, cmp.Or(o, &ExpireOptions{})) {
				continue
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// expire deletes a session, unless it is in use, and reports whether it is expired.
func (c *Client) expire(ctx context.Context, h store.Head, e *Expired, o *ExpireOptions) bool {
	ctx, cancel := context.WithTimeout(ctx, expireTimeout)
	defer cancel()
	d := deletion{client: c, version: h.Version, done: DeleteResult{Session: h.Session, Executions: []Execution{}, Store: store.DeleteResult{Sessions: []string{}, Chunks: []string{}}}}
	// Asked first, so that nothing is recorded for a session that is in use.
	err := d.check(ctx)
	if err == nil {
		_, err = d.left(ctx)
	}
	if err == nil && !o.DryRun && o.Before != nil {
		err = o.Before(h.Session)
	}
	if err == nil && !o.DryRun {
		if err = d.do(ctx); err == nil {
			e.Deleted = &d.done
		}
	}
	// In use, written since, or deleted by somebody else.
	if errors.Is(err, agent.CodeBusy) || errors.Is(err, agent.CodeStale) || errors.Is(err, agent.CodeNotFound) {
		return false
	}
	if err != nil {
		e.Error = agent.Errorf(agent.CodeOf(err), "%w", err)
	}
	return true
}
