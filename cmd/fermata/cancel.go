package main

import (
	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
)

func (c *cli) cancelCommand() *cobra.Command {
	h := &verbRun{cli: c, verb: agent.VerbCancel}
	return h.command("End a run now, without a handoff", `Cancel ends a run and its sub-agents now. Calls in flight have 5 seconds to return:
what they return is kept, and then their outcome is unknown. A second cancel ends
that wait. If the run has ended already, cancel says so and changes nothing.`, `  fermata cancel invoice-118
  fermata cancel --query "FermataAgent='payer'" --reason "wrong file" --yes`)
}
