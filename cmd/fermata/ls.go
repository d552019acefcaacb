package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/render"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
)

func (c *cli) lsCommand() *cobra.Command {
	var f fermata.ListOptions
	var status string
	limit, suspended := 50, false
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List runs, the latest first",
		Long: `Ls lists runs from Temporal's visibility, the latest first. It needs no worker.

With --suspended it lists only suspended runs, and asks each why it waits. The table has
who suspended it, what it waits for and the reason; --json also has the conditions, the
requests and the last event before the wait.`,
		Example: `  fermata ls --status running
  fermata ls --agent reviewer --older 24h
  fermata ls --suspended --json | jq 'select(.age_ms > 86400000)'
  fermata ls --query "FermataWaitsFor='approval'" --json`,
		Args: exactArgs(0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if suspended && status != "" {
				return agent.Errorf(agent.CodeInvalidInput, "--suspended and --status exclude each other")
			}
			f.Status, f.TaskQueue = agent.Status(status), c.TaskQueue
			if err := checkFilter(f, limit); err != nil {
				return err
			}
			return c.WithServer(cmd.Context(), func(_ *connect.Server, runs *fermata.Client) error {
				if suspended {
					return c.listSuspended(cmd.Context(), runs, f, limit)
				}
				return c.list(cmd.Context(), runs, f, limit)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.Agent, "agent", "", "only runs of this agent")
	flags.StringVar(&status, "status", "", "only pending, running, suspended, completed, failed, cancelled or stopped runs")
	olderFlag(flags, &f.Older, "only runs that have had their status for this long, such as 24h or 7d")
	flags.BoolVar(&suspended, "suspended", false, "only suspended runs, each with its suspension")
	flags.StringVar(&f.Query, "query", "", "a further condition in Temporal's list filter language")
	flags.IntVar(&limit, "limit", limit, "maximum number of runs")
	c.jsonFlag(cmd, "print each run as a line of JSON")
	return cmd
}

func checkFilter(f fermata.ListOptions, limit int) error {
	switch {
	// Suspending lasts only a moment, so listings have no such filter.
	case f.Status != "" && (!f.Status.Known() || f.Status == agent.StatusSuspending):
		return agent.Errorf(agent.CodeInvalidInput, "--status must be pending, running, suspended, completed, failed, cancelled or stopped, not %q", f.Status)
	case f.Older < 0:
		return agent.Errorf(agent.CodeInvalidInput, "--older must be positive")
	case limit < 1:
		return agent.Errorf(agent.CodeInvalidInput, "--limit must be positive")
	}
	if f.Agent != "" {
		return agent.CheckName(f.Agent)
	}
	return nil
}

func (c *cli) list(ctx context.Context, runs *fermata.Client, f fermata.ListOptions, limit int) error {
	t := c.Table()
	defer t.Flush()
	n := 0
	for l, err := range runs.List(ctx, &f) {
		if err != nil {
			return badQuery(f.Query, err)
		}
		// One more than the limit was read, so there are more.
		if n++; n > limit {
			t.Flush()
			c.Note("there are more than %d: see --limit, --status, --agent", limit)
			return nil
		}
		if c.JSON {
			c.Line(l)
			continue
		}
		if n == 1 {
			t.Row("SESSION", "AGENT", "STATUS", "FOR", "WAITS FOR", "TURN", "COST", "TASK")
		}
		status := string(l.Status)
		// A completed run's reason is only the word for its completion.
		if l.Reason != "" && l.Status != agent.StatusCompleted {
			status += " (" + untrusted.Line(l.Reason, 40) + ")"
		}
		if !l.DeleteAfter.IsZero() {
			status += ", kept until " + l.DeleteAfter.Local().Format(time.DateTime)
		}
		t.Row(untrusted.Name(l.Session), untrusted.Name(l.Agent), status, render.Age(l.Since), untrusted.Cut(untrusted.Names(l.WaitsFor), 60), l.Turn, render.Money(l.Cost), untrusted.Line(l.Task, 50))
	}
	if n == 0 {
		c.Note("no runs")
	}
	return nil
}

// listSuspended is ls --suspended.
func (c *cli) listSuspended(ctx context.Context, runs *fermata.Client, f fermata.ListOptions, limit int) error {
	t := c.Table()
	defer t.Flush()
	n := 0
	for s, err := range runs.Suspended(ctx, &f) {
		if err != nil {
			return badQuery(f.Query, err)
		}
		if n++; n > limit {
			t.Flush()
			c.Note("there are more than %d: see --limit, --agent", limit)
			return nil
		}
		if c.JSON {
			c.Line(s)
			continue
		}
		if n == 1 {
			t.Row("SESSION", "AGENT", "FOR", "BY", "WAITS FOR", "REASON")
		}
		by, reason := "?", s.Reason
		switch {
		case s.Suspension != nil:
			by = string(s.Suspension.Initiator)
		case s.Error != nil:
			reason = "no answer: " + string(s.Error.Code)
		}
		t.Row(untrusted.Name(s.Session), untrusted.Name(s.Agent), render.Age(s.Since), by, untrusted.Cut(untrusted.Names(s.WaitsFor), 60), untrusted.Line(reason, 80))
	}
	if n == 0 {
		c.Note("no suspended runs")
	}
	return nil
}
