package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/await"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
)

// openWithin bounds the queries for open requests. If a run's worker was killed, the
// server asks another one after five seconds.
const openWithin = 15 * time.Second

// below lists the requests of a session's sub-agents from a listing. An error ends the
// list early: callers look again.
func below(ctx context.Context, runs *fermata.Client, session string) (list []agent.Request) {
	for w, err := range runs.Inbox(ctx, &fermata.InboxOptions{Session: session}) {
		if err != nil {
			return list
		}
		if w.Session != session && w.Type != fermata.RequestWorkerLost {
			list = append(list, w.Request)
		}
	}
	return list
}

// requestsInFull asks the runs for the listed requests with their arguments: nobody is asked to
// decide what can't be shown. silent has the requests whose run does not answer. A request that was
// closed is in neither list.
func requestsInFull(ctx context.Context, runs *fermata.Client, list []agent.Request) (open, silent []agent.Request) {
	ctx, cancel := context.WithTimeout(ctx, openWithin)
	defer cancel()
	for _, q := range list {
		all, err := runs.Request(ctx, q.Session, q.ID)
		switch {
		case err == nil:
			open = append(open, all)
		// Not found means that it was closed since the listing.
		case !errors.Is(err, agent.CodeNotFound):
			silent = append(silent, q)
		}
	}
	return open, silent
}

// suspendedBelow lists the requests below a run that waits only for its sub-agents. The
// run knows of them, but the listing may be late by a moment.
func suspendedBelow(ctx context.Context, runs *fermata.Client, session string) []agent.Request {
	// Visibility is eventually consistent; one second covers the usual delay.
	const looks, between = 20, 50 * time.Millisecond
	for range looks {
		if list := below(ctx, runs, session); len(list) > 0 {
			// Shown even without arguments: the person needs the ids to answer them.
			open, silent := requestsInFull(ctx, runs, list)
			return append(open, silent...)
		}
		if !await.Pause(ctx, between) {
			break
		}
	}
	return nil
}

// openAt lists the open requests of a suspended run and its sub-agents.
func openAt(ctx context.Context, runs *fermata.Client, o *agent.Outcome) []agent.Request {
	open := slices.Clone(o.Suspension.Requests)
	// A flow can ask while the agents of other steps ask, too.
	asksInStep := slices.ContainsFunc(open, func(q agent.Request) bool { return q.Step != "" })
	if (o.Suspension.Kind == agent.SuspensionAwaitingChildren || asksInStep) && runs != nil {
		return append(open, suspendedBelow(ctx, runs, o.Session)...)
	}
	return open
}

// printSuspended shows why a run is suspended, and the commands that let it continue.
func (c *cli) printSuspended(ctx context.Context, runs *fermata.Client, o *agent.Outcome) {
	open := openAt(ctx, runs, o)
	if c.embedded {
		c.Print("  %s   # first: this command's server ends with it", c.devLine())
	}
	for _, q := range open {
		c.Print("")
		c.ask(q)
	}
	s := o.Suspension
	if s.Conditions != nil {
		for _, one := range s.Conditions.List() {
			switch {
			case one.Event == nil:
			case one.Event.Topic == agent.EveryTopic:
				c.Print("  %s", c.CommandLine("emit TOPIC '{…}' --session %s", o.Session))
			default:
				c.Print("  %s", c.CommandLine("emit %s '{…}'", one.Event.Topic))
			}
		}
	}
	for _, h := range s.Holds {
		// An inherited hold is removed where it was set.
		if h.From == agent.HoldInherited {
			c.Print("  %s", c.CommandLine("resume %s", h.Session))
		}
	}
	own := slices.ContainsFunc(s.Holds, func(h agent.Hold) bool { return h.From == agent.HoldOwn })
	// With open requests, or only children or a budget to wait for, a resume would change nothing.
	if own || len(open) == 0 && len(s.Holds) == 0 && !slices.Contains([]agent.SuspensionKind{agent.SuspensionAwaitingChildren, agent.SuspensionAwaitingBudget}, s.Kind) {
		c.Print("  %s", c.CommandLine("resume %s", o.Session))
	}
	if (s.Kind == agent.SuspensionAwaitingChildren || s.Kind == agent.SuspensionAwaitingBudget) && len(open) == 0 {
		c.Print("  %s", c.CommandLine("tree %s", o.Session))
	}
	c.Print("  %s", c.CommandLine("attach %s", o.Session))
}

// answers returns the commands that answer a request.
func (c *cli) answers(q agent.Request) (lines []string) {
	token := ""
	if len(q.Approvers) > 0 {
		// Without a token such a request refuses every answer, so each command shows the flag.
		token = " --token-file FILE   # only " + untrusted.Cut(untrusted.Names(q.Approvers), 200)
	}
	say := func(format string, args ...any) { lines = append(lines, c.CommandLine(format, args...)+token) }
	at := fmt.Sprintf("%s --request %s", q.Session, q.ID)
	switch {
	case q.Type == agent.RequestApproval:
		say("approve %s", at)
		say("reject %s --reason '…'", at)
	case q.Type == agent.RequestClientTool:
		say("answer %s --result '{…}'", at)
		say("reject %s --reason '…'", at)
	case len(q.Choices) > 0:
		say("answer %s --choice 0", at)
	case q.Call != nil && q.Call.Tool == agent.WaitForUserTool: // any message answers it
		lines = append(lines, c.CommandLine("send %s '…'", q.Session))
		say("answer %s '…'", at)
	default:
		say("answer %s '…'", at)
	}
	return lines
}
