package main

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/console"
)

// console is the terminal. A command has one: two would take lines from each other.
func (c *cli) console() *console.Console {
	if c.asker == nil {
		c.asker = console.NewConsole(c.in, c.Out, nil)
	}
	return c.asker
}

// pick shows what is open in a session and below it, and lets the person say
// which one is meant, and what. Without a person it names what is open.
func (d *decider) pick(ctx context.Context, runs *fermata.Client, session string, said decision) error {
	open, err := d.open(ctx, runs, session)
	switch {
	case err != nil:
		return err
	case len(open) == 0:
		return agent.Errorf(agent.CodeNotFound, "session %s asks nothing, and nor does any below it", session)
	case !d.terminal || d.JSON:
		return agent.Errorf(agent.CodeInvalidInput, "--request is wanted, the one that was shown to you; open: %s", openNames(open, session)).WithPath("request")
	}
	con := d.console()
	q := open[0]
	if len(open) > 1 {
		for _, q := range open {
			con.Show(q)
			con.Print("")
		}
		if q, err = con.Choose(ctx, open); err != nil {
			return nothingSaid(err)
		}
	}
	if said.empty() {
		if said.AnswerTo, err = con.Ask(ctx, q); err != nil {
			return nothingSaid(err)
		}
		return d.decideAndTell(ctx, runs, q, said)
	}
	if len(open) == 1 {
		con.Show(q)
	}
	sure, err := con.Yes(ctx, string(d.verb)+" "+q.ID+"?")
	if err == nil && !sure {
		err = console.ErrLater
	}
	if err != nil {
		return nothingSaid(err)
	}
	return d.decideAndTell(ctx, runs, q, said)
}

// nothingSaid is an error for a person who says nothing after all.
func nothingSaid(err error) error {
	if errors.Is(err, console.ErrLater) || errors.Is(err, io.EOF) {
		return agent.Errorf(agent.CodeInvalidInput, "nothing was said, and nothing was sent")
	}
	return err
}

// open lists what a session asks, and what those below it do.
func (d *decider) open(ctx context.Context, runs *fermata.Client, session string) ([]agent.Request, error) {
	run, err := runs.Get(ctx, session)
	if err != nil {
		return nil, err
	}
	soon, cancel := context.WithTimeout(ctx, openWithin)
	defer cancel()
	s, err := connect.RetryUntilWorker(soon, d.Connector, func() (*agent.Suspension, error) { return run.Suspension(soon) })
	if err != nil {
		return nil, noAnswer(session, err)
	}
	var list []agent.Request
	if s != nil {
		list = s.Requests
	}
	whole, _ := requestsInFull(ctx, runs, below(ctx, runs, session))
	return append(list, whole...), nil
}

// openNames lists requests by the names that answer them.
func openNames(open []agent.Request, session string) string {
	var names []string
	for _, q := range open {
		name := q.ID + " (" + string(q.Type)
		if q.Call != nil {
			name += ", " + q.Call.Tool
		}
		if q.Session != session {
			name += ", in session " + q.Session
		}
		names = append(names, name+")")
	}
	return strings.Join(names, ", ")
}
