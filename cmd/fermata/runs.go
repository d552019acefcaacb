package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/render"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
)

func (c *cli) runsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "runs SESSION",
		Short: "List the runs of a session",
		Long: `Runs lists the runs of a session in their order, from the session's log. It also lists
runs that Temporal's retention has removed. It needs the workers' store. Without a server,
or if no worker answers for a live run, it lists what the store has.`,
		Example: `  fermata runs invoice-118
  fermata runs invoice-118 --json | jq -r 'select(.status=="failed").run'`,
		Args: exactArgs(1, "a session"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.ReadLog(cmd.Context(), args[0], func(runs *fermata.Client) error {
				return c.records(cmd.Context(), runs, args[0])
			})
		},
	}
	c.jsonFlag(cmd, "print each run as a line of JSON")
	return cmd
}

func (c *cli) records(ctx context.Context, runs *fermata.Client, session string) error {
	list, err := runs.Runs(ctx, session)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		c.Note("session %s has no run that started yet", session)
		return nil
	}
	t := c.Table()
	defer t.Flush()
	for i, r := range list {
		if c.JSON {
			c.Line(r)
			continue
		}
		if i == 0 {
			t.Row("RUN", "AGENT", "STATUS", "TURNS", "COST", "STARTED", "ENDED", "FORKED FROM")
		}
		status := string(r.Status)
		if r.Reason != "" && r.Status != agent.StatusCompleted {
			status += " (" + untrusted.Line(r.Reason, 60) + ")"
		}
		t.Row(r.Run, untrusted.Name(r.Agent), status, r.Turns, render.Money(r.Cost), render.Clock(r.Started), render.Clock(r.Ended), forkedFrom(session, r.Forked))
	}
	return nil
}

// forkedFrom says which checkpoint a run started from.
func forkedFrom(session string, f *agent.Forked) string {
	if f == nil {
		return "-"
	}
	line := f.Checkpoint
	if f.Session != "" && f.Session != session {
		line += " of " + f.Session
	}
	if f.Retry {
		line += " (retry)"
	}
	return line
}
