package main

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"time"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/render"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
	"github.com/fermata-agents/fermata/signals"
)

func (c *cli) eventsCommand() *cobra.Command {
	var o fermata.EventsOptions
	cmd := &cobra.Command{
		Use:   "events SESSION",
		Short: "Print the events of a session",
		Long: `Events prints the events of all runs of a session, one a line, with cursor and time.
They come from the store and, for a live run, from the run itself. Without a live run
no server is needed.

--follow prints new events as they come, also those of the next runs, until Ctrl-C.
--after CURSOR continues after an event, without gaps and repetitions. With the server
of the data directory, or with a broker in ` + env.Live + `, --follow also prints
what is live: pieces of replies and progress of tools. These have no cursor.`,
		Example: `  fermata events invoice-118
  fermata events invoice-118 --follow
  fermata events invoice-118 --after 118 --json | jq -r 'select(.type=="message").data.parts[].text'`,
		Args: exactArgs(1, "a session"),
		RunE: func(cmd *cobra.Command, args []string) error { return c.events(cmd.Context(), args[0], o) },
	}
	cmd.Flags().StringVar(&o.After, "after", "", "only events after the one with this cursor")
	cmd.Flags().BoolVar(&o.Follow, "follow", false, "print new events as they come, until Ctrl-C")
	c.jsonFlag(cmd, "print each event as a line of JSON")
	return cmd
}

func (c *cli) events(ctx context.Context, session string, o fermata.EventsOptions) error {
	// A bad cursor is reported before a server is needed.
	if _, err := signals.CursorSeq(o.After); err != nil {
		return err
	}
	s, err := c.Look(ctx)
	switch {
	case err != nil:
		return err
	// Following needs a server. Find says what is missing.
	case s == nil && o.Follow:
		_, err := c.Find(ctx)
		return err
	case s == nil:
		return c.storedEvents(ctx, session, o)
	}
	defer s.Close()
	runs, err := c.Client(ctx, s)
	if err != nil {
		return err
	}
	if !o.Follow {
		if _, err := c.OpenStore(ctx); err != nil {
			return err
		}
		// A database may be slow; say so instead of looking like an empty session.
		done := c.NoteWaiting()
		last, err := c.printEvents(runs.Events(ctx, session, &o))
		done()
		if err == nil && last == "" {
			c.noteNoEvents(session, o.After)
		}
		return c.WithQueueHint(ctx, s, session, err)
	}
	// Live events are optional: without a connection for them, only recorded events are printed.
	far, err := c.LiveEnds(s)
	if err != nil {
		return err
	}
	o.Live = far != nil
	return c.WithQueueHint(ctx, s, session, c.followEvents(ctx, runs, session, o))
}

// storedEvents prints what the store alone has.
func (c *cli) storedEvents(ctx context.Context, session string, o fermata.EventsOptions) error {
	kept, err := c.OpenStore(ctx)
	if err != nil {
		return err
	}
	// The store alone may miss the last events of a run that was live; the note says so.
	last, err := c.printEvents(fermata.StoredEvents(ctx, kept, session, o.After))
	if err != nil {
		return err
	}
	if last == "" {
		c.noteNoEvents(session, o.After)
	}
	c.Note("no Temporal server runs: this is what the store has")
	return nil
}

// noteNoEvents says that nothing was printed, and why.
func (c *cli) noteNoEvents(session, after string) {
	if after != "" {
		c.Note("session %s has no events after %s", session, after)
		return
	}
	c.Note("session %s has no events: no run of it has begun", session)
}

// followEvents prints events until Ctrl-C, and then how to continue.
func (c *cli) followEvents(ctx context.Context, runs *fermata.Client, session string, o fermata.EventsOptions) error {
	pressed, giveBack := c.keys.Take()
	defer giveBack()
	following, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		// following ends with the command, so the goroutine never outlives it.
		select {
		case <-pressed:
			stop()
		case <-following.Done():
		}
	}()
	last, err := c.printEvents(runs.Events(following, session, &o))
	// Without a new event, continue where this command started, if that is a cursor of this session.
	if last == "" && !errors.Is(err, agent.CodeInvalidInput) {
		last = o.After
	}
	if last != "" {
		c.Note("%s continues from here", c.CommandLine("events %s --follow --after %s", session, last))
	}
	// Ctrl-C is how following ends, so it is no error.
	if following.Err() != nil && ctx.Err() == nil {
		return nil
	}
	return err
}

// printEvents prints events and returns the cursor of the last one.
func (c *cli) printEvents(events iter.Seq2[fermata.Event, error]) (last string, err error) {
	for e, err := range events {
		if err != nil {
			return last, err
		}
		// Live events have no cursor, so the last recorded one stays.
		last = cmp.Or(e.Cursor(), last)
		if c.JSON {
			c.Line(e)
		}
		// A closed pipe, such as that of head, ends the reading.
		if err := c.Out.Failed(); err != nil {
			return last, err
		}
		if c.JSON {
			continue
		}
		what := render.Event(e.Session, e.Event)
		if e.Live != nil {
			what = render.Words(e.Live.Data.Call, e.Live.Data.Text)
		}
		c.Print("%5s  %s  %-16s %s", e.Cursor(), e.Time.Local().Format(time.DateTime), e.Type, untrusted.Line(what, maxWhat))
	}
	return last, nil
}

// maxWhat bounds the description of an event on its line.
const maxWhat = 120
