package main

import (
	"context"

	"github.com/spf13/cobra"

	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
	"github.com/fermata-agents/fermata/live"
)

func (c *cli) attachCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "attach SESSION",
		Short: "Follow the last run of a session",
		Long: `Attach shows the last run of a session from its start and follows it to its end.

On a terminal it asks you what the run asks. Ctrl-C holds the run, and a second
Ctrl-C leaves it held. Without a terminal the command ends when the run is suspended,
and prints how to answer.

The exit status is that of fermata run.`,
		Example: `  fermata attach invoice-118
  fermata attach invoice-118 --json`,
		Args: exactArgs(1, "a session"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.WithServer(cmd.Context(), func(s *connect.Server, runs *fermata.Client) error {
				return c.attach(cmd.Context(), s, runs, args[0])
			})
		},
	}
	c.jsonFlag(cmd, "print each event as a line of JSON, and then the outcome")
	return cmd
}

func (c *cli) attach(ctx context.Context, s *connect.Server, runs *fermata.Client, session string) error {
	run, err := runs.Get(ctx, session)
	if err != nil {
		return err
	}
	r := &runner{cli: c, server: s, runs: runs, run: run, session: session, live: live.NewHub()}
	return r.watch(ctx)
}
