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

// openWithin bounds the questions for what is open. Where a run's worker was killed, the
// server asks another one after five seconds.
const openWithin = 15 * time.Second

// below lists what runs below a session ask for, as a listing knows it. What can't
// be listed is not there: it is looked for again.
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

// requestsInFull asks the runs for the requests that a listing has found, with their
// arguments: nobody is asked about what can't be shown. Those whose run does not
// answer are silent; one that is open no more is in neither list.
func requestsInFull(ctx context.Context, runs *fermata.Client, list []agent.Request) (open, silent []agent.Request) {
	ctx, cancel := context.WithTimeout(ctx, openWithin)
	defer cancel()
	for _, q := range list {
		all, err := runs.Request(ctx, q.Session, q.ID)
		switch {
		case err == nil:
			open = append(open, all)
		case !errors.Is(err, agent.CodeNotFound):
			silent = append(silent, q)
		}
	}
	return open, silent
}

// suspendedBelow lists what is asked below a run that waits for nothing else. It was
// told of it, and the listing may be behind by a moment.
func suspendedBelow(ctx context.Context, runs *fermata.Client, session string) []agent.Request {
	const looks, between = 20, 50 * time.Millisecond
	for range looks {
		if list := below(ctx, runs, session); len(list) > 0 {
			open, silent := requestsInFull(ctx, runs, list)
			return append(open, silent...)
		}
		if !await.Pause(ctx, between) {
			break
		}
	}
	return nil
}

// openAt lists what is open at a rest, in the run and below it.
func openAt(ctx context.Context, runs *fermata.Client, o *agent.Outcome) []agent.Request {
	open := slices.Clone(o.Suspension.Requests)
	if o.Suspension.Kind == agent.SuspensionAwaitingChildren && runs != nil {
		return append(open, suspendedBelow(ctx, runs, o.Session)...)
	}
	return open
}

// printSuspended says on what a run rests, and what to say for it to go on.
func (c *cli) printSuspended(ctx context.Context, runs *fermata.Client, o *agent.Outcome) {
	open := openAt(ctx, runs, o)
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
		if h.From == agent.HoldInherited {
			c.Print("  %s", c.CommandLine("resume %s", h.Session))
		}
	}
	own := slices.ContainsFunc(s.Holds, func(h agent.Hold) bool { return h.From == agent.HoldOwn })
	if own || len(open) == 0 && len(s.Holds) == 0 && !slices.Contains([]agent.SuspensionKind{agent.SuspensionAwaitingChildren, agent.SuspensionAwaitingBudget}, s.Kind) {
		c.Print("  %s", c.CommandLine("resume %s", o.Session))
	}
	if (s.Kind == agent.SuspensionAwaitingChildren || s.Kind == agent.SuspensionAwaitingBudget) && len(open) == 0 {
		c.Print("  %s", c.CommandLine("tree %s", o.Session))
	}
	c.Print("  %s", c.CommandLine("attach %s", o.Session))
}

// answers are the commands that answer a request.
func (c *cli) answers(q agent.Request) (lines []string) {
	token := ""
	if len(q.Approvers) > 0 {
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
	default:
		say("answer %s '…'", at)
	}
	return lines
}
