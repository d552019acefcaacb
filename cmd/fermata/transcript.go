package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/store"
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
	return c.withLog(ctx, session, func(runs *fermata.Client) error {
		done := c.tellsOfWaiting()
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

// withLog gives a command what reads a session's log: from the store and from the
// run that lives, or, where no server runs, from the store alone, and says so.
func (c *cli) withLog(ctx context.Context, session string, do func(*fermata.Client) error) error {
	s, err := c.look(ctx)
	if err != nil {
		return err
	}
	if s != nil {
		defer s.close()
		runs, err := c.client(ctx, s)
		if err != nil {
			return err
		}
		if _, err := c.openStore(ctx); err != nil {
			return err
		}
		return c.withQueueHint(ctx, s, session, do(runs))
	}
	transcripts, err := c.openStore(ctx)
	if err != nil {
		return err
	}
	head, err := transcripts.Head(ctx, session)
	if errors.Is(err, agent.CodeNotFound) {
		_, none := c.find(ctx)
		return errors.Join(none, err)
	}
	if err != nil {
		return err
	}
	c.noteStoreOnly(head)
	return do(fermata.New(nil, &fermata.Options{Store: transcripts}))
}

// noteStoreOnly says what the store alone can know of a session.
func (c *cli) noteStoreOnly(head store.Head) {
	when := head.Updated.Local().Format(time.DateTime)
	if head.Status.Ended() {
		c.Note("no Temporal server runs: this is what the store has, up to the run that was %s at %s", head.Status, when)
	} else {
		c.Note("no Temporal server runs: this is what the store had at %s of a run that is not at its end", when)
	}
}
