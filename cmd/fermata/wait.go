package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
)

func (c *cli) waitCommand() *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "wait SESSION",
		Short: "Wait for a run and print its outcome",
		Long: `Wait waits until a session's last run is suspended or ended. It prints the run's answer,
or what the run waits for and how to answer. It needs no worker.

The exit status is that of fermata run, and 7 after --timeout. The run continues then.`,
		Example: `  fermata wait 0199a6f1-… --timeout 5m
  fermata wait invoice-118 --json | jq .output`,
		Args: exactArgs(1, "a session"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.WithServer(cmd.Context(), func(s *connect.Server, runs *fermata.Client) error {
				return c.wait(cmd.Context(), s, runs, args[0], timeout)
			})
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "how long to wait (default no limit)")
	c.jsonFlag(cmd, "print the outcome as one line of JSON")
	return cmd
}

// early is how much sooner than our own clock a connection may report that the time is
// up.
const early = 100 * time.Millisecond

func (c *cli) wait(ctx context.Context, s *connect.Server, runs *fermata.Client, session string, timeout time.Duration) error {
	run, err := runs.Get(ctx, session)
	if err != nil {
		return err
	}
	waiting, startedAt := ctx, time.Now()
	if timeout > 0 {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	c.FollowQueue(ctx, s, session) // or the note would be about workers of another one
	done := c.noteNoWorker(waiting, s)
	// The server keeps the wait open, so no worker is needed.
	o, err := run.Wait(waiting)
	done()
	switch {
	case err == nil:
	case timeout > 0 && time.Since(startedAt) > timeout-early && ctx.Err() == nil:
		return agent.Errorf(agent.CodeTimeout, "session %s did not end or suspend within %s; its run continues", session, timeout)
	default:
		return c.lost(s, session, err)
	}
	return c.outcome(ctx, runs, run, o)
}
