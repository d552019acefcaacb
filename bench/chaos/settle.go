package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
)

// quietLooks is how often in a row nothing must be left to do: a listing may be late by a
// moment.
const quietLooks = 3

// settle waits until all runs are suspended or ended: it resumes held runs, answers requests, wakes
// parked runs, and stops every second daemon.
func (c *operators) settle(ctx context.Context, within time.Duration, mend func()) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for quiet := 0; ; {
		mend()
		live, err := c.live(ctx)
		busy := err != nil
		var all sync.WaitGroup
		var mu sync.Mutex
		gate := make(chan struct{}, 8)
		for session := range live {
			all.Go(func() {
				gate <- struct{}{}
				defer func() { <-gate }()
				rests := c.calm(ctx, session, live)
				mu.Lock()
				defer mu.Unlock()
				busy = busy || !rests
			})
		}
		all.Wait()
		if quiet++; busy {
			quiet = 0
		}
		if quiet == quietLooks || !pause(ctx, 300*time.Millisecond) {
			return
		}
	}
}

// hold holds idle daemons, so that none wakes during the audit.
func (c *operators) hold(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	live, err := c.live(ctx)
	if err != nil {
		return err
	}
	for session, l := range live {
		if l.Agent != daemonAgent {
			continue
		}
		run, err := c.Get(ctx, session)
		if err != nil {
			return err
		}
		if _, err := run.Pause(ctx, "the end", nil); err != nil {
			return err
		}
		if _, err := run.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// live lists the sessions with a live run.
func (c *operators) live(ctx context.Context) (map[string]client.RunInfo, error) {
	live := map[string]client.RunInfo{}
	for l, err := range c.List(ctx, &client.ListOptions{Query: "ExecutionStatus = 'Running'"}) {
		if err != nil {
			return nil, err
		}
		live[l.Session] = l
	}
	return live, nil
}

// parentOf returns the parent's session; empty for a root.
func parentOf(session string) string {
	i := strings.LastIndexByte(session, '/')
	return session[:max(i, 0)]
}

// calm does the next thing for a run, and reports whether it is at rest for good: an idle
// daemon.
func (c *operators) calm(ctx context.Context, session string, live map[string]client.RunInfo) (rests bool) {
	if p := parentOf(session); p != "" && live[p].Session == "" { // it must end by itself
		return false // it has to end by itself
	}
	soon, cancel := context.WithTimeout(ctx, sayWithin)
	defer cancel()
	run, err := c.Get(soon, session)
	if err != nil {
		return false
	}
	s, err := run.Status(soon)
	if err != nil || s.Suspension == nil || s.Status != agent.StatusSuspended {
		return false
	}
	switch w := s.Suspension; {
	case slices.ContainsFunc(w.Holds, func(h agent.Hold) bool { return h.From == agent.HoldOwn }):
		_, err = run.Resume(soon, nil)
	case len(w.Holds) > 0:
	case len(w.Requests) > 0:
		for _, req := range w.Requests {
			c.answer(soon, req, 1, "calm", false, false)
		}
	case s.Agent == daemonAgent:
		if !c.stopped(session) {
			return s.QueuedEvents == nil || s.QueuedEvents.Used == 0
		}
		_, err = run.Stop(soon, "the end", &client.StopOptions{Deadline: 5 * time.Second})
	case w.Kind == agent.SuspensionParked:
		_, err = run.Resume(soon, nil)
	}
	// A run that continued since then is looked at again.
	if err != nil && !errors.Is(err, agent.CodeStale) && !errors.Is(err, agent.CodeClosed) {
		c.became(session, agent.Ack{}, err)
	}
	return false
}

// stopped reports whether a daemon is stopped at the end.
func (c *operators) stopped(session string) bool {
	i := slices.IndexFunc(c.plan.Stories, func(s story) bool { return s.Session == session })
	return i < 0 || i/daemons%2 == 0
}

// restOf says in a few words why a run is suspended.
func restOf(s agent.RunStatus) string {
	if s.Suspension == nil {
		return fmt.Sprintf("%s %s, doing %+v, children %+v, fault %v", s.Status, s.Reason, s.InFlight, s.Children, s.StoreError)
	}
	var asks []string
	for _, r := range s.Suspension.Requests {
		asks = append(asks, fmt.Sprintf("%s %s", r.Type, r.ID))
	}
	return fmt.Sprintf("%s (%s %s) %s, held by %+v, doing %+v, children %+v, fault %v", s.Suspension.Kind, s.Suspension.ID, s.Suspension.Cause, strings.Join(asks, ", "), s.Suspension.Holds, s.InFlight, s.Children, s.StoreError)
}
