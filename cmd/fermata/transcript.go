package main

import (
	"context"

	"github.com/spf13/cobra"

	fermata "github.com/fermata-agents/fermata/client"
)

func (c *cli) transcriptCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "transcript SESSION",
		Short: "Print all that was said in a session",
		Long: `Transcript prints the messages of a session, from the store and, of a run that
still lives, from the run itself. It needs the store that the workers use. The
transcript of a session at rest is printed also where no server runs.`,
		Example: `  fermata transcript invoice-118
  fermata transcript invoice-118 --json | jq -r 'select(.role=="assistant").parts[].text'`,
		Args: wants(1, "a session"),
		RunE: func(cmd *cobra.Command, args []string) error { return c.transcript(cmd.Context(), args[0]) },
	}
	c.jsonFlag(cmd, "print one message as JSON a line")
	return cmd
}

func (c *cli) transcript(ctx context.Context, session string) error {
	return c.WithLog(ctx, session, func(runs *fermata.Client) error {
		done := c.NoteWaiting()
		messages, err := runs.Transcript(ctx, session)
		done()
		if err != nil {
			return err
		}
		if len(messages) == 0 {
			c.Note("nothing was said in session %s yet", session)
		}
		c.Messages(messages)
		return nil
	})
}
