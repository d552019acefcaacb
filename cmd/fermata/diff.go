package main

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/render"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
)

func (c *cli) diffCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "diff SESSION CHECKPOINT CHECKPOINT",
		Short: "Compare two checkpoints",
		Long: `Diff shows the messages that only the first checkpoint has (-), the messages that
only the second has (+), and the keys of the session's state that differ. The two
checkpoints may belong to different runs and to different sides of a fork.`,
		Example: `  fermata diff invoice-118 cp-40-9c025a cp-118-9c025a
  fermata diff invoice-118 cp-40-9c025a cp-118-9c025a --json | jq '.added | length'`,
		Args: exactArgs(3, "a session and two checkpoints"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.ReadLog(cmd.Context(), args[0], func(runs *fermata.Client) error {
				return c.diff(cmd.Context(), runs, args[0], args[1], args[2])
			})
		},
	}
	c.jsonFlag(cmd, "print the difference as one line of JSON")
	return cmd
}

func (c *cli) diff(ctx context.Context, runs *fermata.Client, session, from, to string) error {
	d, err := runs.Diff(ctx, session, from, to)
	switch {
	case err != nil:
		return err
	case c.JSON:
		c.Line(d)
		return nil
	}
	c.Print("%s → %s · %s in common", d.From.ID, d.To.ID, counted(d.Common, "message"))
	c.changed("- ", d.Removed)
	c.changed("+ ", d.Added)
	for _, key := range slices.Sorted(maps.Keys(d.State)) {
		// A key that only the first checkpoint has is null in the difference.
		if value := string(d.State[key]); value == "null" {
			c.Print("state: %s is gone", untrusted.Line(key, 100))
		} else {
			c.Print("state: %s = %s", untrusted.Line(key, 100), untrusted.Line(value, 200))
		}
	}
	return nil
}

// changed prints messages with a mark before each line.
func (c *cli) changed(mark string, messages []agent.Message) {
	for _, m := range messages {
		// The mark is on every line, so text of a message can't look like the other side.
		c.Print("%s", untrusted.Block(mark+strings.ReplaceAll(string(render.Message(m)), "\n", "\n"+mark)))
	}
}
