package main

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/agentsfile"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/localworker"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/version"
)

// workerPatience is how long running calls may take when the worker is stopped.
const workerPatience = 30 * time.Second

func (c *cli) workerCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "worker --agents FILE",
		Short: "Run a worker for a Temporal server",
		Long: `Worker runs the agents of a file on a Temporal server, until Ctrl-C. When it stops, it
takes no more work and gives calls in progress 30s.

Transcripts are in --store. With a Temporal server on another machine, the store is
a database, a bucket, or a folder that every worker sees (--store-shared).

With --deployment, the worker is one version of a Worker Deployment, named by --build.
It gets work when that version is current.`,
		Example: `  fermata worker --agents fermata.yaml
  fermata worker --agents fermata.yaml --profile prod --store /mnt/fermata --store-shared
  fermata worker --profile prod --deployment agents --build 2026-11-21.1
  FERMATA_STORE=postgres://ana:secret@db.acme.com/fermata fermata worker --profile prod`,
		Args: exactArgs(0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error { return c.work(cmd.Context()) },
	}
	cmd.Flags().StringVar(&c.agents, "agents", "", "agents file (default \"fermata.yaml\", if it is there)")
	c.policyFlag(cmd)
	cmd.Flags().StringVar(&c.host.Deployment, "deployment", "", "name of the Worker Deployment (default none)")
	cmd.Flags().StringVar(&c.host.Build, "build", "", "name of this version, which runs show (default that of this program)")
	c.jsonFlag(cmd, "print one line of JSON when the worker is ready")
	return cmd
}

func (c *cli) work(ctx context.Context) error {
	// A build named "(devel)" would be the same for every deploy, and runs would mix.
	if c.host.Deployment != "" && c.host.Build == "" && strings.HasPrefix(version.Program(), "(devel)") {
		return agent.Errorf(agent.CodeInvalidInput, "--deployment needs --build: this program has no version of its own, so name each deploy, by a release or a commit")
	}
	f, err := agentsFile(ctx, c.agents)
	if err != nil {
		return err
	}
	if f == nil {
		return noAgents()
	}
	if err := c.observe(ctx); err != nil {
		return err
	}
	// A worker runs for long, so the SDK's warnings matter; other commands hide them.
	c.Log.SDKWarnings = true
	s, err := c.Find(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	w, err := c.startSharedWorker(ctx, s, f, workerPatience)
	if err != nil {
		return err
	}
	defer c.host.Stop(w)
	c.noteWorker(f)
	c.ready(s, f)
	c.People("ready      pid %d; Ctrl-C stops", os.Getpid())
	return c.until(ctx, w, workerPatience)
}

// until waits until Ctrl-C, or until the worker ends by itself; then the error says why.
func (c *cli) until(ctx context.Context, w *localworker.Worker, patience time.Duration) error {
	err := w.Wait(ctx)
	c.Note("stopping; calls in progress have %s", patience)
	return err
}

// startSharedWorker starts a worker that serves others, unless the task queue belongs to
// another agents file.
func (c *cli) startSharedWorker(ctx context.Context, s *connect.Server, f *agentsfile.File, patience time.Duration) (*localworker.Worker, error) {
	runs, err := c.Client(ctx, s)
	if err != nil {
		// Claimed before the start: two files on one queue would take each other's runs.
		return nil, err
	}
	if err := c.host.ClaimQueue(ctx, s, runs, f); err != nil {
		return nil, err
	}
	// Only a warning: agents with other models can work.
	c.warnOfKeys(f)
	w, err := c.host.Start(ctx, s, f, patience, nil)
	if err == nil {
		c.keepDeleting(ctx, runs, f)
	}
	return w, err
}

func (c *cli) noteWorker(f *agentsfile.File) {
	names := agentNames(f)
	c.People("worker     task queue %s, agents of %s: %s", c.Queue(), f.Path, strings.Join(names, ", "))
}

func agentNames(f *agentsfile.File) (names []string) {
	for _, def := range f.Definitions() {
		names = append(names, def.Name)
	}
	return names
}

// readyLine is the output of dev and worker with --json.
type readyLine struct {
	V         int    `json:"v"`
	Type      string `json:"type"`
	PID       int    `json:"pid"`
	Address   string `json:"address"`
	Namespace string `json:"namespace"`
	// Data is where dev's server keeps its data.
	Data string `json:"data,omitempty"`
	// TaskQueue, File and Agents belong to the worker; empty if there is none.
	TaskQueue string   `json:"task_queue,omitempty"`
	File      string   `json:"agents_file,omitempty"`
	Agents    []string `json:"agents,omitempty"`
}

// ready tells programs that a server, a worker or both run; f is nil without a worker.
func (c *cli) ready(s *connect.Server, f *agentsfile.File) {
	if !c.JSON {
		return
	}
	l := readyLine{V: agent.Version, Type: "ready", PID: os.Getpid(), Address: s.Addr, Namespace: s.Namespace, Data: s.Data}
	if f != nil {
		l.TaskQueue, l.File, l.Agents = c.Queue(), f.Path, agentNames(f)
	}
	c.Line(l)
}

// warnOfKeys says which agents can't work because a key is missing. The others can.
func (c *cli) warnOfKeys(f *agentsfile.File) {
	for _, k := range f.Keys() {
		if !k.Set {
			c.Note("%s is not set: runs of %s will fail", k.Env, strings.Join(k.Agents, ", "))
		}
	}
}
