package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/temporal"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
	"github.com/fermata-agents/fermata/handoff"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/signals"
)

func (c *cli) handoffCommand() *cobra.Command {
	var md bool
	cmd := &cobra.Command{
		Use:   "handoff SESSION",
		Short: "Print the handoff of a run that was stopped or failed",
		Long: `Handoff prints the handoff of the session's last stopped run and its sub-agents: what
is done, what is left, what is unknown. A run that failed has one, too, if its model
refused, its provider failed, or its agent's recovery hands off. It is JSON, or Markdown
with --md. Another run can start with it (fermata run --briefing).`,
		Example: `  fermata handoff invoice-118 --md
  fermata handoff invoice-118 > left.json && fermata run payer "Go on" --briefing left.json`,
		Args: exactArgs(1, "a session"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if md && c.JSON {
				return agent.Errorf(agent.CodeInvalidInput, "--md and --json exclude each other")
			}
			return c.WithServer(cmd.Context(), func(s *connect.Server, runs *fermata.Client) error {
				return c.handoff(cmd.Context(), s, runs, args[0], md)
			})
		},
	}
	cmd.Flags().BoolVar(&md, "md", false, "print Markdown")
	c.jsonFlag(cmd, "print JSON, the default; errors are JSON too")
	return cmd
}

func (c *cli) handoff(ctx context.Context, s *connect.Server, runs *fermata.Client, session string, md bool) error {
	h, err := c.lastHandoff(ctx, s, runs, session)
	if err != nil {
		return err
	}
	// Markdown is printed as it is: it is meant for a file or another program.
	if md {
		fmt.Fprint(c.Out, handoff.Markdown(*h))
		return nil
	}
	c.Line(h)
	return nil
}

// handsOff reports whether an outcome has a handoff that is worth a look: of a run that was stopped, that
// did something before it failed, or whose model has said why it can't do the task.
func handsOff(o agent.Outcome) bool {
	return o.Handoff != nil && (o.Status == agent.StatusStopped || o.Turns > 1 || errors.Is(o.Err(), agent.CodeUnable))
}

// lastHandoff returns the handoff of the session's last run that left one. That of a run that failed at
// once does not hide an earlier one.
func (c *cli) lastHandoff(ctx context.Context, s *connect.Server, runs *fermata.Client, session string) (*agent.Handoff, error) {
	last, err := runs.Get(ctx, session)
	if err != nil {
		return nil, err
	}
	latest, thin := fermata.RunInfo{}, (*agent.Handoff)(nil)
	for l, err := range runs.List(ctx, &fermata.ListOptions{Query: "WorkflowId = " + signals.Quote(session)}) {
		if err != nil {
			return nil, err
		}
		// The listing has every run of the session; the last one explains a missing handoff.
		if l.Run == last.ID {
			latest = l
		}
		// Only these runs write handoffs, and reading a result costs a request.
		if l.Status != agent.StatusStopped && l.Status != agent.StatusFailed {
			continue
		}
		var o agent.Outcome
		err := s.GetWorkflow(ctx, session, l.Run).Get(ctx, &o)
		if failed := new(temporal.WorkflowExecutionError); errors.As(err, &failed) {
			o, err = durable.OutcomeOf(err), nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the end of run %s: %w", l.Run, durable.FromRPC(err))
		}
		// A run that was stopped before it could write has none; an older one may.
		if handsOff(o) {
			return o.Handoff, nil
		}
		thin = cmp.Or(thin, o.Handoff)
	}
	if thin != nil {
		return thin, nil
	}
	return nil, c.noHandoff(session, latest.Status)
}

// noHandoff says how to get a handoff.
func (c *cli) noHandoff(session string, last agent.Status) error {
	if last != "" && !last.Ended() {
		return agent.Errorf(agent.CodeNotFound, "session %s has no handoff: its run is %s; to end it with a handoff: %s --wait", session, last, c.CommandLine("stop %s", session))
	}
	return agent.Errorf(agent.CodeNotFound, "session %s has no handoff: only a run that was stopped, or whose model or recovery hands off, writes one, and the last run is %s; for its answer: %s", session, cmp.Or(string(last), "not listed"), c.CommandLine("show %s", session))
}
