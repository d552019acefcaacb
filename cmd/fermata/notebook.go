package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
)

func (c *cli) notebookCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "notebook SESSION",
		Short: "Show the notebook of a session",
		Long: `Notebook shows what the model of a session has written into its notebook: its goals,
what is open, and facts with their sources. An agent has a notebook if its definition
says so. The sources are ids of tool calls (t3.1) and messages (m12), files, and
artifacts.

The command needs the workers' store. Without a live run no server is needed.`,
		Example: `  fermata notebook invoice-118
  fermata notebook invoice-118 --json | jq -r '.facts[].text'`,
		Args: exactArgs(1, "a session"),
		RunE: func(cmd *cobra.Command, args []string) error { return c.notebook(cmd.Context(), args[0]) },
	}
	c.jsonFlag(cmd, "print the notebook as one line of JSON")
	return cmd
}

// notebookLine is the output of notebook --json.
type notebookLine struct {
	V       int    `json:"v"`
	Session string `json:"session"`
	agent.Notebook
}

func (c *cli) notebook(ctx context.Context, session string) error {
	return c.ReadLog(ctx, session, func(runs *fermata.Client) error {
		n, err := runs.Notebook(ctx, session)
		switch {
		case err != nil:
			return err
		case c.JSON:
			c.Line(notebookLine{agent.Version, session, n})
			return nil
		case n.Version == 0:
			c.Note("session %s has no notebook, or nothing is written in it yet", session)
			return nil
		}
		c.Print("version    %d, by %s", n.Version, untrusted.Name(n.Call))
		c.section("goals", n.Goals)
		c.section("open", n.OpenItems)
		var facts []string
		for _, f := range n.Facts {
			facts = append(facts, f.Text+" ("+f.Source+")")
		}
		c.section("facts", facts)
		c.section("refs", n.Refs)
		return nil
	})
}

// section prints the entries of a notebook under a title.
func (c *cli) section(title string, lines []string) {
	for _, line := range lines {
		c.Print("%-10s %s", title, untrusted.Line(line, agent.MaxNotebook))
		title = ""
	}
}
