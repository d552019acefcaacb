package main

import (
	"cmp"
	"context"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/agentsfile"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/localworker"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/version"
)

// How long calls in progress may take when a worker is stopped.
const (
	devPatience    = 5 * time.Second
	workerPatience = 30 * time.Second
)

func (c *cli) devCommand() *cobra.Command {
	var agents, addr string
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run Temporal and a worker in this process, until Ctrl-C",
		Long: `Dev runs a Temporal server inside of this process, on loopback only, and a worker
for the agents file if there is one. Its data outlives it: runs that were under
way go on when it starts again. It is for one machine and one user: there is no
authentication.

Other commands find it by its data directory.`,
		Example: `  fermata dev
  fermata dev --agents team.yaml --data ./.fermata --addr 127.0.0.1:7300`,
		Args: wants(0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error { return c.dev(cmd.Context(), agents, addr) },
	}
	cmd.Flags().StringVar(&agents, "agents", "", "agents file (default \"fermata.yaml\" where it is there)")
	c.policyFlag(cmd)
	cmd.Flags().StringVar(&addr, "addr", "", "loopback address to listen on (default 127.0.0.1:7233, or a free port where that is taken)")
	c.jsonFlag(cmd, "print one line of JSON when others can come")
	return cmd
}

func (c *cli) dev(ctx context.Context, agents, addr string) error {
	if c.Address != "" || c.Profile != "" {
		return agent.Errorf(agent.CodeInvalidInput, "dev is a server of its own, and takes no --address or --profile: for a worker of another server see fermata worker")
	}
	if err := checkLoopback("--addr", addr); err != nil {
		return err
	}
	f, err := agentsFile(ctx, agents)
	if err != nil {
		return err
	}
	if err := c.observe(ctx); err != nil {
		return err
	}
	s, err := c.StartDev(ctx, addr)
	if err != nil {
		return err
	}
	defer s.Close()
	dir, _ := c.DataDir() // used already
	s.Data = dir
	c.People("temporal   %s, namespace %s, data in %s", s.Addr, s.Namespace, dir)
	if f == nil {
		s.Embedded.Open()
		c.People("worker     none: there is no %s here, and no --agents", agentsfile.DefaultName)
		c.ready(s, nil)
		c.People("ready      Ctrl-C stops")
		<-ctx.Done()
		return nil
	}
	if err := c.devWorker(ctx, s, f); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// checkLoopback refuses an address that others could reach.
func checkLoopback(flag, addr string) error {
	if addr == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if ip := net.ParseIP(host); err == nil && (host == "localhost" || ip != nil && ip.IsLoopback()) {
		return nil
	}
	return agent.Errorf(agent.CodeInvalidInput, "%s must be a loopback address with a port up to 65535, such as %s, not %q: nobody else is to reach the server", flag, connect.DefaultAddress, addr)
}

func (c *cli) devWorker(ctx context.Context, s *connect.Server, f *agentsfile.File) error {
	w, err := c.startSharedWorker(ctx, s, f, devPatience)
	if err != nil {
		return err
	}
	defer c.host.Stop(w)
	if err := c.AwaitPolling(ctx, s); err != nil {
		return err
	}
	s.Embedded.Open()
	c.noteWorker(f)
	c.People("try        fermata run %s \"…\"%s in another terminal%s; temporal workflow list --address %s", f.Agents[0].Name, c.dataFlag(), c.withStore(), s.Addr)
	c.ready(s, f)
	c.People("ready      Ctrl-C stops")
	return c.until(ctx, w, devPatience)
}

// until lets a worker work until Ctrl-C, or until it ends by itself: then the error says why.
func (c *cli) until(ctx context.Context, w *localworker.Worker, patience time.Duration) error {
	err := w.Wait(ctx)
	c.Note("stopping; calls in progress have %s", patience)
	return err
}

// startSharedWorker starts a worker that is there for others, unless the task queue is somebody else's.
func (c *cli) startSharedWorker(ctx context.Context, s *connect.Server, f *agentsfile.File, patience time.Duration) (*localworker.Worker, error) {
	runs, err := c.Client(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := c.host.ClaimQueue(ctx, s, runs, f); err != nil {
		return nil, err
	}
	c.warnOfKeys(f)
	return c.host.Start(ctx, s, f, patience, nil)
}

// dataFlag is what other commands need to find the server of this one.
func (c *cli) dataFlag() string {
	if c.Data == "" {
		return ""
	}
	return " --data " + c.Data
}

// withStore is what other commands need to find a store that was named. A URL may have a
// password in it.
func (c *cli) withStore() string {
	switch place := cmp.Or(c.Store, os.Getenv(env.Store)); {
	case place == "":
		return ""
	case connect.FolderOf(place) == "":
		return " with the same " + env.Store
	default:
		return " with --store " + connect.ShellWord(place)
	}
}

func (c *cli) noteWorker(f *agentsfile.File) {
	names := agentNames(f)
	c.People("worker     task queue %s, agents of %s: %s", c.Queue(), f.Path, strings.Join(names, ", "))
}

func agentNames(f *agentsfile.File) (names []string) {
	for _, def := range f.Agents {
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
	// TaskQueue, File and Agents are those of the worker; empty if there is none.
	TaskQueue string   `json:"task_queue,omitempty"`
	File      string   `json:"agents_file,omitempty"`
	Agents    []string `json:"agents,omitempty"`
}

// ready tells programs that a server, a worker or both work; f is nil without a worker.
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

// warnOfKeys tells which agents can't work for want of a key. Others can.
func (c *cli) warnOfKeys(f *agentsfile.File) {
	for _, k := range f.Keys() {
		if !k.Set {
			c.Note("%s is not set: runs of %s will fail", k.Env, strings.Join(k.Agents, ", "))
		}
	}
}

func (c *cli) workerCommand() *cobra.Command {
	var agents string
	cmd := &cobra.Command{
		Use:   "worker --agents FILE",
		Short: "Run a worker for a Temporal that is already there, until Ctrl-C",
		Long: `Worker runs the agents of a file for a Temporal server that is already there. When
it is stopped it takes no more work and gives calls in progress 30s.

Transcripts are kept in --store. Where the server is on another machine, that is
a database, or a folder that every worker sees (--store-shared).

With --deployment it is one version of a Worker Deployment, named by --build, and
works once that version was made current.`,
		Example: `  fermata worker --agents fermata.yaml
  fermata worker --agents fermata.yaml --profile prod --store /mnt/fermata --store-shared
  fermata worker --profile prod --deployment agents --build 2026-11-21.1
  FERMATA_STORE=postgres://ana:secret@db.acme.com/fermata fermata worker --profile prod`,
		Args: wants(0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error { return c.work(cmd.Context(), agents) },
	}
	cmd.Flags().StringVar(&agents, "agents", "", "agents file (default \"fermata.yaml\" where it is there)")
	c.policyFlag(cmd)
	cmd.Flags().StringVar(&c.host.Deployment, "deployment", "", "name of the Worker Deployment that this worker is a version of (default none)")
	cmd.Flags().StringVar(&c.host.Build, "build", "", "this version, as runs show it (default that of this program)")
	c.jsonFlag(cmd, "print one line of JSON when it works")
	return cmd
}

func (c *cli) work(ctx context.Context, agents string) error {
	if c.host.Deployment != "" && c.host.Build == "" && strings.HasPrefix(version.Program(), "(devel)") {
		return agent.Errorf(agent.CodeInvalidInput, "--deployment wants --build: this program has no version of its own, so name each deploy, by a release or a commit")
	}
	f, err := agentsFile(ctx, agents)
	if err != nil {
		return err
	}
	if f == nil {
		return noAgents()
	}
	if err := c.observe(ctx); err != nil {
		return err
	}
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
