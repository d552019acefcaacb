package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/story"
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
	messages, err := c.messages(ctx, session)
	if err != nil {
		return err
	}
	for i, m := range messages {
		if c.json {
			c.line(m)
			continue
		}
		if i > 0 {
			c.print("")
		}
		c.printMessage(m)
	}
	if len(messages) == 0 {
		c.note("nothing was said in session %s yet", session)
	}
	return nil
}

func (c *cli) messages(ctx context.Context, session string) ([]agent.Message, error) {
	s, err := c.look(ctx)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return c.stored(ctx, session)
	}
	defer s.close()
	runs, err := c.client(s)
	if err != nil {
		return nil, err
	}
	return runs.Transcript(ctx, session)
}

// stored reads what the store alone has of a session: all of it, if its last run
// is at its end.
func (c *cli) stored(ctx context.Context, session string) ([]agent.Message, error) {
	dir, err := c.openStore()
	if err != nil {
		return nil, err
	}
	head, err := dir.Head(ctx, session)
	if errors.Is(err, agent.NotFound) {
		_, none := c.find(ctx)
		return nil, errors.Join(none, err)
	}
	if err != nil {
		return nil, err
	}
	view, err := store.NewLog(dir).View(ctx, head.Digest)
	if err != nil {
		return nil, err
	}
	when := head.Updated.Local().Format(time.DateTime)
	if head.Status.Ended() {
		c.note("no Temporal server runs: this is what the store has, up to the run that was %s at %s", head.Status, when)
	} else {
		c.note("no Temporal server runs: this is what the store had at %s of a run that is not at its end", when)
	}
	return view.Messages(), nil
}

func (c *cli) printMessage(m agent.Message) {
	who := string(m.Role)
	switch {
	case m.Note != "":
		who = "runtime (" + string(m.Note) + ")"
	case m.Model != "":
		who += " (" + m.Model + ")"
	case m.By != "":
		who += " (" + story.Line(m.By, 60) + ")"
	}
	c.print("== %s", who)
	for _, p := range m.Parts {
		switch {
		case p.Type == agent.PartThinking:
			c.print("[thinking] %s", story.Clean(p.Text))
		case p.Text != "":
			c.print("%s", story.Clean(p.Text))
		case p.Call != nil:
			c.print("[call %s] %s %s", p.Call.ID, p.Call.Tool, story.Clean(string(p.Call.Arguments)+p.Call.Malformed))
		case p.Result != nil:
			c.print("[result %s, %s] %s", p.Result.Call, p.Result.Status, story.Clean(p.Result.Text))
		}
	}
}
