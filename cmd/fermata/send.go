package main

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
)

func (c *cli) sendCommand() *cobra.Command {
	var o fermata.SendOptions
	var mode, tokenFile string
	var paths []string
	var wait bool
	cmd := &cobra.Command{
		Use:   "send SESSION MESSAGE",
		Short: "Send a message to a session",
		Long: `Send sends a message to the session's live run. --mode says when the model gets it:
before the next turn (steer), when the run would end (queue), or now, aborting what is
in flight (interrupt). If the last run has ended, the message starts the next run, with
the same agent or with --agent. The message "-" reads standard input.

If no worker answers within 3s, the command leaves the message as a signal for the next
worker and says so. --wait then ends with an error.

With --wait, the exit status is that of fermata run.`,
		Example: `  fermata send invoice-118 "Use the new account"
  fermata send invoice-118 "Stop at the first error" --mode interrupt
  fermata send invoice-118 "Which account is it?" --wait
  git diff | fermata send review-7 - --agent reviewer
  fermata send invoice-118 "Here it is" --file invoice.pdf`,
		Args: exactArgs(2, "a session and a message in quotes"),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := c.textOf(args[1], "the message")
			if err != nil {
				return err
			}
			if o.Files, err = fileInputs(paths); err != nil {
				return err
			}
			o.Mode, o.By = agent.SendMode(mode), byOr(o.By)
			if o.Token, err = tokenOf(tokenFile); err != nil {
				return err
			}
			if err := c.checkSkills(cmd.Context(), o.Agent, o.Skills); err != nil {
				return err
			}
			return c.WithServer(cmd.Context(), func(s *connect.Server, runs *fermata.Client) error {
				return c.send(cmd.Context(), s, runs, args[0], text, &o, wait)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&mode, "mode", string(agent.SendSteer), "when the model gets it: steer, queue or interrupt")
	f.StringVar(&o.Agent, "agent", "", "agent of the run, if the message starts one")
	f.BoolVar(&wait, "wait", false, "wait until the run is suspended or ended, and print the outcome")
	fileFlag(cmd, &paths)
	f.StringArrayVar(&o.Skills, "skill", nil, "skill of the agent that the model reads from the next turn on; may be repeated")
	c.byFlag(cmd, &o.By)
	c.tokenFlag(cmd, &tokenFile)
	c.jsonFlag(cmd, "print the run that has it as one line of JSON; with --wait, the outcome")
	return cmd
}

// checkSkills refuses skills that an agent of the file in this directory lacks. Without --agent only
// the run knows its agent, and a named server has workers with files of their own.
func (c *cli) checkSkills(ctx context.Context, name string, skills []string) error {
	if name == "" || len(skills) == 0 || c.Address != "" || c.Profile != "" {
		return nil
	}
	file, err := agentsFile(ctx, "")
	if err != nil || file == nil {
		return err
	}
	return file.CheckUserSkills(name, skills)
}

// sentLine says which run has a message, for programs.
type sentLine struct {
	V       int    `json:"v"`
	Session string `json:"session"`
	Run     string `json:"run,omitempty"`
	Began   bool   `json:"began,omitempty"` // it is the first message of a new run
	Later   bool   `json:"later,omitempty"` // no worker has it yet
}

func (c *cli) send(ctx context.Context, s *connect.Server, runs *fermata.Client, session, text string, o *fermata.SendOptions, wait bool) error {
	if o.Agent != "" {
		// The session's own task queue has workers with another file.
		c.FollowQueue(ctx, s, session)
		if err := c.checkAgentHere(ctx, o.Agent); err != nil {
			return err
		}
	}
	line, run, err := c.deliver(ctx, runs, session, text, o)
	if err != nil {
		return startHint(err, o.Agent)
	}
	// With --wait and --json the outcome must be the only line.
	if !wait || !c.JSON {
		c.sent(line)
	}
	switch {
	case !wait:
		return nil
	// There is no run to wait for yet, and maybe never one.
	case line.Later:
		c.FollowQueue(ctx, s, session)
		return c.NoWorker(ctx, s, "; the message is left as a signal: see its outcome with "+c.CommandLine("wait %s", session))
	}
	return c.rests(ctx, runs, run)
}

// deliver sends a message to a session's live run. If no worker answers it leaves a
// signal; if no run is live it starts the next run. The run is nil if no worker has the
// message yet.
func (c *cli) deliver(ctx context.Context, runs *fermata.Client, session, text string, o *fermata.SendOptions) (sentLine, *fermata.Run, error) {
	// One id for the update, the signal and the start, so the message has one effect.
	o.ID = uuid.Must(uuid.NewV7()).String()
	line := sentLine{V: agent.Version, Session: session}
	files, err := runs.PutFiles(ctx, session, o.Files...)
	if err != nil {
		return line, nil, err
	}
	order := agent.SendCommand{CommandHeader: agent.CommandHeader{ID: o.ID, By: o.By, Token: o.Token}, Text: text, Parts: files, Mode: o.Mode, Skills: o.Skills}
	ack, later, err := runs.UpdateOrSignal(ctx, session, order)
	switch {
	case err == nil && later:
		line.Later = true
		return line, nil, nil
	case err == nil && ack.Effect != agent.EffectRunEnded:
		line.Run = ack.Run
		return line, runs.RunOf(*ack), nil
	// The run ended first, or there is none: the message starts the next run.
	case err == nil, errors.Is(err, agent.CodeClosed), errors.Is(err, agent.CodeNotFound):
		// Send starts a run and is safe here: the message's id makes a repetition harmless.
		run, err := runs.Send(ctx, session, text, o)
		if err != nil {
			return line, nil, err
		}
		line.Run, line.Began = run.ID, true
		return line, run, nil
	}
	return line, nil, err
}

// startHint says what is missing if a session can't be started.
func startHint(err error, name string) error {
	if errors.Is(err, agent.CodeNotFound) && name == "" {
		return agent.Errorf(agent.CodeNotFound, "%w; to start it, name an agent with --agent", err)
	}
	return err
}

func (c *cli) sent(l sentLine) {
	switch {
	case c.JSON:
		c.Line(l)
	case l.Later:
		c.Print("%s: no worker answers; the message is left as a signal for the next worker", l.Session)
	case l.Began:
		c.Print("%s: run %s starts with it", l.Session, l.Run)
	default:
		c.Print("%s: run %s has it", l.Session, l.Run)
	}
}
