package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/files"
	"github.com/fermata-agents/fermata/testsuite/eval"
	"github.com/fermata-agents/fermata/testsuite/eval/evalrun"
)

func (c *cli) evalResumeCommand() *cobra.Command {
	e := &evaluator{cli: c}
	cmd := &cobra.Command{
		Use:   "resume ID [SUITE]",
		Short: "Continue an evaluation whose process has ended",
		Long: `Resume continues an evaluation where it stood: it starts the workers that fermata eval
run had started, and follows the evaluation to its end. The exit status is that of run.

The suite and the agents file come from this machine, never from the server. Without SUITE
they are those that fermata eval run recorded in the data directory. With SUITE, give the
flags of run again. Resume refuses if the evaluation began with anything else.

A step of a process that was killed is made again once its heartbeats have been missing: for
the evaluation's own after 10 s, for model and tool calls of the runs after 30 s.`,
		Example: `  fermata eval resume refunds-1a2b3c4d --html eval.html
  fermata eval resume refunds-1a2b3c4d suite.yaml --agents fermata.yaml`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				return nil
			}
			return exactArgs(1, "the id of an evaluation and, if you like, its suite")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.resume(cmd.Context(), args[0], strings.Join(args[1:], ""))
		},
	}
	e.localFlags(cmd)
	e.reports.flags(cmd)
	c.jsonFlag(cmd, "print each trial as a line of JSON, and then the report")
	return cmd
}

// begunHere is what the data directory records of an evaluation that this machine began.
// The server has no part in it, so a resume may load these paths.
type begunHere struct {
	Suite  string   `json:"suite"`
	Agents string   `json:"agents,omitempty"`
	Model  string   `json:"model,omitempty"`
	Queue  string   `json:"task_queue"`
	Cases  []string `json:"cases,omitempty"`
	Trials int      `json:"trials,omitempty"`
	eval.Pick
}

const maxBegunHere = 1 << 20 // bytes

func (e *evaluator) recordPath() (string, error) {
	dir, err := e.DataDir()
	return filepath.Join(dir, "evaluations", url.PathEscape(e.ID)+".json"), err
}

// remember records what the evaluation is made with. It comes before the start: a crash
// between the two leaves a record that nothing uses.
func (e *evaluator) remember(suite string) error {
	path, err := e.recordPath()
	if err != nil {
		return err
	}
	b := begunHere{Agents: e.Agents, Model: e.Model, Queue: e.Queue, Cases: e.only, Trials: e.trials, Pick: e.pick, Suite: filepath.Join(e.Dir, filepath.Base(suite))}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return agent.Errorf(agent.CodeNotWritten, "the data directory: %w", err)
	}
	return replaceFile(path, func(w io.Writer) error { return json.NewEncoder(w).Encode(b) })
}

// forget removes the record of an evaluation that has ended.
func (e *evaluator) forget() {
	if path, err := e.recordPath(); err == nil {
		_ = os.Remove(path) // one that stays is harmless
	}
}

// recall returns the suite of an evaluation that this machine began. The record's values
// are the defaults of the flags.
func (e *evaluator) recall() (suite string, err error) {
	path, err := e.recordPath()
	if err != nil {
		return "", err
	}
	raw, err := files.Read(path, maxBegunHere)
	if errors.Is(err, fs.ErrNotExist) {
		return "", agent.Errorf(agent.CodeInvalidInput, "the data directory has no record of the evaluation %s: name its suite, and give the flags of eval run again: %s", e.ID, e.CommandLine("eval resume %s SUITE", e.ID))
	}
	var b begunHere
	if err == nil {
		err = json.Unmarshal(raw, &b)
	}
	if err != nil {
		return "", agent.Errorf(agent.CodeInvalidInput, "the record %s can't be read: %w", path, err)
	}
	if e.agents == "" {
		e.agents, e.noAgents = b.Agents, b.Agents == ""
	}
	if e.Model == "" {
		e.Model = b.Model
	}
	if e.TaskQueue == "" {
		e.TaskQueue = b.Queue
	}
	if e.only == nil && e.trials == 0 && e.pick == (eval.Pick{}) {
		e.only, e.trials, e.pick = b.Cases, b.Trials, b.Pick
	}
	return b.Suite, nil
}

func (e *evaluator) resume(ctx context.Context, id, suite string) (err error) {
	e.ID = id
	if err := e.checkFolders(); err != nil {
		return err
	}
	if err := e.observe(ctx); err != nil {
		return err
	}
	defer e.close()
	if e.server, err = e.FindOrStart(ctx); err != nil {
		return err
	}
	h, err := e.evaluation(ctx, e.server, id)
	if err != nil {
		return err
	}
	ended, err := h.Ended(ctx)
	if err != nil {
		return err
	}
	if e.resumed = !ended; e.resumed {
		if err := e.restart(ctx, h, suite); err != nil {
			return err
		}
	}
	return e.follow(ctx, h)
}

// restart starts the workers that the first command had, with the files of this machine.
func (e *evaluator) restart(ctx context.Context, h *evalrun.Handle, suite string) (err error) {
	if suite == "" {
		if suite, err = e.recall(); err != nil {
			return err
		}
	}
	// A queue of another program has that program's functions.
	e.Evaluator = h.Evaluator
	if strings.HasPrefix(e.Evaluator, evaluatorQueue) {
		e.Evaluator = ""
	}
	if err := e.load(ctx, suite); err != nil {
		return err
	}
	e.Queue, e.Local = e.cli.Queue(), h.Local
	if err := e.sameAs(ctx, h); err != nil {
		return err
	}
	if e.runs, err = e.Client(ctx, e.server); err != nil {
		return err
	}
	return e.startWorkers(ctx)
}

// sameAs refuses to continue an evaluation with anything but what it began with.
func (e *evaluator) sameAs(ctx context.Context, h *evalrun.Handle) error {
	switch {
	case h.ID != e.ID || e.Evaluator == "" && h.Evaluator != evaluatorQueue+e.ID:
		return agent.Errorf(agent.CodeDenied, "the workflow %s was not begun by fermata eval run: start a new evaluation", e.ID)
	case h.Queue != e.Queue:
		return agent.Errorf(agent.CodeDenied, "the runs of the evaluation %s are on the task queue %q, and not on %q: if you began it there, name that queue with --task-queue", e.ID, h.Queue, e.Queue)
	case h.Model != e.Model:
		return agent.Errorf(agent.CodeDenied, "the evaluation %s began with --model %q, and not with %q: if you began it so, name that model", e.ID, h.Model, e.Model)
	case h.AgentsDigest != e.AgentsDigest:
		return agent.Errorf(agent.CodeDenied, "the evaluation %s began with another agents file: restore that file, name it with --agents, or start a new evaluation", e.ID)
	}
	return h.Same(ctx, e.suite, e.Dir)
}
