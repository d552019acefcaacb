package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
)

func (c *cli) resumeCommand() *cobra.Command {
	var o fermata.ResumeOptions
	var wait bool
	var tokenFile string
	var paths []string
	cmd := &cobra.Command{
		Use:   "resume SESSION [MESSAGE]",
		Short: "Resume a held or parked run",
		Long: `Resume removes a run's own hold, also from its sub-agents, or wakes a parked run. A run
that asks something continues with the answer instead (see fermata inbox). A run that
is held by its parent's hold continues when the parent is resumed.

A run keeps the agent that it began with. With --refresh, it gets the instructions that
the agent has now in the worker's build, and keeps its tools, rules and limits.

If a hook of the agent refuses the resume, the exit status is 6 and the run stays
suspended.

With --wait, the exit status is that of fermata run.`,
		Example: `  fermata resume invoice-118
  fermata resume invoice-118 "The bank is back. Go on with the second half." --wait
  fermata resume invoice-118 "Here it is" --file invoice.pdf
  fermata resume invoice-118 --suspension s-2 --from-summary
  fermata resume invoice-118 --refresh`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				return nil
			}
			return exactArgs(1, "a session, and perhaps a message in quotes")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				if o.Message = args[1]; strings.TrimSpace(o.Message) == "" {
					return agent.Errorf(agent.CodeInvalidInput, "the message is blank; leave it out if there is nothing to say")
				}
			}
			o.By = byOr(o.By)
			var err error
			if o.Files, err = fileInputs(paths); err != nil {
				return err
			}
			if o.Token, err = tokenOf(tokenFile); err != nil {
				return err
			}
			return c.WithServer(cmd.Context(), func(_ *connect.Server, runs *fermata.Client) error {
				return c.resume(cmd.Context(), runs, args[0], &o, wait)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Suspension, "suspension", "", "only if this suspension is open, such as s-2")
	f.BoolVar(&o.FromSummary, "from-summary", false, "continue with a summary of the conversation")
	f.BoolVar(&o.Refresh, "refresh", false, "continue with the agent's instructions in the worker's build")
	f.BoolVar(&wait, "wait", false, "wait until the run is suspended or ended, and print the outcome")
	fileFlag(cmd, &paths)
	c.byFlag(cmd, &o.By)
	c.tokenFlag(cmd, &tokenFile)
	c.jsonFlag(cmd, "print the acknowledgement as JSON; with --wait, the outcome")
	return cmd
}

// resumeWithin bounds a resume. The runtime may ask a hook first, for 10s by default, and once more if
// that worker is lost.
const resumeWithin = sendWithin + 35*time.Second

func (c *cli) resume(ctx context.Context, runs *fermata.Client, session string, o *fermata.ResumeOptions, wait bool) error {
	run, err := runs.Get(ctx, session)
	if err != nil {
		return err
	}
	sending, cancel := context.WithTimeout(ctx, resumeWithin)
	defer cancel()
	// Repeated while no worker is there: the server accepts nothing then, so the resume has one
	// effect.
	resumed, err := connect.RetryUntilWorker(sending, c.Connector, func() (*fermata.ResumedRun, error) { return run.Resume(sending, o) })
	if err != nil {
		return c.noAnswer(session, err)
	}
	if !wait || !c.JSON {
		c.printAck(resumed.Ack, "resumed")
	}
	if !wait {
		return nil
	}
	return c.rests(ctx, runs, resumed.Run)
}

// rests waits until a run is suspended or ends, shows how, and returns its exit status.
func (c *cli) rests(ctx context.Context, runs *fermata.Client, run *fermata.Run) error {
	out, err := run.Wait(ctx)
	if err != nil {
		return err
	}
	return c.outcome(ctx, runs, run, out)
}

// printAck prints the effect of a verb.
func (c *cli) printAck(a agent.Ack, what string) {
	switch {
	case c.JSON:
		c.Line(a)
	case a.Effect == agent.EffectRunEnded:
		c.Print("%s: the run ended first; it is %s", a.Session, a.Status)
	default:
		c.Print("%s: %s, it is %s", a.Session, what, statusText(a))
	}
}
