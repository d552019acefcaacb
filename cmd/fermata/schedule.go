package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
)

func (c *cli) scheduleCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "schedule",
		Short: "Send messages to a session on a schedule",
		Long: `Schedule manages Temporal schedules for sessions. Each tick sends a message or an event
to one session, and starts the session's next run if none is live. To pause or trigger
a schedule, see temporal schedule --help.`,
		Example: `  fermata schedule create mornings --cron "0 8 * * MON-FRI" --session desk --agent watcher "What is new?"
  fermata schedule ls`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(c.scheduleCreateCommand(), c.scheduleListCommand(), c.scheduleDeleteCommand())
	return cmd
}

func (c *cli) scheduleCreateCommand() *cobra.Command {
	var s fermata.ScheduleSpec
	cmd := &cobra.Command{
		Use:   "create ID [TEXT | JSON]",
		Short: "Create a schedule for a session",
		Long: `Create makes a schedule that sends the message TEXT to a session. With --topic it sends
an event instead, with any JSON as payload.`,
		Example: `  fermata schedule create mornings --cron "0 8 * * MON-FRI" --session desk --agent watcher "What is new?"
  fermata schedule create hourly --every 1h --session desk --agent watcher --topic hour.over '{"of":"day"}'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 || len(args) == 1 && s.Topic != "" {
				return nil
			}
			return exactArgs(2, "an id and a text in quotes, or an id with --topic and perhaps a payload")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkSpec(s); err != nil {
				return err
			}
			switch {
			case s.Topic == "":
				s.Text = args[1]
			case len(args) == 2:
				raw, err := jsonOf("the payload", args[1])
				if err != nil {
					return err
				}
				s.Payload = raw
			}
			return c.WithServer(cmd.Context(), func(_ *connect.Server, runs *fermata.Client) error {
				if err := runs.CreateSchedule(cmd.Context(), args[0], s); err != nil {
					return err
				}
				if c.JSON {
					c.Line(scheduleLine{V: agent.Version, ID: args[0]})
				} else {
					c.Print("%s", args[0])
				}
				return nil
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&s.Cron, "cron", "", `when, as a cron expression in UTC: "0 8 * * MON-FRI", "@daily", "CRON_TZ=Europe/Berlin 0 8 * * *"`)
	f.DurationVar(&s.Every, "every", 0, "when, as the time between two ticks, such as 1h")
	f.StringVar(&s.Session, "session", "", "the session that gets the message")
	f.StringVar(&s.Agent, "agent", "", "agent of the runs that the schedule starts")
	f.StringVar(&s.Topic, "topic", "", "send an event of this topic, instead of a message")
	f.StringVar(&s.By, "by", "", `who sends it, which is recorded but not verified (default "schedule ID")`)
	c.jsonFlag(cmd, "print the id as one line of JSON")
	return cmd
}

// checkSpec says which flags are missing, before the server is asked.
func checkSpec(s fermata.ScheduleSpec) error {
	switch {
	case s.Session == "" || s.Agent == "":
		return agent.Errorf(agent.CodeInvalidInput, "a schedule needs --session, and --agent for the runs that it starts there")
	case (s.Cron == "") == (s.Every == 0):
		return agent.Errorf(agent.CodeInvalidInput, "a schedule needs either --cron or --every")
	}
	return nil
}

// scheduleLine is the output of schedule create and delete with --json.
type scheduleLine struct {
	V       int    `json:"v"`
	ID      string `json:"id"`
	Deleted bool   `json:"deleted,omitempty"`
}

func (c *cli) scheduleListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "ls",
		Short:   "List the schedules for sessions",
		Long:    `Ls lists the schedules for sessions in the namespace, with their next tick.`,
		Example: `  fermata schedule ls --json | jq .next`,
		Args:    exactArgs(0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.WithServer(cmd.Context(), func(_ *connect.Server, runs *fermata.Client) error { return c.schedules(cmd.Context(), runs) })
		},
	}
	c.jsonFlag(cmd, "print each schedule as a line of JSON")
	return cmd
}

func (c *cli) schedules(ctx context.Context, runs *fermata.Client) error {
	t := c.Table()
	defer t.Flush()
	n := 0
	for s, err := range runs.ListSchedules(ctx) {
		switch {
		case err != nil:
			return err
		case c.JSON:
			c.Line(s)
			continue
		case n == 0:
			t.Row("ID", "WHEN", "SESSION", "AGENT", "SENDS", "NEXT")
		}
		n++
		next := "none"
		switch {
		case s.Paused:
			next = "paused"
		case !s.Next.IsZero():
			next = s.Next.Local().Format("2006-01-02 15:04:05")
		}
		t.Row(untrusted.Cut(untrusted.Name(s.ID), 60), when(s), untrusted.Name(s.Session), untrusted.Name(s.Agent), untrusted.Line(sends(s), 60), next)
	}
	return nil
}

func when(s fermata.ScheduleInfo) string {
	if s.Every > 0 {
		return "every " + s.Every.String()
	}
	return untrusted.Line(s.Cron, 40)
}

func sends(s fermata.ScheduleInfo) string {
	if s.Topic != "" {
		return "emits " + s.Topic
	}
	return s.Text
}

func (c *cli) scheduleDeleteCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "delete ID",
		Short:   "Delete a schedule",
		Long:    `Delete deletes a schedule. Messages that it has sent stay.`,
		Example: `  fermata schedule delete mornings`,
		Args:    exactArgs(1, "the schedule's id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.WithServer(cmd.Context(), func(_ *connect.Server, runs *fermata.Client) error {
				err := runs.DeleteSchedule(cmd.Context(), args[0])
				if err == nil && c.JSON {
					c.Line(scheduleLine{agent.Version, args[0], true})
				}
				return err
			})
		},
	}
	c.jsonFlag(cmd, "print the id as one line of JSON")
	return cmd
}
