package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
)

func (c *cli) evalStopCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "stop ID",
		Short: "Stop an evaluation and keep what is done",
		Long: `Stop cancels the runs of the trials that have not ended and begins no more. Trials that
have ended keep their results; the others are left out. The command that follows the
evaluation prints its report and ends with 4, as with a budget, or with 1 if a case failed.

Stop returns when the server has the request. If no process works on the evaluation, it
stops with the next fermata eval resume.`,
		Example: `  fermata eval stop refunds-1a2b3c4d`,
		Args:    exactArgs(1, "the id of an evaluation"),
		RunE:    func(cmd *cobra.Command, args []string) error { return c.stopEvaluation(cmd.Context(), args[0]) },
	}
	c.jsonFlag(cmd, "print the evaluation as one line of JSON")
	return cmd
}

// stoppedLine is the output of eval stop --json.
type stoppedLine struct {
	V  int    `json:"v"`
	ID string `json:"id"`
	// Ended means that the evaluation had ended before.
	Ended bool `json:"ended"`
}

func (c *cli) stopEvaluation(ctx context.Context, id string) error {
	return c.WithServer(ctx, func(s *connect.Server, _ *fermata.Client) error {
		h, err := c.evaluation(ctx, s, id)
		if err != nil {
			return err
		}
		over, err := h.Ended(ctx)
		if err != nil {
			return err
		}
		if !over {
			if err := h.Cancel(ctx); err != nil {
				return err
			}
		}
		switch {
		case c.JSON:
			c.Line(stoppedLine{agent.Version, h.ID, over})
		case over:
			c.Print("the evaluation %s had ended", h.ID)
		default:
			c.Print("the evaluation %s stops: %s shows what is done", h.ID, c.CommandLine("eval show %s", h.ID))
		}
		return nil
	})
}
