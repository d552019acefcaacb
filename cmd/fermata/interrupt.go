package main

import (
	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
)

func (c *cli) interruptCommand() *cobra.Command {
	h := &verbRun{cli: c, verb: agent.VerbInterrupt}
	cmd := h.command("Hold a run at once", `Interrupt holds a run and all below it now: model calls are given up, tools have
--grace to give what they have. What was done stays; resume lets it go on.`, `  fermata interrupt invoice-118 --reason "the client rings"
  fermata interrupt invoice-118 --grace 30s --wait`)
	cmd.Flags().DurationVar(&h.grace, "grace", 0, "how long tools may take to give a partial result, at most 1m (default 5s)")
	return cmd
}
