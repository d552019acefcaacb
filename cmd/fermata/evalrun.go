package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	sdk "go.temporal.io/sdk/worker"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/agentsfile"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/localworker"
	"github.com/fermata-agents/fermata/testsuite/eval"
	"github.com/fermata-agents/fermata/testsuite/eval/evalrun"
	"github.com/fermata-agents/fermata/testsuite/eval/grade"
)

// evaluator is one `eval run` or `eval resume`.
type evaluator struct {
	*cli
	reports
	eval.Info
	only   []string // the cases that are tried
	trials int
	pick   eval.Pick // of the suite's data file
	// noAgents says that the evaluation began without an agents file.
	noAgents bool

	resumed bool
	suite   *eval.Suite
	file    *agentsfile.File
	server  *connect.Server
	runs    *fermata.Client
	worker  *localworker.Worker // of the agents; nil if it is elsewhere
	grading sdk.Worker          // of the evaluation; nil if it is elsewhere
}

// evaluatorQueue begins the task queue of an evaluation that the command itself works on.
// Each has one of its own: commands of another suite must not run in this one's directory.
const evaluatorQueue = "fermata-eval-"

func (c *cli) evalRunCommand() *cobra.Command {
	e := &evaluator{cli: c}
	cmd := &cobra.Command{
		Use:   "run SUITE",
		Short: "Try the cases of a suite and grade the trials",
		Long: `Run evaluates a suite: a YAML file with cases, trials, graders and a budget. If no
worker polls the task queue, the command starts one in this process with the agents file.

If the command ends early, fermata eval resume continues the evaluation.

The exit status is 0 if all cases pass, 1 if one does not, and 4 if the budget left out
trials that could decide it. If trials could not be made or graded it is that of the error.`,
		Example: `  fermata eval run suite.yaml
  fermata eval run suite.yaml --agents fermata.yaml --label haiku --model anthropic/claude-haiku-4-5
  fermata eval run gsm8k.yaml --sample 20 --trials 3
  fermata eval run suite.yaml --junit eval.xml --html eval.html --json > eval.jsonl`,
		Args: exactArgs(1, "a suite's file"),
		RunE: func(cmd *cobra.Command, args []string) error { return e.run(cmd.Context(), args[0]) },
	}
	e.localFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&e.Label, "label", "", "your name for what is evaluated, such as a build or a prompt")
	f.StringVar(&e.Evaluator, "evaluator", "", "task queue of a Go worker that evaluates (default this process)")
	e.reports.flags(cmd)
	c.jsonFlag(cmd, "print each trial as a line of JSON, and then the report")
	return cmd
}

// localFlags adds the flags that say what is evaluated. A resume has them, too.
func (e *evaluator) localFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&e.agents, "agents", "", "agents file (default \"fermata.yaml\", if it is there)")
	f.StringVar(&e.Model, "model", "", "use another model for all agents of the suite, if the worker is in this process")
	f.StringArrayVar(&e.only, "case", nil, "try only this case; may be repeated")
	f.IntVar(&e.trials, "trials", 0, "try each case this often, instead of what the suite says")
	f.IntVar(&e.pick.Limit, "limit", 0, "of the suite's data file, take only the first records")
	f.IntVar(&e.pick.Sample, "sample", 0, "of the suite's data file, take this many records, always the same ones")
}

// load reads the suite and the agents file of this machine.
func (e *evaluator) load(ctx context.Context, path string) (err error) {
	if e.suite, e.Dir, err = readSuite(path, e.pick); err != nil {
		return err
	}
	if err := e.narrow(); err != nil {
		return err
	}
	if !e.noAgents {
		if e.file, err = agentsFile(ctx, e.agents); err != nil {
			return err
		}
	}
	return e.checkSuite()
}

func (e *evaluator) run(ctx context.Context, path string) (err error) {
	if err := e.checkFolders(); err != nil {
		return err
	}
	if err := e.load(ctx, path); err != nil {
		return err
	}
	if err := e.observe(ctx); err != nil {
		return err
	}
	defer e.close()
	if err := e.connect(ctx); err != nil {
		return err
	}
	e.ID, e.Queue = evalrun.NewID(e.suite.Name), e.cli.Queue()
	if err := e.startWorkers(ctx); err != nil {
		return err
	}
	if err := e.remember(path); err != nil {
		return err
	}
	h, err := evalrun.Start(ctx, e.server.Client, e.suite, e.Info, e.Dir)
	if err != nil {
		return err
	}
	return e.follow(ctx, h)
}

// narrow applies what the flags say about the suite.
func (e *evaluator) narrow() error {
	var names []string
	for _, k := range e.suite.Cases {
		names = append(names, k.Name)
	}
	const shown = 10
	for _, name := range e.only {
		if !slices.Contains(names, name) {
			return agent.Errorf(agent.CodeInvalidInput, "--case %s: the suite has no such case; it has %d: %s", name, len(names), strings.Join(names[:min(len(names), shown)], ", "))
		}
	}
	if len(e.only) > 0 {
		e.suite.Cases = slices.DeleteFunc(e.suite.Cases, func(k eval.Case) bool { return !slices.Contains(e.only, k.Name) })
	}
	if e.trials < 0 {
		return agent.Errorf(agent.CodeInvalidInput, "--trials is %d: give how often each case is tried, 1 or more", e.trials)
	}
	if e.trials != 0 {
		e.suite.Trials = e.trials
		for i := range e.suite.Cases {
			e.suite.Cases[i].Trials = e.trials
		}
	}
	// The flag may ask for too many.
	return e.suite.Check()
}

// checkSuite checks what the suite needs of the agents file.
func (e *evaluator) checkSuite() error {
	if e.Evaluator == "" && e.suite.Outside(func(g grade.Spec) bool { return g.Function != nil }) {
		return agent.Errorf(agent.CodeInvalidInput, "the suite has Go functions as graders, which this command lacks: register them in a Go worker with evalrun.Register, and name its task queue with --evaluator")
	}
	if e.file == nil {
		if models := e.suite.Models(); e.Evaluator == "" && len(models) > 0 {
			return agent.Errorf(agent.CodeInvalidInput, "the suite asks the model %s, and without an agents file no model is known: name one with --agents", models[0])
		}
		return nil
	}
	// A script's path must be the same for a resume from another directory.
	if path, ok := strings.CutPrefix(e.Model, "script:"); ok && !filepath.IsAbs(path) {
		here, err := os.Getwd()
		if err != nil {
			return agent.Errorf(agent.CodeInternal, "the working directory: %w", err)
		}
		e.Model = "script:" + filepath.Join(here, path)
	}
	e.Agents = filepath.Join(e.file.Dir, filepath.Base(e.file.Path))
	raw, err := os.ReadFile(e.Agents)
	if err != nil {
		return agent.Errorf(agent.CodeInvalidInput, "the agents file can't be read: %w", err)
	}
	sum := sha256.Sum256(raw)
	e.AgentsDigest = hex.EncodeToString(sum[:])
	for i := range e.suite.Cases {
		k := e.suite.Complete(i)
		if _, err := e.file.Agent(k.Agent); err != nil {
			return agent.Errorf(agent.CodeOf(err), "case %s: %w", k.Name, err)
		}
	}
	return e.useModels(e.suite)
}

// useModels replaces the agents' models if that was asked for, and makes the models of
// judges and persons available.
func (e *evaluator) useModels(s *eval.Suite) error {
	for i := range s.Cases {
		if e.Model == "" {
			break
		}
		if err := e.file.SetModel(s.Complete(i).Agent, e.Model, e.Dir); err != nil {
			return err
		}
	}
	if e.Evaluator != "" && !strings.HasPrefix(e.Evaluator, evaluatorQueue) {
		return nil // another program has these models
	}
	for _, name := range s.Models() {
		if err := e.file.UseModel(name, e.Dir); err != nil {
			return err
		}
	}
	return nil
}

// connect finds the server. It starts the embedded one if this process can work on the
// runs.
func (e *evaluator) connect(ctx context.Context) (err error) {
	if e.server, err = e.Look(ctx); err != nil {
		return err
	}
	if e.server == nil {
		if e.file == nil {
			return noAgents()
		}
		if e.server, err = e.FindOrStart(ctx); err != nil {
			return err
		}
	}
	e.runs, err = e.Client(ctx, e.server)
	return err
}

// startWorkers starts the workers that are missing: that of the agents and that of the
// evaluation.
func (e *evaluator) startWorkers(ctx context.Context) error {
	if err := e.startAgents(ctx); err != nil {
		return err
	}
	if e.Evaluator == "" {
		e.Evaluator = evaluatorQueue + e.ID
	}
	if !strings.HasPrefix(e.Evaluator, evaluatorQueue) {
		return nil
	}
	o := &evalrun.Options{Temporal: e.server.Client, Runs: e.runs, Dir: e.Dir, Suite: e.suite}
	private, err := e.host.Private()
	if err != nil {
		return err
	}
	o.Sandbox = &grade.Sandbox{Private: private}
	if e.file != nil {
		o.Models = e.file.Models()
		w := e.file.WorkspaceOptions()
		o.Sandbox = &grade.Sandbox{Sandbox: w.Sandbox, Confine: w.Confine, AsRoot: w.AsRoot, Network: w.Network, Read: w.Read, Write: w.Write, Private: append(private, w.Private...)}
	}
	e.grading = sdk.New(e.server.Client, e.Evaluator, sdk.Options{WorkerStopTimeout: runPatience})
	if err := evalrun.Register(e.grading, o); err != nil {
		return err
	}
	if err := e.grading.Start(); err != nil {
		return agent.Errorf(agent.CodeUnreachable, "the worker of the evaluation: %w", err)
	}
	return nil
}

// startAgents starts a worker of the agents, unless one polls already. On a resume it does
// what the first command did: its killed worker may still look as if it polled.
func (e *evaluator) startAgents(ctx context.Context) error {
	if !e.Local && !e.server.InProcess() {
		names, err := e.Pollers(ctx, e.server)
		if err != nil {
			return err
		}
		if len(names) > 0 {
			if e.Model != "" {
				return agent.Errorf(agent.CodeInvalidInput, "--model is for a worker in this process, and %s polls the task queue %s already: choose the model there, or use another --task-queue", names[0], e.cli.Queue())
			}
			e.Note("worker %s", strings.Join(names, ", "))
			return e.host.SameAgents(e.server, e.file)
		}
	}
	if e.file == nil {
		return e.NoWorker(ctx, e.server, ", or write "+agentsfile.DefaultName+" here")
	}
	for i := range e.suite.Cases {
		if err := e.file.MissingKey(e.suite.Complete(i).Agent); err != nil {
			return err
		}
	}
	if err := e.host.ClaimQueue(ctx, e.server, e.runs, e.file); err != nil {
		return err
	}
	var err error
	e.worker, err = e.host.Start(ctx, e.server, e.file, runPatience, nil)
	e.Local = err == nil
	return err
}

// close stops what this process has: the workers, then the server.
func (e *evaluator) close() {
	if e.grading != nil {
		e.grading.Stop()
	}
	if e.worker != nil {
		e.host.Stop(e.worker)
	}
	if e.server != nil {
		e.server.Close()
	}
}
