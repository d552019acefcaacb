package main

import (
	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
)

func (c *cli) stopCommand() *cobra.Command {
	h := &verbRun{cli: c, verb: agent.VerbStop}
	cmd := h.command("End a run with a handoff", `Stop ends a run and its sub-agents. Each writes a handoff: what is done and what is
left (see fermata handoff). Work in progress has until --deadline.`, `  fermata stop invoice-118 --reason "budget meeting" --wait
  fermata stop --query "FermataAgent='payer'" --dry-run`)
	cmd.Flags().DurationVar(&h.deadline, "deadline", 0, "when the run ends even if the handoff is incomplete, from 2s to 1h (default 30s)")
	return cmd
}
