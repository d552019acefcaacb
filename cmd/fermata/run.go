package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/temporal"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/agentsfile"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/files"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/follow"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/localworker"
	"github.com/fermata-agents/fermata/live"
	"github.com/fermata-agents/fermata/signals"
)

// runner is one `run`.
type runner struct {
	*cli
	agent, task string
	silent      bool // no task was given
	session     string
	model       string
	detach      bool
	dry         bool             // only show what the run would be
	park        string           // conditions as JSON
	judge       string           // the rubric of a judge that is asked about the answer
	briefing    string           // a file with a handoff
	shown       []string         // files that go along
	skills      []string         // active from the first turn on
	working     []string         // paths with which skills are matched
	carry       string           // what the run keeps of the session's earlier runs
	file        *agentsfile.File // nil if there is none
	priority    temporal.Priority
	options     fermata.StartOptions

	// elsewhere says that the session has a task queue of its own, which the user did not name.
	elsewhere bool

	server   *connect.Server
	runs     *fermata.Client
	worker   *localworker.Worker // nil if a worker elsewhere has the run
	run      *fermata.Run
	live     *live.Hub          // live events of a worker in this process
	pieces   *live.Subscription // live events of the run
	followed follow.State
}

// runPatience is how long running calls may take when `run` is interrupted. A model call
// is repeated when the run continues.
const runPatience = 2 * time.Second

func (c *cli) runCommand() *cobra.Command {
	r := &runner{cli: c, live: live.NewHub()}
	cmd := &cobra.Command{
		Use:   `run AGENT ["task"]`,
		Short: "Run an agent and follow it",
		Long: `Run starts a run of an agent and shows it to its end.

If no worker polls the task queue, the command starts one in this process with the
agents file (--agents, or fermata.yaml in this directory). The task "-" reads standard
input. --session continues a conversation. --briefing starts with the handoff of
another run; the task is then optional. It is optional for a daemon too. --file sends
images, PDFs and other files with the task.

On a terminal the command asks you what the run asks. Ctrl-C holds the run and asks
what to do, and a second Ctrl-C leaves it held. Without a terminal the command ends
when the run is suspended, and prints how to answer.

The exit status is 0 for a completed run, 1 failed, 3 suspended, 4 stopped or
cancelled; 2 for wrong input, 5 without a server or a worker.`,
		Example: `  fermata run reviewer "Review main.go"
  git diff | fermata run reviewer - --json | tail -1 | jq .text
  fermata run reviewer "And the tests?" --session 0199a6f1-…
  fermata run reviewer "What is wrong on this page?" --file page.png --file spec.pdf
  fermata run reviewer "Review main.go" --judge "Each finding names a file and a line."
  fermata run reviewer "Review main.go" --dry-run
  fermata run payer "Pay invoice 118" --park '{"event":{"topic":"bank.open"}}'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return nil
			}
			return exactArgs(2, `an agent and a task in quotes`)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("judge") && strings.TrimSpace(r.judge) == "" {
				return agent.Errorf(agent.CodeInvalidInput, "--judge is empty: say in quotes what is enough, or leave it out")
			}
			r.silent = len(args) == 1
			r.agent, r.task = args[0], append(args, "")[1]
			return r.do(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.agents, "agents", "", "agents file (default \"fermata.yaml\", if it is there)")
	f.StringVar(&r.session, "session", "", "the session to continue, or the name of a new one")
	f.StringVar(&r.model, "model", "", "use another model, if the worker is in this process")
	f.BoolVar(&r.detach, "detach", false, "only start the run, and print its session")
	f.BoolVar(&r.dry, "dry-run", false, "start nothing, and show what the run would be: options, tools with their rulings, and the size of the first request")
	f.StringVar(&r.park, "park", "", "park the run before its first turn, until conditions in JSON; {} waits for fermata resume")
	f.StringVar(&r.judge, "judge", "", "let a judge look at the answer: says what is enough, and the agent works until the judge accepts or a limit ends the run")
	f.StringVar(&r.briefing, "briefing", "", "file with the handoff of another run (see fermata handoff)")
	fileFlag(cmd, &r.shown)
	f.StringArrayVar(&r.skills, "skill", nil, "skill of the agent that the model reads from the first turn on; may be repeated")
	f.StringArrayVar(&r.working, "working-file", nil, "path of a file that the task is about, to match skills with; may be repeated")
	f.StringVar(&r.carry, "carry", string(agent.CarryInherit), "what the run keeps of the conversation: inherit (all), compact (a summary) or reset (nothing)")
	f.IntVar(&r.priority.PriorityKey, "priority", 0, "priority of its tasks: 1 (first) to 5 (default the server's, 3)")
	f.StringVar(&r.priority.FairnessKey, "fairness-key", "", "fairness key, such as a tenant: one key's tasks cannot starve another's")
	f.Float32Var(&r.priority.FairnessWeight, "fairness-weight", 0, "weight of the fairness key (default 1)")
	c.jsonFlag(cmd, "print each event as a line of JSON, and then the outcome")
	return cmd
}

func (r *runner) do(ctx context.Context) error {
	if err := r.check(ctx); err != nil {
		return err
	}
	if r.dry {
		return r.dryRun(ctx)
	}
	// A detached command runs no agent, so it has nothing to report.
	if !r.detach {
		if err := r.observe(ctx); err != nil {
			return err
		}
	}
	defer r.close()
	if err := r.connect(ctx); err != nil {
		return err
	}
	// A worker is found before the start: a run without one would only wait.
	if !r.detach {
		if err := r.findWorker(ctx); err != nil {
			return err
		}
	}
	var err error
	r.run, err = r.runs.Start(ctx, r.agent, r.task, &r.options)
	switch {
	case err != nil:
		return err
	case r.detach:
		return r.started(ctx)
	}
	return r.watch(ctx)
}

// close closes what this process has: the worker, then the server.
func (r *runner) close() {
	if r.worker != nil {
		r.host.Stop(r.worker)
	}
	if r.server != nil {
		r.server.Close()
	}
	// Set to nil: moveServer connects again, and close may be called twice.
	r.worker, r.server = nil, nil
}

// check checks everything that needs no server.
func (r *runner) check(ctx context.Context) (err error) {
	if r.options, err = r.startOptions(); err != nil {
		return err
	}
	if !r.silent {
		if r.task, err = r.textOf(r.task, "the task"); err != nil {
			return err
		}
	}
	if r.detach && r.model != "" {
		return agent.Errorf(agent.CodeInvalidInput, "--model and --detach exclude each other: the worker chooses the model")
	}
	if err := agent.CheckName(r.agent); err != nil {
		return err
	}
	if r.session != "" {
		if err := agent.CheckSession(r.session); err != nil {
			return err
		}
	}
	// Another process runs a detached run, so this directory's file only says which agents there are.
	if r.detach && r.agents == "" {
		return r.checkAgentHere(ctx, r.agent)
	}
	if r.file, err = agentsFile(ctx, r.agents); err != nil {
		return err
	}
	if err := r.checkAgent(r.file, r.agent); err != nil {
		return err
	}
	if err := r.needsTask(); err != nil {
		return err
	}
	return r.checkInput()
}

// checkInput refuses skills that the file's agent lacks, a session for a stateless agent, and a task that is no input for a flow of the file, before there is a session. A
// worker refuses it too.
func (r *runner) checkInput() error {
	if r.file == nil {
		return nil
	}
	if err := errors.Join(r.file.CheckUserSkills(r.agent, r.skills), r.file.CheckSession(r.agent, r.session)); err != nil {
		return err
	}
	if r.silent {
		return nil
	}
	for _, w := range r.file.Flows {
		if w.Definition().Name == r.agent {
			return w.CheckInput(r.task)
		}
	}
	return nil
}

// needsTask refuses a run without a task if its agent would have nothing to do. If only a
// worker elsewhere has the agent, the run itself finds out.
func (r *runner) needsTask() error {
	if !r.silent || r.options.Briefing != nil || len(r.options.Files) > 0 || r.file == nil {
		return nil
	}
	def, err := r.file.Agent(r.agent)
	if err != nil || def.Daemon != nil {
		return nil
	}
	return agent.Errorf(agent.CodeInvalidInput, "agent %s is no daemon: say in quotes what to do, as in fermata run %s \"…\"", r.agent, r.agent)
}

// maxPriority is the last of Temporal's priorities; a server may have more.
const maxPriority = 5

func badPriority(p int) error {
	return agent.Errorf(agent.CodeInvalidInput, "--priority must be from 1 (first) to %d, not %d", maxPriority, p)
}

// startOptions reads the options of the start from the flags.
func (r *runner) startOptions() (o fermata.StartOptions, err error) {
	o.Session, o.By, o.Carry, o.Priority = r.session, env.User(), agent.Carry(r.carry), r.priority
	o.Skills, o.WorkingFiles = r.skills, r.working
	switch o.Carry {
	case agent.CarryInherit, agent.CarryCompact, agent.CarryReset:
	default:
		return o, agent.Errorf(agent.CodeInvalidInput, "--carry must be inherit, compact or reset, not %q", r.carry)
	}
	// Zero is the flag that was left out: checkGiven refuses it as a value.
	if p := r.priority.PriorityKey; p < 0 || p > maxPriority {
		return o, badPriority(p)
	}
	if o.Files, err = fileInputs(r.shown); err != nil {
		return o, err
	}
	if r.judge != "" {
		o.Judge = &agent.Judge{Instructions: r.judge}
	}
	if r.park != "" {
		c, err := signals.DecodeConditions([]byte(r.park))
		if err != nil {
			return o, agent.Errorf(agent.CodeOf(err), "--park: %w", err)
		}
		o.Park = &c
	}
	if r.briefing == "" {
		return o, nil
	}
	// Bounded as a payload: the handoff becomes part of the run's input.
	raw, err := files.Read(r.briefing, agent.MaxPayload)
	if err != nil {
		return o, agent.Errorf(agent.CodeInvalidInput, "--briefing can't be read: %w", err)
	}
	// Any JSON object would decode; a handoff always names its session.
	if err := json.Unmarshal(raw, &o.Briefing); err != nil || o.Briefing == nil || o.Briefing.Session == "" {
		return o, agent.Errorf(agent.CodeInvalidInput, "--briefing %s is no handoff: write one with fermata handoff SESSION > FILE", r.briefing)
	}
	return o, nil
}

// connect finds the server. It starts the embedded one if this process can then work on
// the run.
func (r *runner) connect(ctx context.Context) (err error) {
	// Look starts nothing. A running server may have a worker, so no agents file is needed.
	if r.server, err = r.Look(ctx); err != nil {
		return err
	}
	if r.server == nil {
		// Checked first: a server without an agent to run would be started for nothing.
		if err := r.prepare(); err != nil {
			return err
		}
		if r.server, err = r.FindOrStart(ctx); err != nil {
			return err
		}
		r.embedded = r.server.InProcess()
	}
	r.runs, err = r.Client(ctx, r.server)
	return err
}

// prepare makes sure that this process can run the agent.
func (r *runner) prepare() error {
	switch {
	case r.detach:
		return nil
	case r.file == nil:
		return noAgents()
	}
	if _, err := r.file.Agent(r.agent); err != nil {
		return err
	}
	// The file's model would be checked for its key, so it is replaced first.
	if err := r.setModel(); err != nil {
		return err
	}
	return r.file.MissingKey(r.agent)
}

// setModel gives the agent the model of --model.
func (r *runner) setModel() error {
	if r.model == "" {
		return nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return agent.Errorf(agent.CodeInternal, "the working directory: %w", err)
	}
	return r.file.SetModel(r.agent, r.model, dir)
}

// findWorker finds a worker for the run, or starts one in this process.
func (r *runner) findWorker(ctx context.Context) error {
	var names []string
	// A server in this process is new, so it has no worker yet.
	if !r.server.InProcess() {
		var err error
		if names, err = r.Pollers(ctx, r.server); err != nil {
			return err
		}
	}
	if len(names) > 0 {
		if r.model != "" {
			return agent.Errorf(agent.CodeInvalidInput, "--model is for a worker in this process, and %s polls the task queue %s already: choose the model there, or use another --task-queue", names[0], r.Queue())
		}
		r.Note("worker %s", strings.Join(names, ", "))
		// The workers of the session's own task queue have its agent, whatever this directory's file has.
		if r.elsewhere && r.agents == "" {
			return nil
		}
		// Another worker with a different file would run another agent of this name.
		return r.host.SameAgents(r.server, r.file)
	}
	// Its worker would take everybody's runs there, with this directory's agents and tools.
	if r.elsewhere {
		return r.NoWorker(ctx, r.server, "; to start one with this directory's agents there, name --task-queue")
	}
	if r.file == nil {
		return r.NoWorker(ctx, r.server, ", or write "+agentsfile.DefaultName+" here; with --detach the run starts anyway, and waits")
	}
	return r.workHere(ctx)
}

// workHere starts a worker in this process.
func (r *runner) workHere(ctx context.Context) error {
	if err := r.prepare(); err != nil {
		return err
	}
	return r.startLocalWorker(ctx)
}

// startLocalWorker starts a worker in this process for the agents of the file.
func (r *runner) startLocalWorker(ctx context.Context) error {
	// Claimed before the worker polls: two files on one queue would take each other's runs.
	if err := r.host.ClaimQueue(ctx, r.server, r.runs, r.file); err != nil {
		return err
	}
	var err error
	r.worker, err = r.host.Start(ctx, r.server, r.file, runPatience, r.live)
	return err
}
