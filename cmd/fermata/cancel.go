package main

import (
	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
)

func (c *cli) cancelCommand() *cobra.Command {
	h := &verbRun{cli: c, verb: agent.VerbCancel}
	return h.command("End a run at once, without a handoff", `Cancel ends a run and its sub-agents now. If the run has ended already, it says so
and changes nothing.`, `  fermata cancel invoice-118
  fermata cancel --query "FermataAgent='payer'" --reason "wrong file" --yes`)
}
