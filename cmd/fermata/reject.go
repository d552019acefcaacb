package main

import (
	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
)

func (c *cli) rejectCommand() *cobra.Command {
	d := &decider{cli: c, verb: agent.VerbReject}
	cmd := d.command("reject SESSION", "Reject a tool call",
		"Reject refuses the tool call that a run asks about. The model reads the reason.", `  fermata reject invoice-118
  fermata reject invoice-118 --request q-7 --reason "wrong account"`)
	cmd.Flags().StringVar(&d.reason, "reason", "", "the reason; the model reads it")
	return cmd
}
