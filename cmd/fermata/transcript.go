package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
)

func (c *cli) transcriptCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "transcript SESSION",
		Short: "Print the messages of a session",
		Long: `Transcript prints the messages of a session, from the store and, for a live run, from
the run itself. It needs the workers' store. Without a server, or if no worker answers for
the run, it prints what the store has. If the last run's agent has reminders, they come last:
each of its requests ends with them.`,
		Example: `  fermata transcript invoice-118
  fermata transcript invoice-118 --json | jq -r 'select(.role=="assistant").parts[].text'`,
		Args: exactArgs(1, "a session"),
		RunE: func(cmd *cobra.Command, args []string) error { return c.transcript(cmd.Context(), args[0]) },
	}
	c.jsonFlag(cmd, "print each message as a line of JSON")
	return cmd
}

func (c *cli) transcript(ctx context.Context, session string) error {
	return c.ReadLog(ctx, session, func(runs *fermata.Client) error {
		done := c.NoteWaiting()
		messages, err := runs.Transcript(ctx, session)
		var reminders agent.Message
		if err == nil {
			reminders, err = runs.Reminders(ctx, session)
		}
		done()
		if err != nil {
			return err
		}
		if len(messages) == 0 {
			c.Note("session %s has no messages yet", session)
		}
		if len(reminders.Parts) > 0 {
			messages = append(messages, reminders)
		}
		c.Messages(messages)
		return nil
	})
}
