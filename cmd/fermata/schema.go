package main

import (
	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/cmd/fermata/internal/agentsfile"
)

func (c *cli) schemaCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the agents file",
		Long: `Schema prints the JSON Schema of the agents file that this version reads. An editor with
the YAML language server completes and checks an agents file whose first line is

  # yaml-language-server: $schema=fermata.schema.json`,
		Example: `  fermata schema > fermata.schema.json`,
		Args:    exactArgs(0, "no argument"),
		RunE: func(*cobra.Command, []string) error {
			if c.JSON {
				c.Line(agentsfile.Schema())
				return nil
			}
			_, err := c.Out.Write(agentsfile.Schema())
			return err
		},
	}
	c.jsonFlag(cmd, "print it as one line of JSON")
	return cmd
}
