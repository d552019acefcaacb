package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/render"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
)

func (c *cli) inboxCommand() *cobra.Command {
	var f fermata.InboxOptions
	limit := 50
	cmd := &cobra.Command{
		Use:   "inbox",
		Short: "List the open requests of all runs",
		Long: `Inbox lists the open requests of all sessions: questions, approvals, limits and client
tool calls. It also lists runs whose activity keeps losing its worker, as worker_lost.
It needs no worker, so it does not show the arguments of calls: see fermata show.`,
		Example: `  fermata inbox
  fermata inbox --waits-for approval --older 1h
  fermata inbox --approver ana@acme.com --json | jq -r '[.session,.id,.text]|@tsv'`,
		Args: exactArgs(0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.TaskQueue = c.TaskQueue
			if err := checkInbox(f, limit); err != nil {
				return err
			}
			return c.WithServer(cmd.Context(), func(_ *connect.Server, runs *fermata.Client) error {
				return c.inbox(cmd.Context(), runs, f, limit)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.Agent, "agent", "", "only runs of this agent")
	flags.StringVar(&f.WaitsFor, "waits-for", "", "only question, approval, client_tool, limit, worker_lost, or another value of FermataWaitsFor")
	olderFlag(flags, &f.Older, "only requests that are open for this long, such as 1h or 2d")
	flags.IntVar(&limit, "limit", limit, "maximum number of requests")
	flags.StringVar(&f.Approver, "approver", "", "only requests that name this approver")
	flags.StringVar(&f.Session, "session", "", "only this session and its sub-agents")
	c.jsonFlag(cmd, "print each request as a line of JSON")
	return cmd
}

func checkInbox(f fermata.InboxOptions, limit int) error {
	if limit < 1 {
		return agent.Errorf(agent.CodeInvalidInput, "--limit must be positive")
	}
	if f.Older < 0 {
		return agent.Errorf(agent.CodeInvalidInput, "--older must be positive")
	}
	if f.Agent != "" {
		return agent.CheckName(f.Agent)
	}
	return nil
}

func (c *cli) inbox(ctx context.Context, runs *fermata.Client, f fermata.InboxOptions, limit int) error {
	t := c.Table()
	defer t.Flush()
	n, lost := 0, false
	for q, err := range runs.Inbox(ctx, &f) {
		if err != nil {
			return err
		}
		// The listing yields one more than the limit, which shows that there are more.
		if n == limit {
			t.Flush()
			c.Note("there are more than %d: see --limit, --session, --agent, --waits-for", limit)
			break
		}
		n++
		lost = lost || q.Type == fermata.RequestWorkerLost
		if c.JSON {
			c.Line(q)
			continue
		}
		if n == 1 {
			t.Row("SESSION", "REQUEST", "TYPE", "AGENT", "FOR", "ASKS")
		}
		t.Row(untrusted.Name(q.Session), untrusted.Name(q.ID), q.Type, untrusted.Name(q.Agent), waited(q), asks(q.Request))
	}
	switch {
	case n == 0:
		c.Note("no open requests")
	case !c.JSON:
		t.Flush()
		c.Note("answer with %s", c.CommandLine("answer|approve|reject SESSION --request ID"))
		if lost {
			c.Note("continue after worker_lost with %s", c.CommandLine("resume SESSION"))
		}
	}
	return nil
}

// waited returns how long a request has been open, with a mark if its reminder was sent.
func waited(w fermata.InboxItem) string {
	text := render.Age(time.Now().Add(-time.Duration(w.Age)))
	if w.Reminded {
		text += " !"
	}
	return text
}

// asks returns what a request asks, and whom, for a listing.
func asks(q agent.Request) string {
	text := untrusted.Line(q.Text, 60)
	if q.Step != "" {
		text = untrusted.Cut(untrusted.Name(q.Step), 40) + ": " + text
	}
	if len(q.Approvers) > 0 {
		text += " [" + untrusted.Cut(untrusted.Names(q.Approvers), 60) + "]"
	}
	return text + render.Deadline(q)
}
