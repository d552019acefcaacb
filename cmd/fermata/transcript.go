package main

import (
	"context"

	"github.com/spf13/cobra"

	fermata "github.com/fermata-agents/fermata/client"
)

func (c *cli) transcriptCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "transcript SESSION",
		Short: "Print the messages of a session",
		Long: `Transcript prints the messages of a session, from the store and, for a live run, from
the run itself. It needs the workers' store. Without a live run no server is needed.`,
		Example: `  fermata transcript invoice-118
  fermata transcript invoice-118 --json | jq -r 'select(.role=="assistant").parts[].text'`,
		Args: exactArgs(1, "a session"),
		RunE: func(cmd *cobra.Command, args []string) error { return c.transcript(cmd.Context(), args[0]) },
	}
	c.jsonFlag(cmd, "print each message as a line of JSON")
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
			c.Note("session %s has no messages yet", session)
		}
		c.Messages(messages)
		return nil
	})
}
