package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
)

// verbRun is one pause, interrupt, stop or cancel, of one session or of many.
type verbRun struct {
	*cli
	verb            agent.Verb
	reason, by      string
	tokenFile       string
	token           string // proves who sends it; empty if there is none
	grace, deadline time.Duration
	wait            bool
	bulk            bulk
}

// command makes the command of a verb that holds or ends runs.
func (h *verbRun) command(short, long, example string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   string(h.verb) + " SESSION",
		Short: short,
		Long: long + `

If no worker answers within 3s, the command leaves a signal for the next worker and
says so. With --query it applies to every live run that the query finds.`,
		Example: example,
		Args:    h.bulk.oneOrMany,
		RunE: func(cmd *cobra.Command, args []string) error {
			err := h.check(len(args) == 0)
			if err == nil && len(args) > 0 {
				// A bulk verb has no token: the environment's is for one session.
				h.token, err = tokenOf(h.tokenFile)
			}
			if err != nil {
				return err
			}
			return h.WithServer(cmd.Context(), func(_ *connect.Server, runs *fermata.Client) error {
				if len(args) == 0 {
					return h.sendToMany(cmd.Context(), runs)
				}
				return h.sendToOne(cmd.Context(), runs, args[0])
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&h.reason, "reason", "", "the reason, which is recorded and shown")
	f.BoolVar(&h.wait, "wait", false, "wait until the run is suspended or ended, and print the outcome")
	h.byFlag(cmd, &h.by)
	h.tokenFlag(cmd, &h.tokenFile)
	h.bulk.flags(cmd)
	h.jsonFlag(cmd, "print the result as JSON, one line for each run")
	return cmd
}

// check refuses what no run would accept, before a server is looked for.
func (h *verbRun) check(several bool) error {
	const least, most, mostGrace = 2 * time.Second, time.Hour, time.Minute
	switch {
	case h.grace < 0 || h.grace > mostGrace:
		return agent.Errorf(agent.CodeInvalidInput, "--grace is %s; it may be at most %s", h.grace, mostGrace)
	case h.deadline != 0 && (h.deadline < least || h.deadline > most):
		return agent.Errorf(agent.CodeInvalidInput, "--deadline is %s; it may be %s to %s", h.deadline, least, most)
	case several && h.tokenFile != "":
		return agent.Errorf(agent.CodeInvalidInput, "--token-file does not go with --query: a token is valid for one session")
	case several && h.wait:
		return agent.Errorf(agent.CodeInvalidInput, "--wait is for one session, and not for --query")
	}
	return nil
}

// order returns the command for one run.
func (h *verbRun) order(run string) agent.Command {
	// With the run's id: the session's next run must not get a verb for the last one.
	o := agent.CommandHeader{Run: run, By: byOr(h.by), Token: h.token}
	switch h.verb {
	case agent.VerbPause:
		return agent.PauseCommand{CommandHeader: o, Reason: h.reason}
	case agent.VerbInterrupt:
		return agent.InterruptCommand{CommandHeader: o, Reason: h.reason, Grace: agent.Duration(h.grace)}
	case agent.VerbStop:
		return agent.StopCommand{CommandHeader: o, Reason: h.reason, Deadline: agent.Duration(h.deadline)}
	}
	return agent.CancelCommand{CommandHeader: o, Reason: h.reason}
}

// ackLine is the effect of a verb for programs: the run's answer, or that a signal was
// left for a worker.
type ackLine struct {
	agent.Ack
	Later bool `json:"later,omitempty"`
}

func (h *verbRun) sendToOne(ctx context.Context, runs *fermata.Client, session string) error {
	run, err := runs.Get(ctx, session)
	if err != nil {
		return err
	}
	line, err := h.sendVerb(ctx, runs, session, run.ID)
	if err != nil {
		return err
	}
	if !h.wait || !h.JSON {
		h.printCommand(line)
	}
	if !h.wait {
		return nil
	}
	if line.Hold != nil { // a handle that knows of the pause, which a hook may deny
		run = runs.RunOf(line.Ack)
	}
	return h.awaitEffect(ctx, runs, run)
}

// sendVerb sends the verb to one run. A cancel of an ended run changes nothing.
func (h *verbRun) sendVerb(ctx context.Context, runs *fermata.Client, session, run string) (ackLine, error) {
	ack, later, err := runs.UpdateOrSignal(ctx, session, h.order(run))
	switch {
	case later:
		// No run has answered, so the line has only what the caller knows.
		return ackLine{agent.Ack{V: agent.Version, Session: session, Run: run}, true}, nil
	case err == nil:
		return ackLine{*ack, false}, nil
	// A cancel of an ended run has nothing left to do; other verbs report the error.
	case h.verb != agent.VerbCancel || !errors.Is(err, agent.CodeClosed):
		return ackLine{}, err
	}
	// Another run of the session may have started since; its result would be the wrong
	// answer.
	last, lost := runs.Get(ctx, session)
	if lost != nil || last.ID != run {
		return ackLine{}, err
	}
	o, lost := last.Result(ctx)
	if lost != nil {
		return ackLine{}, err
	}
	// The run ended before; its recorded status is the answer.
	return ackLine{agent.Ack{V: agent.Version, Session: session, Run: run, Status: o.Status, Seq: o.Seq, Effect: agent.EffectAlready}, false}, nil
}

// printCommand prints the effect of the verb.
func (h *verbRun) printCommand(s ackLine) {
	if h.JSON {
		h.Line(s)
		return
	}
	switch {
	case s.Later:
		h.Print("%s: no worker answers; the %s is left as a signal for the next worker", s.Session, h.verb)
	case s.Effect == agent.EffectRunEnded:
		h.Print("%s: the run ended first; it is %s", s.Session, s.Status)
	case s.Effect == agent.EffectAlready && s.Status == agent.StatusRunning:
		h.Print("%s: no change, it is running, and this or a stronger verb is in progress%s", s.Session, holdText(s.Hold))
	case s.Effect == agent.EffectAlready:
		h.Print("%s: no change, it is %s already%s", s.Session, statusText(s.Ack), holdText(s.Hold))
	default:
		h.Print("%s: %s accepted, it is %s", s.Session, h.verb, statusText(s.Ack))
	}
}

// statusText returns a status with its suspension.
func statusText(a agent.Ack) string {
	if a.Suspension == "" {
		return string(a.Status)
	}
	return fmt.Sprintf("%s (%s)", a.Status, a.Suspension)
}

// holdText says who holds a run, and why.
func holdText(h *agent.AckHold) string {
	if h == nil {
		return ""
	}
	text := fmt.Sprintf(": %s of %s", h.Verb, h.Since.Format(time.RFC3339))
	if h.By != "" {
		text += " by " + strconv.Quote(h.By)
	}
	if h.Reason != "" {
		text += ", " + strconv.Quote(h.Reason)
	}
	return text
}

// awaitEffect waits for the effect of the verb. The exit status is 0 if it came, and
// otherwise that of wait.
func (h *verbRun) awaitEffect(ctx context.Context, runs *fermata.Client, run *fermata.Run) error {
	wait, wanted := run.Wait, agent.StatusSuspended
	switch h.verb {
	// Result and not Wait: a suspension on the way is not the end.
	case agent.VerbStop:
		wait, wanted = run.Result, agent.StatusStopped
	case agent.VerbCancel:
		wait, wanted = run.Result, agent.StatusCancelled
	}
	o, err := wait(ctx)
	if err != nil {
		return err
	}
	err = h.outcome(ctx, runs, run, o)
	// The verb had its effect, even if that status usually means a failure.
	if o.Status == wanted {
		return nil
	}
	return err
}

// outcome shows how a run was suspended or ended.
func (c *cli) outcome(ctx context.Context, runs *fermata.Client, run *fermata.Run, o *agent.Outcome) error {
	if c.JSON {
		return c.printEnd(ctx, runs, o, jsonLines{c, run, nil})
	}
	return c.printEnd(ctx, runs, o, c.Printer())
}

// sendWithin bounds verbs that are not left as signals. Nobody would learn that a late
// answer was refused.
const sendWithin = 10 * time.Second

// noAnswer says what to do if nobody answered in time.
func (c *cli) noAnswer(session string, err error) error {
	if errors.Is(err, agent.CodeTimeout) || errors.Is(err, agent.CodeNoWorker) {
		return agent.Errorf(agent.CodeOf(err), "%w: no worker answered for session %s; start one with %s, and see %s before you send it again", err, session, c.CommandLine("worker --agents FILE"), c.CommandLine("show %s", session))
	}
	return err
}
