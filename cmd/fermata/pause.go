package main

import (
	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
)

func (c *cli) pauseCommand() *cobra.Command {
	h := &verbRun{cli: c, verb: agent.VerbPause}
	return h.command("Hold a run after its current turn", `Pause lets the current turn end, then holds the run and its sub-agents. Nothing is
lost. fermata resume continues the run.`, `  fermata pause invoice-118 --reason "the bank is down"
  fermata pause --query "FermataAgent='payer'" --reason "the bank is down" --yes`)
}
