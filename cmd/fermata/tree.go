package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/render"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
	"github.com/fermata-agents/fermata/signals"
)

func (c *cli) treeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tree SESSION",
		Short: "Show a run and the runs of its sub-agents",
		Long: `Tree lists the last run of a session and the runs of its sub-agents, at every depth. It
needs no worker: each row is what its run last wrote to Temporal's visibility, when it
was suspended or ended. The numbers are as of then. fermata show asks one run for exact
numbers.

AGENTS is the number of agents started below a run. USED is what the run and its
sub-agents have used. GRANTED is what its parent lets it use. LEFT is what it may still
use. An ended agent has returned what was left. PROGRESS is there if an agent has
reported its progress. WORKSPACE is there if an agent with a workspace of its own has
ended, and says what became of that; fermata show says how to get what was
kept after a conflict.`,
		Example: `  fermata tree trip-42
  fermata tree trip-42 --json | jq '.nodes[] | select(.status=="suspended").session'`,
		Args: exactArgs(1, "a session"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.WithServer(cmd.Context(), func(_ *connect.Server, runs *fermata.Client) error {
				return c.tree(cmd.Context(), runs, args[0])
			})
		},
	}
	c.jsonFlag(cmd, "print the tree as one line of JSON")
	return cmd
}

func (c *cli) tree(ctx context.Context, runs *fermata.Client, session string) error {
	run, err := runs.Get(ctx, session)
	if err != nil {
		return err
	}
	nodes, err := run.Tree(ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		c.Line(signals.TreeAnswer{V: agent.Version, AsOf: time.Now().UTC(), Nodes: nodes})
		return nil
	}
	c.showTree(nodes)
	return nil
}

// showTree prints the nodes of a tree as a table.
func (c *cli) showTree(nodes []agent.Node) {
	columns := []any{"SESSION", "AGENT", "STATUS", "AGENTS", "USED", "GRANTED", "LEFT", "WAITS FOR"}
	reports := slices.ContainsFunc(nodes, func(n agent.Node) bool { return n.Progress != "" })
	if reports {
		columns = append(columns, "PROGRESS")
	}
	places := slices.ContainsFunc(nodes, func(n agent.Node) bool { return n.Workspace != "" })
	if places {
		columns = append(columns, "WORKSPACE")
	}
	t := c.Table(columns...)
	agents := agentsBelow(nodes)
	for _, n := range nodes {
		name := n.Session
		if n.Depth > nodes[0].Depth {
			// Below the root the last part of the session is enough; the indentation shows the
			// rest.
			name = strings.Repeat("  ", n.Depth-nodes[0].Depth) + n.Session[strings.LastIndexByte(n.Session, '/'):]
		}
		cells := []any{untrusted.Name(name), untrusted.Name(n.Agent), n.Status, agents[n.Session], render.Used(n.Used), render.Budget(n.Granted), render.Budget(n.Remaining), nodeWaits(n)}
		if reports {
			cells = append(cells, untrusted.Line(n.Progress, 120))
		}
		if places {
			cells = append(cells, untrusted.Line(string(n.Workspace), 120))
		}
		t.Row(cells...)
	}
	t.Flush()
}

// agentsBelow returns, by session, how many agents were started below a node. A node knows of an agent far
// below it only later, so those of the listing count too; and Temporal may have forgotten those that a node
// has counted.
func agentsBelow(nodes []agent.Node) map[string]int {
	below := map[string]int{}
	for _, n := range nodes {
		below[n.Session] = max(0, n.Used.Agents-1) // a [agent.Tally] counts the run itself
	}
	listed := map[string]int{}
	for _, n := range nodes {
		for at := strings.LastIndexByte(n.Session, '/'); at > 0; at = strings.LastIndexByte(n.Session[:at], '/') {
			if _, ok := below[n.Session[:at]]; ok {
				listed[n.Session[:at]]++
			}
		}
	}
	for session, n := range listed {
		below[session] = max(below[session], n)
	}
	return below
}

// nodeWaits returns what a node waits for, from a listing.
func nodeWaits(n agent.Node) string {
	if n.Suspension == nil {
		return ""
	}
	what := string(n.Suspension.Kind)
	for _, q := range n.Suspension.Requests {
		what += fmt.Sprintf(", %s %s", q.ID, q.Type)
	}
	if more := n.Suspension.Open - len(n.Suspension.Requests); more > 0 {
		what += fmt.Sprintf(" and %d more", more)
	}
	return what
}
