package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/render"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
	"github.com/fermata-agents/fermata/live"
)

// forkRun is one `fork` or `retry`: a run that starts from a checkpoint.
type forkRun struct {
	*runner
	prepareRun func(*fermata.Client, context.Context, string, *fermata.ForkOptions) (*fermata.PreparedRun, error)
	what       string // what messages call the new run
	options    fermata.ForkOptions
	plan       bool
	yes        bool
}

func (c *cli) forkCommand() *cobra.Command {
	a := &forkRun{runner: &runner{cli: c, live: live.NewHub()}, prepareRun: (*fermata.Client).Fork, what: "fork"}
	cmd := &cobra.Command{
		Use:   "fork SESSION [CHECKPOINT]",
		Short: "Start a run from a checkpoint",
		Long: `Fork starts a new run from a checkpoint and follows it as fermata run does. The
default is the newest checkpoint (see fermata checkpoints). What came after the
checkpoint stays in the log, but the new run does not see it. --message adds a message
at the checkpoint. With --edit, the message replaces the last message of a person.
With --new, the run gets a session of its own, and the old session may be live.

Fork first lists the tool calls that may have changed something. Calls before the
checkpoint are kept. Calls after it stay done and may happen again. If there are any,
the command asks you on a terminal; without one it needs --yes.

The exit status is that of fermata run.`,
		Example: `  fermata fork invoice-118 cp-40 --message "Pay by card instead"
  fermata fork invoice-118 --edit --message "Pay 118 EUR, and not 811" --plan
  fermata fork invoice-118 cp-40 --new --as invoice-118b --yes`,
		Args: a.args,
		RunE: a.runE,
	}
	f := cmd.Flags()
	f.BoolVar(&a.options.NewSession, "new", false, "start the run in a new session")
	f.StringVar(&a.options.Session, "as", "", "name of the new session (default a generated one)")
	f.StringVar(&a.options.Agent, "agent", "", "use another agent than the checkpoint's run")
	a.flags(cmd)
	return cmd
}

func (a *forkRun) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&a.options.Text, "message", "", `a message at the checkpoint; "-" reads standard input`)
	f.BoolVar(&a.options.Edit, "edit", false, "replace the last message of a person by --message")
	f.BoolVar(&a.options.Start, "start", false, "start where the run started, instead of at a checkpoint")
	f.BoolVar(&a.plan, "plan", false, "only print the plan")
	f.BoolVar(&a.yes, "yes", false, "do not ask, even if calls may happen again")
	f.StringVar(&a.agents, "agents", "", "agents file (default \"fermata.yaml\", if it is there)")
	f.BoolVar(&a.detach, "detach", false, "only start the run, and print its session and id")
	a.byFlag(cmd, &a.options.By)
	a.jsonFlag(cmd, "print the plan, each event and then the outcome as lines of JSON")
}

func (a *forkRun) args(cmd *cobra.Command, args []string) error {
	if len(args) == 2 {
		a.options.Checkpoint = args[1]
		return nil
	}
	return exactArgs(1, "a session, and a checkpoint at most")(cmd, args)
}

func (a *forkRun) runE(cmd *cobra.Command, args []string) (err error) {
	if err := a.checkFlags(cmd); err != nil {
		return err
	}
	a.session, a.options.By = args[0], byOr(a.options.By)
	if a.plan {
		return a.WithLog(cmd.Context(), a.session, func(runs *fermata.Client) error {
			_, err := a.prepareFork(cmd.Context(), runs)
			return err
		})
	}
	if !a.detach || a.agents != "" {
		if a.file, err = agentsFile(cmd.Context(), a.agents); err != nil {
			return err
		}
	}
	return a.do(cmd.Context())
}

func (a *forkRun) checkFlags(cmd *cobra.Command) (err error) {
	o := &a.options
	switch {
	case o.Checkpoint != "" && o.Start:
		return agent.Errorf(agent.CodeInvalidInput, "a checkpoint and --start exclude each other")
	case o.Session != "" && !o.NewSession:
		return agent.Errorf(agent.CodeInvalidInput, "--as names the session that --new begins: say both")
	case o.Edit && o.Text == "":
		return agent.Errorf(agent.CodeInvalidInput, "--edit needs --message, what is to be said instead")
	}
	if cmd.Flags().Changed("message") {
		o.Text, err = a.textOf(o.Text, "the message")
	}
	return err
}

// do starts the run, and shows it.
func (a *forkRun) do(ctx context.Context) error {
	defer a.close()
	if err := a.reach(ctx); err != nil {
		return err
	}
	anew, err := a.prepareFork(ctx, a.runs)
	if errors.Is(err, agent.CodeNoWorker) && a.file != nil && !a.detach {
		// The last run has not stored all of its log. Only a worker can read the rest.
		if err = a.startLocalWorker(ctx); err == nil {
			anew, err = a.prepareFork(ctx, a.runs)
		}
	}
	if err != nil {
		return a.WithQueueHint(ctx, a.server, a.session, err)
	}
	if err := a.confirm(ctx, anew.MayRepeat); err != nil {
		return err
	}
	a.session, a.runner.agent = anew.Session(), anew.Agent()
	if !a.detach && a.worker == nil {
		if err := a.findWorker(ctx); err != nil {
			return err
		}
	}
	if a.run, err = anew.Start(ctx); err != nil {
		return err
	}
	if a.detach {
		return a.printStarted()
	}
	return a.watch(ctx)
}

// reach finds the server. It starts one if the run is to be shown and this process can
// work on it.
func (r *runner) reach(ctx context.Context) (err error) {
	if r.detach || r.file == nil {
		r.server, err = r.Find(ctx)
	} else {
		r.server, err = r.FindOrStart(ctx)
	}
	if err == nil {
		r.runs, err = r.Client(ctx, r.server)
	}
	return err
}

// forkPlanLine is a plan for programs.
type forkPlanLine struct {
	V       int    `json:"v"`
	Type    string `json:"type"`
	Session string `json:"session"` // the session of the new run
	Agent   string `json:"agent"`
	agent.ForkPlan
}

// prepareFork determines what the run would keep and repeat, and shows it.
func (a *forkRun) prepareFork(ctx context.Context, runs *fermata.Client) (*fermata.PreparedRun, error) {
	anew, err := a.prepareRun(runs, ctx, a.session, &a.options)
	switch {
	case err != nil && a.options.Text == "" && pathOf(err) == "input":
		return nil, agent.Errorf(agent.CodeInvalidInput, "%w: say with --message TEXT what to do", err).WithPath("input")
	case err != nil:
		return nil, err
	case a.JSON:
		a.Line(forkPlanLine{agent.Version, "plan", anew.Session(), anew.Agent(), anew.ForkPlan})
		return anew, nil
	}
	p := anew.Checkpoint
	where := "the session's beginning"
	if p.Run != "" {
		where = fmt.Sprintf("turn %d of run %s", p.Turn, p.Run)
	}
	a.Print("%s behind %s (%s); the model knows %s", a.what, p.ID, where, counted(p.Messages, "message"))
	if len(anew.Kept) > 0 {
		a.Print("kept: %s", effects(p.Run, anew.Kept))
	}
	if len(anew.MayRepeat) > 0 {
		a.Print("may happen again: %s", effects(p.Run, anew.MayRepeat))
	}
	return anew, nil
}

// pathOf returns the path of the input that an error is about; empty if there is none.
func pathOf(err error) string {
	var e *agent.Error
	if !errors.As(err, &e) {
		return ""
	}
	return e.Path
}

// effects names calls, and their runs if these are others.
func effects(run string, list []agent.SideEffect) string {
	var names []string
	for _, e := range list {
		of := ""
		if e.Run != run {
			of = " of " + render.ShortRun(e.Run)
		}
		names = append(names, fmt.Sprintf("%s %s%s (%s)", untrusted.Cut(untrusted.Name(e.Tool), 60), e.Call, of, e.Status))
	}
	return strings.Join(names, ", ")
}

// confirm asks whether calls may happen again.
func (a *forkRun) confirm(ctx context.Context, list []agent.SideEffect) error {
	if len(list) == 0 || a.yes {
		return nil
	}
	if !a.terminal || a.JSON {
		return agent.Errorf(agent.CodeInvalidInput, "this may repeat %s of tools that change something, and there is no terminal to ask: add --yes to allow it, or --plan to see them", counted(len(list), "call")).WithPath("yes")
	}
	yes, err := a.console().Yes(ctx, "begin all the same?")
	if err != nil {
		return nothingSaid(err)
	}
	if !yes {
		return agent.Errorf(agent.CodeInvalidInput, "nothing was begun")
	}
	return nil
}

// printStarted prints a run that nobody follows.
func (a *forkRun) printStarted() error {
	if a.JSON {
		a.Line(startedLine{V: agent.Version, Type: "started", Session: a.run.Session, Run: a.run.ID, Agent: a.runner.agent})
		return nil
	}
	a.Print("%s: run %s begins", a.run.Session, a.run.ID)
	return nil
}
