package main

import (
	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
)

// policyFlag gives a command that works the flag --policy.
func (c *cli) policyFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.host.Policy, "policy", "", "file that says who may say what to runs (default "+env.Policy+")")
}
