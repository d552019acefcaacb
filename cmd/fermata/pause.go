package main

import (
	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
)

func (c *cli) pauseCommand() *cobra.Command {
	h := &verbRun{cli: c, verb: agent.VerbPause}
	return h.command("Hold a run at the end of its turn", `Pause lets the turn in progress end, and then holds the run and all below it. What
was done stays; resume lets it go on.`, `  fermata pause invoice-118 --reason "the bank is down"
  fermata pause --query "FermataAgent='payer'" --reason "the bank is down" --yes`)
}
