package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	sdk "go.temporal.io/sdk/worker"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/agentsfile"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
	"github.com/fermata-agents/fermata/live"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/tool/mcp"
	"github.com/fermata-agents/fermata/worker"
)

// localWorker is a worker in this process, with all that its agents work with.
type localWorker struct {
	worker *worker.Worker
	kit    io.Closer
	stop   context.CancelFunc // of the look at disks
}

// startWorker starts a worker for the agents of a file. sink hears what runs say right now,
// where no other process can, and may be nil; patience is how long calls in progress may
// take when the worker stops.
func (c *cli) startWorker(ctx context.Context, s *connect.Server, f *agentsfile.File, patience time.Duration, sink live.Sink) (*localWorker, error) {
	c.warnOfEnvironment() // first: what is misspelt may be what is missing below
	transcripts, err := c.OpenStore(ctx)
	if err != nil {
		return nil, err
	}
	keys, approving := env.ApprovalKeys.Verifiers()
	exports, exporting := env.ExportKeys.Verifiers()
	policy, err := c.readPolicy()
	if err := errors.Join(approving, exporting, err); err != nil {
		return nil, err
	}
	if far, err := c.LiveEnds(s); err != nil {
		return nil, err
	} else if far != nil {
		sink = far
	}
	holds := c.Holds()
	var vault mcp.Vault // in memory, where nothing encrypts what is stored
	if v := store.NewVault(transcripts); v != nil {
		vault = v
	}
	kit, err := c.openKit(f, vault)
	if err != nil {
		return nil, err
	}
	o := c.workerOptions(f, kit)
	o.Store, o.Temporal, o.Live, o.Holds, o.ApprovalKeys, o.ExportKeys, o.Policy = transcripts, stopsWithin(patience), sink, holds, keys, exports, policy
	o.Deployment, o.Build = c.deployment, cmp.Or(c.build, version())
	if c.exports.observer != nil {
		o.Observer = c.exports.observer
	}
	if o.Audit, err = c.auditOf(f); err != nil {
		return nil, errors.Join(err, kit.Close())
	}
	w, err := worker.New(s.Client, o)
	if err == nil {
		err = w.Start(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, kit.Close())
	}
	c.warnOfRisks(f, policy)
	watching, stop := context.WithCancel(ctx)
	if err := c.watchDisks(watching, s); err != nil {
		stop()
		w.Stop()
		return nil, errors.Join(err, kit.Close())
	}
	return &localWorker{w, kit, stop}, nil
}

// warnOfRisks says what the agents file and the policy leave open.
func (c *cli) warnOfRisks(f *agentsfile.File, policy agent.Policy) {
	for _, name := range unknownPolicyAgents(policy, f) {
		c.Log.Slog().Warn(name, "todo", unknownPolicyAgentsRemedy)
	}
	if text := unproven(f); text != "" {
		c.Log.Slog().Warn(text, "todo", unprovenRemedy)
	}
	if text := unheld(f); text != "" {
		c.Log.Slog().Warn(text, "todo", unheldRemedy)
	}
}

// openKit opens what the agents of a file work with, unless it is not safe to have.
func (c *cli) openKit(f *agentsfile.File, vault mcp.Vault) (kit *agentsfile.Kit, err error) {
	if f.Private, err = c.private(); err != nil {
		return nil, err
	}
	if kit, err = f.Open(c.Log.Slog(), vault); err != nil {
		return nil, err
	}
	if err := kit.Check(); err != nil {
		return nil, errors.Join(err, kit.Close())
	}
	return kit, nil
}

// workerOptions is what a worker for an agents file has.
func (c *cli) workerOptions(f *agentsfile.File, kit *agentsfile.Kit) *worker.Options {
	return &worker.Options{
		TaskQueue: c.Queue(), Agents: f.Agents, Tools: kit.Tools, Sources: kit.Sources, Approvals: f.Approvals(), Pins: f.Pins(), Models: f.Models(), RateLimits: f.RateLimits(), DailyLimits: f.Daily, Logger: c.Log.Logger,
	}
}

// shutDown stops the worker and what it used.
func (w *localWorker) shutDown() error {
	w.stop()
	w.worker.Stop()
	return w.kit.Close()
}

// stopWorker stops a worker of this process.
func (c *cli) stopWorker(w *localWorker) {
	if err := w.shutDown(); err != nil {
		c.Note("fermata: stopping: %v", err)
	}
}

// agentsFile loads the agents file that is named, or the one in the working
// directory; nil if none is named and none is there.
func agentsFile(ctx context.Context, path string) (*agentsfile.File, error) {
	if path == "" {
		path = agentsfile.DefaultName
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
	}
	return agentsfile.Load(ctx, path)
}

// noAgents says what to write where there is no agents file.
func noAgents() error {
	return agent.Errorf(agent.CodeInvalidInput, "there is no agents file: write %s, such as \"agents: {reviewer: {model: anthropic/claude-sonnet-5, instructions: You review code., tools: [fs_read, fs_grep]}}\", or name one with --agents", agentsfile.DefaultName)
}

// queueOwner remembers in the data directory which agents file its task queue
// was last worked on with. Runs of one directory must not go on with the tools,
// and in the workspace, of another.
func (c *cli) queueOwner() (string, error) {
	dir, err := c.DataDir()
	return filepath.Join(dir, "queues", url.PathEscape(c.Queue())), err
}

// claimQueue makes an agents file the owner of the task queue, on the server of
// the data directory. It is refused while runs of another file's agents live there.
func (c *cli) claimQueue(ctx context.Context, s *connect.Server, runs *fermata.Client, f *agentsfile.File) error {
	if s.Embedded == nil {
		return nil
	}
	record, err := c.queueOwner()
	if err != nil {
		return err
	}
	mine := absPath(f)
	if other := owner(record); other != "" && other != mine {
		if names, err := c.Pollers(ctx, s); err != nil || len(names) > 0 {
			return errors.Join(err, c.sameAgents(s, f))
		}
		live, err := c.liveSessions(ctx, runs)
		if err != nil {
			return err
		}
		if len(live) > 0 {
			return agent.Errorf(agent.CodeBusy, "the task queue %s has live runs of the agents in %s (%s): let them end with fermata dev --agents %s, end them with temporal workflow terminate, or use another --task-queue",
				c.Queue(), other, strings.Join(live, ", "), other)
		}
	}
	err = os.MkdirAll(filepath.Dir(record), 0o700)
	if err == nil {
		err = os.WriteFile(record, []byte(mine+"\n"), 0o600)
	}
	if err != nil {
		return agent.Errorf(agent.CodeNotWritten, "the data directory: %w", err)
	}
	return nil
}

func owner(record string) string {
	text, err := os.ReadFile(record)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// sameAgents refuses to give a run of this directory's agents to a worker that is
// known to have another file's.
func (c *cli) sameAgents(s *connect.Server, f *agentsfile.File) error {
	if s.Embedded == nil || f == nil {
		return nil
	}
	record, err := c.queueOwner()
	if err != nil {
		return err
	}
	other := owner(record)
	if other == "" || other == absPath(f) {
		return nil
	}
	return agent.Errorf(agent.CodeBusy, "the worker at the task queue %s has the agents of %s, not those of %s: use another --task-queue, or stop that worker", c.Queue(), other, absPath(f))
}

// absPath is the absolute path of an agents file.
func absPath(f *agentsfile.File) string { return filepath.Join(f.Dir, filepath.Base(f.Path)) }

// liveSessions lists some sessions whose runs are not at an end, on the task queue.
func (c *cli) liveSessions(ctx context.Context, runs *fermata.Client) (live []string, err error) {
	const enough = 3
	query := "TaskQueue = " + connect.Quote(c.Queue()) + " AND ExecutionStatus = 'Running'"
	for l, err := range runs.List(ctx, fermata.ListFilter{Query: query}) {
		if err != nil {
			return nil, err
		}
		if live = append(live, l.Session); len(live) == enough {
			return append(live, "…"), nil
		}
	}
	return live, nil
}

// stopsWithin makes a worker that stops wait so long for calls in progress.
func stopsWithin(patience time.Duration) func(worker.Lane, *sdk.Options) {
	return func(_ worker.Lane, o *sdk.Options) { o.WorkerStopTimeout = patience }
}

// warnOfEnvironment says what of its environment a worker does not heed, or should not have.
func (c *cli) warnOfEnvironment() {
	for _, o := range env.Oddities() {
		c.Log.Slog().Warn(o.Text, "todo", o.Todo)
	}
}
