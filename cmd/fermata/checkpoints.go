package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/render"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
)

func (c *cli) checkpointsCommand() *cobra.Command {
	var o fermata.CheckpointsOptions
	cmd := &cobra.Command{
		Use:   "checkpoints SESSION [CHECKPOINT]",
		Short: "List the checkpoints of a session",
		Long: `Checkpoints lists a session's checkpoints, the newest first. A run has one before its
first turn (turn 0) and one after each turn. Checkpoints that a fork left behind are
listed too. With a CHECKPOINT, the command shows that checkpoint and the conversation
up to it. fermata fork starts a run from a checkpoint; fermata diff compares two.`,
		Example: `  fermata checkpoints invoice-118 --limit 10
  fermata checkpoints invoice-118 --run 0199a6f1-7c3e --json | jq -r '.items[].checkpoint'
  fermata checkpoints invoice-118 cp-118-9c025a`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				return nil
			}
			return exactArgs(1, "a session, and a checkpoint at most")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.ReadLog(cmd.Context(), args[0], func(runs *fermata.Client) error {
				if len(args) == 2 {
					return c.checkpoint(cmd.Context(), runs, args[0], args[1])
				}
				return c.checkpoints(cmd.Context(), runs, args[0], &o)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Run, "run", "", "only checkpoints of this run; 8 characters of its id are enough")
	f.IntVar(&o.Limit, "limit", 50, "maximum number of checkpoints")
	f.IntVar(&o.Offset, "offset", 0, "number of newest checkpoints to skip")
	c.jsonFlag(cmd, "print the page, or the checkpoint with its messages, as one line of JSON")
	return cmd
}

func (c *cli) checkpoints(ctx context.Context, runs *fermata.Client, session string, o *fermata.CheckpointsOptions) error {
	// Zero would mean the client's default and not "none", which would surprise.
	if o.Limit == 0 {
		return agent.Errorf(agent.CodeInvalidInput, "--limit must be positive").WithPath("limit")
	}
	page, err := runs.Checkpoints(ctx, session, o)
	switch {
	case err != nil:
		return err
	case c.JSON:
		c.Line(page)
		return nil
	case page.Total == 0:
		c.Note("session %s has no checkpoints", session)
		return nil
	case len(page.Items) == 0:
		c.Note("no checkpoints on this page, %d in all", page.Total)
		return nil
	}
	t := c.Table("CHECKPOINT", "RUN", "TURN", "TIME", "COST", "MESSAGES", "PENDING", "LAST MESSAGE")
	for _, p := range page.Items {
		t.Row(p.ID, render.ShortRun(p.Run), p.Turn, render.Clock(p.Time), render.Money(p.Cost), p.Messages, pending(p), untrusted.Line(p.Text, 60))
	}
	t.Flush()
	if page.More {
		c.Note("%d of %d: see --offset %d", len(page.Items), page.Total, o.Offset+len(page.Items))
	}
	return nil
}

// pending returns the calls that were requested before a checkpoint and have no result.
func pending(p agent.Checkpoint) string {
	var calls []string
	for _, call := range p.Pending {
		calls = append(calls, call.ID+" "+untrusted.Cut(untrusted.Name(call.Tool), 40))
	}
	if len(calls) == 0 {
		return "-"
	}
	return strings.Join(calls, ", ")
}

// checkpointLine is a checkpoint with its messages, for programs.
type checkpointLine struct {
	V int `json:"v"`
	agent.Checkpoint
	Said []agent.Message `json:"said"`
}

func (c *cli) checkpoint(ctx context.Context, runs *fermata.Client, session, id string) error {
	p, messages, err := runs.Checkpoint(ctx, session, id)
	switch {
	case err != nil:
		return err
	case c.JSON:
		// append to an empty list: JSON must have [] and not null.
		c.Line(checkpointLine{agent.Version, p, append([]agent.Message{}, messages...)})
		return nil
	}
	t := c.Table()
	t.Field("checkpoint", "%s", p.ID)
	// The checkpoint of an empty session belongs to no run.
	if p.Run != "" {
		t.Field("run", "%s", p.Run)
		t.Field("agent", "%s", untrusted.Name(p.Agent))
		t.Field("turn", "%d, at %s", p.Turn, render.Clock(p.Time))
		t.Field("tokens", "%d in, %d out", p.Usage.Input, p.Usage.Output)
		t.Field("cost", "%s", render.Money(p.Cost))
	}
	for _, n := range p.Tools {
		t.Field("tool", "%s: %s, %d ok", untrusted.Name(n.Tool), counted(n.Calls, "call"), n.OK)
	}
	t.Field("pending", "%s", pending(p))
	if p.Compacted {
		t.Field("compacted", "the model sees a summary of the earlier messages")
	}
	t.Flush()
	c.Print("")
	c.Messages(messages)
	return nil
}
