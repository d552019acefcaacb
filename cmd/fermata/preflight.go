package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/agentsfile"
	"github.com/fermata-agents/fermata/worker"
)

// progressEach is how many runs are tried between two notes of progress.
const progressEach = 100

// preflight tries runs on this build.
type preflight struct {
	*cli
	worker.PreflightOptions
	tried map[worker.Compatibility]int
}

func (c *cli) preflightCommand() *cobra.Command {
	p := &preflight{cli: c, tried: map[worker.Compatibility]int{}}
	cmd := &cobra.Command{
		Use:   "preflight",
		Short: "Check that this build can continue the open runs",
		Long: `Preflight replays the history of every open run of the task queue with this build. It
also checks that the agents file still has the tools and models of each run. It
changes nothing and needs no worker. Run it before a deploy, with the new build and
the new file, against the server that has the runs.

A flow's function is run on what each open run has done. It makes no step.

The exit status is 0 if all runs would continue, and 6 if one would break, or if a flow
would forget steps.`,
		Example: `  fermata preflight --agents fermata.yaml --profile prod
  fermata preflight --closed 200 --json | jq -r 'select(.compatibility != "compatible") | .session'
  fermata preflight --query "FermataAgent='payer'"`,
		Args: exactArgs(0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error { return p.run(cmd.Context()) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&p.agents, "agents", "f", "", "agents file of the new worker (default \"fermata.yaml\", if it is there)")
	flags.StringVar(&p.Query, "query", "", "a further condition in Temporal's list filter language")
	flags.BoolVar(&p.AllQueues, "all-queues", false, "check runs of all task queues of the namespace")
	flags.IntVar(&p.Closed, "closed", 0, "also check this number of closed runs, the newest first")
	c.jsonFlag(cmd, "print the result of each run as a line of JSON")
	return cmd
}

func (p *preflight) run(ctx context.Context) error {
	if p.Closed < 0 {
		return agent.Errorf(agent.CodeInvalidInput, "--closed must be positive")
	}
	file, err := agentsFile(ctx, p.agents)
	if err != nil {
		return err
	}
	options := &worker.Options{TaskQueue: p.Queue()}
	// Without the file, tools and models can't be compared with what the runs need.
	if file == nil {
		p.Note("there is no %s here, and no --agents: only the workflow's code is tried", agentsfile.DefaultName)
	} else {
		kit, err := file.Open(p.Log.Slog(), nil)
		if err != nil {
			return err
		}
		// Opened as a worker would, so a run's missing tool is noticed; nothing is called. Nor is
		// a server asked for skills: no replay needs them.
		defer kit.Close()
		options = p.host.Options(file, kit)
		if len(options.Flows) > 0 {
			if transcripts, err := p.OpenStore(ctx); err == nil {
				options.Store = transcripts
			} else {
				p.Note("flows are not tried, since their runs' transcripts can't be read: %v", err)
			}
		}
	}
	s, err := p.Find(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	n := 0
	for v, err := range worker.Preflight(ctx, s.Client, options, &p.PreflightOptions) {
		if err != nil {
			return err
		}
		p.printVerdict(v)
		// Thousands of runs take a while, and people see only problems meanwhile.
		if n++; n%progressEach == 0 {
			p.Note("%d runs tried", n)
		}
	}
	return p.printSum(n)
}

// printVerdict prints the verdict of a run: for programs each one, for people the problems.
func (p *preflight) printVerdict(v worker.Verdict) {
	p.tried[v.Compatibility]++
	if p.JSON {
		p.Line(v)
		return
	}
	switch v.Compatibility {
	case worker.Incompatible:
		p.Print("BROKEN   %s  run %s  event %d, %s of %s: %s", v.Session, v.Run, v.Event.ID, v.Event.Type, v.Event.Time.UTC().Format(time.RFC3339), v.Reason)
		p.Print("         -> keep the build that it runs on until it ends, or end it: %s. In a build of your own, gate the change with workflow.GetVersion", p.CommandLine("stop %s", v.Session))
	case worker.ChangedSteps:
		p.Print("CHANGED  %s  run %s: %s", v.Session, v.Run, v.Reason)
		p.Print("         -> keep the names of steps that have effects; the run continues, without what it leaves")
	case worker.MissingParts:
		p.Print("MISSING  %s  run %s: %s", v.Session, v.Run, v.Reason)
		p.Print("         -> keep that until the run ends, or end it: %s", p.CommandLine("stop %s", v.Session))
	}
}

// lack is "lacks" of one run, and "lack" of any other number.
func lack(n int) string {
	if n == 1 {
		return "1 lacks"
	}
	return fmt.Sprintf("%d lack", n)
}

func (p *preflight) printSum(n int) error {
	// Standard output has only verdicts as JSON.
	say := p.Print
	if p.JSON {
		say = p.Note
	}
	changed := ""
	if n := p.tried[worker.ChangedSteps]; n > 0 {
		changed = fmt.Sprintf(", %d would change", n)
	}
	say("%s tried: %d fit, %d would break%s, %s something", counted(n, "run"), p.tried[worker.Compatible], p.tried[worker.Incompatible], changed, lack(p.tried[worker.MissingParts]))
	if n == 0 && !p.AllQueues {
		p.Note("the task queue %s has no open run: name another one with --task-queue, or check all with --all-queues", p.Queue())
	}
	if p.tried[worker.Compatible] < n {
		return ended(agent.CodeIncompatible.ExitStatus())
	}
	return nil
}
