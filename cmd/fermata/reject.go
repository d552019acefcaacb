package main

import (
	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
)

func (c *cli) rejectCommand() *cobra.Command {
	d := &decider{cli: c, verb: agent.VerbReject}
	cmd := d.command("reject SESSION", "Refuse a call",
		"Reject refuses the call that a run asks about. The model is told the reason.", `  fermata reject invoice-118
  fermata reject invoice-118 --request q-7 --reason "wrong account"`)
	cmd.Flags().StringVar(&d.reason, "reason", "", "why: the model is told")
	return cmd
}
