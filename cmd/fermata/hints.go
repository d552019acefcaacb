package main

import (
	"context"
	"os"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/agentsfile"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
)

// agentsFlag returns the flag for the agents file that the user named; empty if it is the one of this
// directory.
func (c *cli) agentsFlag() string {
	if c.agents == "" {
		return ""
	}
	return " --agents " + connect.ShellWord(c.agents)
}

// orFile is agentsFlag, or a flag to fill in if this directory has no agents file.
func (c *cli) orFile() string {
	if _, err := os.Stat(agentsfile.DefaultName); c.agents == "" && err != nil {
		return " --agents FILE"
	}
	return c.agentsFlag()
}

// devLine returns a command line that serves the data of this command, with its agents.
func (c *cli) devLine() string { return c.CommandLine("dev%s", c.orFile()) }

// workerLine returns a command line that works at this command's task queue, with its agents.
func (c *cli) workerLine() string { return c.CommandLine("worker%s", c.orFile()) }

// started prints the session of a run that nobody watches.
func (r *runner) started(ctx context.Context) error {
	if r.JSON {
		r.Line(startedLine{V: agent.Version, Type: "started", Session: r.run.Session, Run: r.run.ID, Agent: r.agent})
	} else {
		r.Print("%s", r.run.Session)
	}
	// The server of this process ends now, so a worker alone would find none.
	if r.server.InProcess() {
		r.Note("this command's server ends with it: the run waits for %s", r.devLine())
		return nil
	}
	// Only a hint, so its own failure is ignored.
	if names, err := r.Pollers(ctx, r.server); err == nil && len(names) == 0 {
		r.Note("no worker polls the task queue %s yet: the run waits for %s", r.Queue(), r.workerLine())
	}
	return nil
}

// pollerPatience is how long a command that waits for a run leaves unsaid that there is no worker.
const pollerPatience = 2 * time.Second

// noteNoWorker says after a while that no worker polls the task queue, unless done is called before.
func (c *cli) noteNoWorker(ctx context.Context, s *connect.Server) (done func()) {
	t := time.AfterFunc(pollerPatience, func() {
		if names, err := c.Pollers(ctx, s); err == nil && len(names) == 0 {
			c.Note("no worker polls the task queue %s: this waits for %s", c.Queue(), c.workerLine())
		}
	})
	return func() { t.Stop() }
}

// startedLine is the output of `run --detach --json`.
type startedLine struct {
	V       int    `json:"v"`
	Type    string `json:"type"`
	Session string `json:"session"`
	Run     string `json:"run"`
	Agent   string `json:"agent"`
}
