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
		Short: "Retry a failed run",
		Long: `Retry starts a new run in place of a session's last run, which failed. The new run
starts from the last usable checkpoint, from the CHECKPOINT that you name, or with
--start where the failed run started. Its limits count from zero. --message adds a
message at the checkpoint; with --start it replaces the run's own message.

Of a flow, what failed is made again, and --redo PATH makes further steps again.

Retry lists tool calls that may happen again, and of a flow all steps with what happens
to them. It asks as fermata fork does, but not about a flow's steps that failed. It
follows the new run as fermata run does. The exit status is that of fermata run.`,
		Example: `  fermata retry invoice-118
  fermata retry invoice-118 --start --message "Pay by card instead" --yes
  fermata retry invoice-118 --plan --json | jq .may_repeat`,
		Args: a.args,
		RunE: a.runE,
	}
	a.flags(cmd)
	return cmd
}
