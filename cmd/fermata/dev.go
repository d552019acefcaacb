package main

import (
	"cmp"
	"context"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/agentsfile"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
)

// devPatience is how long running calls may take when dev is stopped.
const devPatience = 5 * time.Second

func (c *cli) devCommand() *cobra.Command {
	var addr string
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run a Temporal server and a worker for development",
		Long: `Dev runs a Temporal server in this process, on loopback, and a worker if there is an
agents file. It runs until Ctrl-C. Its data stays: when dev starts again, unfinished
runs continue. It is for one user on one machine, because it has no authentication.

Other commands find the server by its data directory.`,
		Example: `  fermata dev
  fermata dev --agents team.yaml --data ./.fermata --addr 127.0.0.1:7300`,
		Args: exactArgs(0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error { return c.dev(cmd.Context(), addr) },
	}
	cmd.Flags().StringVar(&c.agents, "agents", "", "agents file (default \"fermata.yaml\", if it is there)")
	c.policyFlag(cmd)
	cmd.Flags().StringVar(&addr, "addr", "", "loopback address to listen on (default 127.0.0.1:7233, or a free port if that is taken)")
	c.jsonFlag(cmd, "print one line of JSON when the server is ready")
	return cmd
}

func (c *cli) dev(ctx context.Context, addr string) error {
	if c.Address != "" || c.Profile != "" {
		return agent.Errorf(agent.CodeInvalidInput, "dev starts its own server and takes no --address or --profile: to work for another server, use fermata worker")
	}
	// The embedded server has no authentication.
	if err := checkLoopback("--addr", addr); err != nil {
		return err
	}
	f, err := agentsFile(ctx, c.agents)
	if err != nil {
		return err
	}
	// Before the server: its clients are counted from the first call.
	if err := c.observe(ctx); err != nil {
		return err
	}
	s, err := c.StartDev(ctx, addr)
	if err != nil {
		return err
	}
	defer s.Close()
	dir, _ := c.DataDir() // it was used before, so there is no error
	s.Data = dir
	c.People("temporal   %s, namespace %s, data in %s", s.Addr, s.Namespace, dir)
	if f == nil {
		// Other commands could not connect so far: without a worker there is nothing to wait for.
		s.Embedded.Open()
		c.People("worker     none: there is no %s here, and no --agents", agentsfile.DefaultName)
		c.ready(s, nil)
		c.People("ready      Ctrl-C stops")
		<-ctx.Done()
		return nil
	}
	// Ctrl-C is how dev ends, so it is no error.
	if err := c.devWorker(ctx, s, f); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// checkLoopback refuses an address that other machines could reach.
func checkLoopback(flag, addr string) error {
	if addr == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	// A name other than localhost is not resolved: it could change later.
	if ip := net.ParseIP(host); err == nil && (host == "localhost" || ip != nil && ip.IsLoopback()) {
		return nil
	}
	return agent.Errorf(agent.CodeInvalidInput, "%s must be a loopback address with a port up to 65535, such as %s, not %q: other machines must not reach the server", flag, connect.DefaultAddress, addr)
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
	// Opened only now: a command that finds the server must also find the worker.
	s.Embedded.Open()
	c.noteWorker(f)
	c.People("try        %s in another terminal%s; temporal workflow list --address %s", c.tryLine(f), c.withStore(), s.Addr)
	c.ready(s, f)
	c.People("ready      Ctrl-C stops")
	return c.until(ctx, w, devPatience)
}

// tryLine returns a command line that runs the file's first agent on this server.
func (c *cli) tryLine(f *agentsfile.File) string {
	line := c.CommandLine("run %s \"…\"%s", f.Agents[0].Name, c.agentsFlag())
	// The other terminal may not have this one's environment.
	if folder := connect.FolderOf(os.Getenv(env.Store)); c.Store == "" && folder != "" {
		line += " --store " + connect.ShellWord(folder)
	}
	return line
}

// withStore says what other commands need to find a store that is named by a URL. It does not show
// the URL, which may contain a password.
func (c *cli) withStore() string {
	if place := cmp.Or(c.Store, os.Getenv(env.Store)); place == "" || connect.FolderOf(place) != "" {
		return ""
	}
	return " with the same " + env.Store
}
