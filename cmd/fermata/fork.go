package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/live"
)

// forkRun is one `fork` or `retry`: a run that starts from a checkpoint.
type forkRun struct {
	*runner
	prepareRun func(*fermata.Client, context.Context, string, *fermata.ForkOptions) (*fermata.PreparedRun, error)
	what       string // what messages call the new run
	options    fermata.ForkOptions
	paths      []string // of files that go with the message
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
at the checkpoint. With --edit, the message replaces the last message of a person, and
shows the same files, or those of --file instead.
With --new, the run gets a session of its own, and the old session may be live.

Fork first lists the tool calls that may have changed something. Calls before the
checkpoint are kept. Calls after it stay done and may happen again. If there are any,
the command asks you on a terminal; without one it needs --yes.

Of a flow, it lists each step: whether its result is kept, and if not, why. --redo PATH
makes a step again that has a result, or all steps of a scope such as file.3; --edit
replaces the flow's input, and steps with the same arguments keep their results. fermata
show SESSION --draw has the paths.

The exit status is that of fermata run.`,
		Example: `  fermata fork invoice-118 cp-40-9c025a --message "Pay by card instead"
  fermata fork invoice-118 --edit --message "Pay 118 EUR, and not 811" --plan
  fermata fork invoice-118 cp-40-9c025a --new --as invoice-118b --yes
  fermata fork review-7 --redo file.3`,
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
	f.StringArrayVar(&a.options.Redo, "redo", nil, "make this step of a flow again, or all steps in this scope")
	f.BoolVar(&a.options.DropArtifacts, "drop-artifacts", false, "start without the artifacts that were saved before")
	f.BoolVar(&a.plan, "plan", false, "only print the plan")
	f.BoolVar(&a.yes, "yes", false, "do not ask, even if calls may happen again")
	f.StringVar(&a.agents, "agents", "", "agents file (default \"fermata.yaml\", if it is there)")
	f.BoolVar(&a.detach, "detach", false, "only start the run, and print its session and id")
	fileFlag(cmd, &a.paths)
	a.byFlag(cmd, &a.options.By)
	a.jsonFlag(cmd, "print the plan, each event and then the outcome as lines of JSON")
}

func (a *forkRun) args(cmd *cobra.Command, args []string) error {
	if len(args) == 2 {
		if strings.TrimSpace(args[1]) == "" {
			return errors.New("the checkpoint is blank; leave it out for the newest one")
		}
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
	// A plan reads only the log, so it needs no worker and maybe no server.
	if a.plan {
		return a.WithLog(cmd.Context(), a.session, func(runs *fermata.Client) error {
			_, err := a.prepareFork(cmd.Context(), runs)
			return err
		})
	}
	// Nobody watches a detached run, so this process starts no worker and needs no file.
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
		return agent.Errorf(agent.CodeInvalidInput, "--as names the session that --new starts: add --new")
	case o.Edit && o.Text == "":
		return agent.Errorf(agent.CodeInvalidInput, "--edit needs --message with the new text")
	}
	// Changed and not empty: an explicit blank message is an error.
	if cmd.Flags().Changed("message") {
		o.Text, err = a.textOf(o.Text, "the message")
	}
	if err == nil {
		o.Files, err = fileInputs(a.paths)
	}
	return err
}

// do starts the run, and shows it.
func (a *forkRun) do(ctx context.Context) error {
	defer a.close()
	if err := a.reach(ctx); err != nil {
		return err
	}
	a.elsewhere = a.FollowQueue(ctx, a.server, a.session)
	if a.options.Agent != "" {
		if err := a.checkAgent(a.file, a.options.Agent); err != nil {
			return err
		}
	}
	prepared, err := a.prepareFork(ctx, a.runs)
	if errors.Is(err, agent.CodeNoWorker) && a.file != nil && !a.detach && !a.elsewhere {
		// The last run has not stored all of its log yet. Only a worker can read the rest.
		if err = a.startLocalWorker(ctx); err == nil {
			prepared, err = a.prepareFork(ctx, a.runs)
		}
	}
	if err != nil {
		return a.WithQueueHint(ctx, a.server, a.session, err)
	}
	// Asked before a worker is started: until then nothing has changed.
	if err := a.confirm(ctx, unexpected(prepared.ForkPlan)); err != nil {
		return err
	}
	a.session, a.runner.agent = prepared.Session(), prepared.Agent()
	// The worker may have been started above, to read the log.
	if !a.detach && a.worker == nil {
		if err := a.findWorker(ctx); err != nil {
			return err
		}
	}
	if a.run, err = prepared.Start(ctx); err != nil {
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
		r.embedded = r.server.InProcess()
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
	prepared, err := a.prepareRun(runs, ctx, a.session, &a.options)
	switch {
	// The client names its own field; say which flag sets it.
	case err != nil && a.options.Text == "" && pathOf(err) == "input":
		return nil, agent.Errorf(agent.CodeInvalidInput, "%w: say with --message TEXT what to do", err).WithPath("input")
	case err != nil:
		return nil, err
	case a.JSON:
		a.Line(forkPlanLine{agent.Version, "plan", prepared.Session(), prepared.Agent(), prepared.ForkPlan})
		return prepared, nil
	}
	a.printPlan(prepared.ForkPlan)
	return prepared, nil
}

// pathOf returns the path of the input that an error is about; empty if there is none.
func pathOf(err error) string {
	var e *agent.Error
	if !errors.As(err, &e) {
		return ""
	}
	return e.Path
}

// confirm asks whether calls may happen again.
func (a *forkRun) confirm(ctx context.Context, list []agent.SideEffect) error {
	// Without calls that may happen again there is nothing to decide.
	if len(list) == 0 || a.yes {
		return nil
	}
	if !a.terminal || a.JSON {
		// A program must decide with --yes: nobody can read the list and confirm.
		return agent.Errorf(agent.CodeInvalidInput, "this may repeat %s of tools that change something, and there is no terminal to ask: add --yes to allow it, or --plan to see them", counted(len(list), "call")).WithPath("yes")
	}
	yes, err := a.console().Yes(ctx, "start anyway?")
	if err != nil {
		return noAnswerGiven(err)
	}
	if !yes {
		return agent.Errorf(agent.CodeInvalidInput, "nothing was started")
	}
	return nil
}

// printStarted prints a run that nobody follows.
func (a *forkRun) printStarted() error {
	if a.JSON {
		a.Line(startedLine{V: agent.Version, Type: "started", Session: a.run.Session, Run: a.run.ID, Agent: a.runner.agent})
		return nil
	}
	a.Print("%s: run %s starts", a.run.Session, a.run.ID)
	return nil
}
