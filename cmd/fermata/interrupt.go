package main

import (
	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
)

func (c *cli) interruptCommand() *cobra.Command {
	h := &verbRun{cli: c, verb: agent.VerbInterrupt}
	cmd := h.command("Hold a run at once", `Interrupt holds a run and its sub-agents now. It aborts model calls. Tools have
--grace to return what they have. fermata resume continues the run.`, `  fermata interrupt invoice-118 --reason "the client called"
  fermata interrupt invoice-118 --grace 30s --wait`)
	cmd.Flags().DurationVar(&h.grace, "grace", 0, "how long tools may take to return a partial result, at most 1m (default 5s)")
	return cmd
}
