package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// deletedSession is a deleted session with its sub-agents' sessions.
type deletedSession struct {
	logs []*ledger // from before the deletion
	anew bool      // a run has started in it since
}

// eraseWithin is how long a deletion is tried.
const eraseWithin = time.Minute

// deleteSessions deletes the ended sessions whose stories say so, and starts some again.
// Other writes have mishaps at the same time.
func (c *operators) deleteSessions(ctx context.Context) error {
	live, err := c.live(ctx)
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	gate := make(chan struct{}, 4)
	for i, s := range c.plan.Stories {
		if !s.Erase || i%followed == 0 || s.Agent == daemonAgent || live[s.Session].Session != "" {
			continue
		}
		all.Go(func() {
			gate <- struct{}{}
			defer func() { <-gate }()
			c.deleteSession(ctx, s)
		})
	}
	all.Wait()
	return nil
}

func (c *operators) deleteSession(ctx context.Context, s story) {
	e := &deletedSession{}
	for _, prefix := range []string{s.Session, s.Session + "/"} {
		for h, err := range c.stored.Heads(ctx, prefix) {
			if err != nil {
				c.report.find(lost, s.Session, "", "what it has can't be listed: %v", err)
				return
			}
			if prefix == s.Session && h.Session != s.Session {
				continue // another session whose name has the same start
			}
			events, err := collect(c.Events(ctx, h.Session, nil))
			if err != nil {
				c.report.find(lost, h.Session, h.Run, "its events can't be read before it is deleted: %v", err)
				return
			}
			l := newLedger(h.Session, c.report.find)
			l.read(events)
			e.logs = append(e.logs, l)
		}
	}
	c.mu.Lock()
	c.erasures[s.Session] = e
	c.mu.Unlock()
	soon, cancel := context.WithTimeout(ctx, eraseWithin)
	defer cancel()
	for {
		_, err := c.Delete(soon, s.Session)
		if err == nil || errors.Is(err, agent.CodeNotFound) { // an earlier attempt deleted it
			break
		}
		if !pause(soon, 200*time.Millisecond) {
			c.report.find(wrong, s.Session, "", "it can't be deleted: %v", err)
			return
		}
	}
	if s.Anew {
		e.anew = true
		c.begin(ctx, story{Session: s.Session, Agent: s.Agent, Text: s.Text})
		c.listed(soon, s.Session)
	}
}

// listed waits until a run that has started is listed, or has ended: else nobody would wait for its
// end, since a listing may be late.
func (c *operators) listed(ctx context.Context, session string) {
	for {
		live, err := c.live(ctx)
		if err == nil && live[session].Session != "" {
			return
		}
		run, err := c.Get(ctx, session)
		if err == nil {
			st, err := run.Status(ctx)
			if err == nil && st.Status.Ended() {
				return
			}
		}
		if !pause(ctx, 200*time.Millisecond) {
			return
		}
	}
}

// logsOf returns the ledgers of a session, with those from before its deletion.
func (a *audit) logsOf(session string) (list []*ledger) {
	if l := a.ledgers[session]; l != nil {
		list = append(list, l)
	}
	for _, e := range a.erasures {
		for _, l := range e.logs {
			if l.session == session {
				list = append(list, l)
			}
		}
	}
	return list
}

// deletedSessions checks that deleted sessions are gone, unless they were started again.
func (a *audit) deletedSessions(ctx context.Context) {
	for session, e := range a.erasures {
		a.report.Deleted++
		if e.anew {
			continue
		}
		for _, one := range append([]string{session}, namesOf(e.logs)...) {
			if h, err := a.store.Head(ctx, one); !errors.Is(err, agent.CodeNotFound) {
				a.report.find(doubled, one, h.Run, "it was deleted, and a late write has brought it back at version %d (%v)", h.Version, err)
			}
		}
	}
}

func namesOf(logs []*ledger) (names []string) {
	for _, l := range logs {
		names = append(names, l.session)
	}
	return names
}
