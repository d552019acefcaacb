package main

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/render"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
)

func (c *cli) eventsCommand() *cobra.Command {
	var o fermata.EventsOptions
	cmd := &cobra.Command{
		Use:   "events SESSION",
		Short: "Print what has happened in a session",
		Long: `Events prints the events of a session, over all its runs, one a line: its cursor,
when it was, what it is. They come from the store and, of a run that still lives,
from the run itself. The events of a session at rest are printed also where no
server runs.

--follow goes on as they come, over the ends of runs, until Ctrl-C. --after CURSOR
goes on behind an event that was seen: nothing is left out, nothing comes twice.
With the server of the data directory, or a broker that ` + liveVariable + ` names, --follow
also prints what is live, without a cursor: pieces of replies and remarks of tools.`,
		Example: `  fermata events invoice-118
  fermata events invoice-118 --follow
  fermata events invoice-118 --after 118 --json | jq -r 'select(.type=="message").data.parts[].text'`,
		Args: wants(1, "a session"),
		RunE: func(cmd *cobra.Command, args []string) error { return c.events(cmd.Context(), args[0], o) },
	}
	cmd.Flags().StringVar(&o.After, "after", "", "only events behind the one with this cursor")
	cmd.Flags().BoolVar(&o.Follow, "follow", false, "go on as they come, until Ctrl-C")
	c.jsonFlag(cmd, "print one event as JSON a line")
	return cmd
}

func (c *cli) events(ctx context.Context, session string, o fermata.EventsOptions) error {
	if _, err := agent.CursorSeq(o.After); err != nil {
		return err
	}
	s, err := c.look(ctx)
	switch {
	case err != nil:
		return err
	case s == nil && o.Follow:
		_, err := c.find(ctx)
		return err
	case s == nil:
		return c.storedEvents(ctx, session, o)
	}
	defer s.close()
	runs, err := c.client(ctx, s)
	if err != nil {
		return err
	}
	if !o.Follow {
		if _, err := c.openStore(ctx); err != nil {
			return err
		}
		defer c.tellsOfWaiting()()
		_, err := c.printEvents(runs.Events(ctx, session, &o))
		return c.withQueueHint(ctx, s, session, err)
	}
	far, err := c.liveEnds(s)
	if err != nil {
		return err
	}
	o.Live = far != nil
	return c.withQueueHint(ctx, s, session, c.followEvents(ctx, runs, session, o))
}

// storedEvents prints what the store alone has.
func (c *cli) storedEvents(ctx context.Context, session string, o fermata.EventsOptions) error {
	kept, err := c.openStore(ctx)
	if err != nil {
		return err
	}
	if _, err = c.printEvents(fermata.StoredEvents(ctx, kept, session, o.After)); err != nil {
		return err
	}
	c.note("no Temporal server runs: this is what the store has")
	return nil
}

// followEvents prints events until Ctrl-C, and then where to go on.
func (c *cli) followEvents(ctx context.Context, runs *fermata.Client, session string, o fermata.EventsOptions) error {
	pressed, giveBack := c.keys.take()
	defer giveBack()
	following, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-pressed:
			stop()
		case <-following.Done():
		}
	}()
	last, err := c.printEvents(runs.Events(following, session, &o))
	if last == "" {
		last = o.After
	}
	if last != "" {
		c.note("%s goes on from here", c.commandLine("events %s --follow --after %s", session, last))
	}
	if following.Err() != nil && ctx.Err() == nil {
		return nil // it was asked for
	}
	return err
}

// printEvents prints events and returns the cursor of the last.
func (c *cli) printEvents(events iter.Seq2[fermata.Event, error]) (last string, err error) {
	for e, err := range events {
		if err != nil {
			return last, err
		}
		last = cmp.Or(e.Cursor(), last)
		if c.json {
			c.line(e)
		}
		if err := c.out.failed(); err != nil {
			return last, err
		}
		if c.json {
			continue
		}
		what := whatOf(e.Event)
		if e.Live != nil {
			what = words(e.Live.Data.Call, e.Live.Data.Text)
		}
		c.print("%5s  %s  %-16s %s", e.Cursor(), e.Time.Local().Format(time.DateTime), e.Type, untrusted.Line(what, maxWhat))
	}
	return last, nil
}

// maxWhat bounds what a line tells of an event.
const maxWhat = 120

// whatOf tells an event in a few words; empty if its type says all.
func whatOf(e agent.Event) string {
	switch {
	case e.Started != nil && e.Started.Spec != nil:
		return fmt.Sprintf("%s · %s · run %s", untrusted.Name(e.Started.Spec.Name), untrusted.Name(e.Started.Spec.Model), e.Started.Run)
	case e.Message != nil:
		return whatIsSaid(*e.Message)
	case e.Call != nil:
		return words(e.Call.Call, untrusted.Name(e.Call.Tool), string(e.Call.Status))
	case e.Snapshot != nil:
		return fmt.Sprintf("turn %d · checkpoint %s", e.Turn, agent.CheckpointID(e.Seq))
	case e.Outcome != nil:
		return render.Summary(e.Outcome)
	case e.Suspension != nil:
		return e.Suspension.ID + " " + render.Waits(e.Suspension)
	case e.Resumed != nil:
		return words(e.Resumed.Suspension, string(e.Resumed.Cause), untrusted.Name(e.Resumed.By))
	case e.Hold != nil:
		return e.Hold.ID + " " + render.Held(*e.Hold)
	case e.Request != nil:
		return render.Asks(*e.Request)
	case e.Answer != nil:
		return words(e.Answer.Request, e.Answer.Decision, untrusted.Name(e.Answer.By), e.Answer.Reason)
	case e.Child != nil:
		return words(untrusted.Name(e.Child.Session), string(e.Child.Status), e.Child.Reason)
	case e.Type == agent.EventTurnStarted:
		return fmt.Sprintf("turn %d", e.Turn)
	}
	return whatElse(e)
}

func whatElse(e agent.Event) string {
	switch {
	case e.Delay != nil && e.Delay.Error != nil:
		return fmt.Sprintf("until %s: %s", e.Delay.Until.Local().Format(time.DateTime), e.Delay.Error.Message)
	case e.Forked != nil:
		return words(e.Forked.Session, e.Forked.Checkpoint)
	case e.ToolsChange != nil && e.ToolsChange.Refused != nil:
		return fmt.Sprintf("%s has other tools, which were not taken: %s", untrusted.Name(e.ToolsChange.Source), e.ToolsChange.Refused)
	case e.ToolsChange != nil && len(e.ToolsChange.Left) > 0:
		return fmt.Sprintf("%s has %d tools now, and nobody has accepted %s", untrusted.Name(e.ToolsChange.Source), len(e.ToolsChange.Tools), render.LeftOut(*e.ToolsChange))
	case e.ToolsChange != nil:
		return fmt.Sprintf("%s has %d tools now", untrusted.Name(e.ToolsChange.Source), len(e.ToolsChange.Tools))
	case e.Migrated != nil:
		return fmt.Sprintf("%d → %d", e.Migrated.From, e.Migrated.To)
	case e.Refusal != nil && e.Refusal.Error != nil:
		return e.Refusal.Error.Message
	}
	return string(e.Extended)
}

func words(list ...string) string { return strings.Join(list, " ") }

// whatIsSaid is a message's text, and what it calls or what came of that.
func whatIsSaid(m agent.Message) string {
	text := string(m.Role) + ": " + m.Text()
	for _, p := range m.Parts {
		switch {
		case p.Call != nil:
			text += " → " + untrusted.Name(p.Call.Tool) + " " + render.Arguments(*p.Call)
		case p.Result != nil:
			text += fmt.Sprintf(" %s %s: %s", untrusted.Name(p.Result.Tool), p.Result.Status, p.Result.Text)
		}
	}
	return text
}
