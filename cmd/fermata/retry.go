package main

import (
	"github.com/spf13/cobra"

	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/live"
)

func (c *cli) retryCommand() *cobra.Command {
	a := &forkRun{runner: &runner{cli: c, live: live.NewHub()}, prepareRun: (*fermata.Client).Retry, what: "retry"}
	cmd := &cobra.Command{
		Use:   "retry SESSION [CHECKPOINT]",
		Short: "Try a failed run again",
		Long: `Retry begins a new run instead of a session's last, which has failed: behind
the last checkpoint from which it can go on, with limits that are fresh, or behind
the CHECKPOINT that you name, or with --start where the failed run began. It
follows the new run as fermata run does. --message says something there, at the
start instead of the run's own message.

What was done is told, and asked for, as fermata fork does. The exit status is
that of run.`,
		Example: `  fermata retry invoice-118
  fermata retry invoice-118 --start --message "Pay by card instead" --yes
  fermata retry invoice-118 --plan --json | jq .again`,
		Args: a.args,
		RunE: a.runE,
	}
	a.flags(cmd)
	return cmd
}
