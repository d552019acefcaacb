package client

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/wire"
	"github.com/fermata-agents/fermata/signals"
)

// Tree returns the run and all runs below it, depth first, children in the order of their
// creation. It reads one listing and asks no worker. The listing may be behind by a
// moment, so ask a node's own run to be sure. What a node has used is as of its last
// suspension or its end. Errors are [agent.CodeNotFound] and those of reaching the
// server.
func (r *Run) Tree(ctx context.Context) ([]agent.Node, error) {
	top, err := r.execution(ctx)
	if err != nil {
		return nil, err
	}
	root, _, _ := strings.Cut(r.Session, "/")
	root = cmp.Or(top.GetRootExecution().GetWorkflowId(), root)
	query := ours + " AND ExecutionStatus != 'ContinuedAsNew' AND RootWorkflowId = " + signals.Quote(root)
	if r.Session != root {
		query += " AND " + within(r.Session)
	}
	b := branch{top: top, session: r.Session, run: r.ID}
	for info, err := range r.client.executions(ctx, query) {
		if err != nil {
			return nil, fmt.Errorf("listing the tree of session %s: %w", r.Session, err)
		}
		b.add(info)
	}
	return b.nodes(time.Now()), nil
}

// branch collects what a listing finds of a session's tree. The listing finds the trees
// of all runs of the session, not only of this one.
type branch struct {
	top          *workflowpb.WorkflowExecutionInfo
	session, run string
	others       []*workflowpb.WorkflowExecutionInfo // the session's other runs
	below        []*workflowpb.WorkflowExecutionInfo
}

func (b *branch) add(info *workflowpb.WorkflowExecutionInfo) {
	switch {
	case info.GetExecution().GetWorkflowId() != b.session:
		b.below = append(b.below, info)
	case runOf(info) != b.run:
		b.others = append(b.others, info)
	case b.top.GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW:
		b.top = info // the run's last execution
	}
}

// nodes returns the nodes in order.
func (b *branch) nodes(now time.Time) []agent.Node {
	slices.SortFunc(b.below, func(x, y *workflowpb.WorkflowExecutionInfo) int {
		return cmp.Or(inTree(x.GetExecution().GetWorkflowId(), y.GetExecution().GetWorkflowId()), y.GetStartTime().AsTime().Compare(x.GetStartTime().AsTime()))
	})
	list := []agent.Node{nodeOf(b.top, b.run, now)}
	for _, info := range b.below {
		again := list[len(list)-1].Session == info.GetExecution().GetWorkflowId() // a run that was reset: its latest execution counts
		if !again && b.owns(info) {
			list = append(list, nodeOf(info, runOf(info), now))
		}
	}
	return list
}

// owns reports whether a run below belongs to this run of the session. It began after the
// previous run's end, and not after this run's.
func (b *branch) owns(info *workflowpb.WorkflowExecutionInfo) bool {
	began := info.GetStartTime().AsTime()
	if durable.Closed(b.top) && began.After(b.top.GetCloseTime().AsTime()) {
		return false
	}
	return !slices.ContainsFunc(b.others, func(other *workflowpb.WorkflowExecutionInfo) bool {
		end := other.GetCloseTime()
		return end != nil && !end.AsTime().After(b.top.GetStartTime().AsTime()) && began.Before(end.AsTime())
	})
}

// inTree orders sessions of one tree depth first, children by their number.
func inTree(a, b string) int {
	x, y := strings.Split(a, "/"), strings.Split(b, "/")
	for i := range min(len(x), len(y)) {
		if c := cmp.Or(cmp.Compare(number(x[i]), number(y[i])), strings.Compare(x[i], y[i])); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(x), len(y))
}

// number returns N of NAME-N.
func number(child string) int {
	n, _ := strconv.Atoi(child[strings.LastIndexByte(child, '-')+1:])
	return n
}

func nodeOf(info *workflowpb.WorkflowExecutionInfo, run string, now time.Time) agent.Node {
	l := listed(info)
	n := agent.Node{
		Session: l.Session, Run: run, Agent: l.Agent, Depth: strings.Count(l.Session, "/"), Status: l.Status, AsOf: now.UTC().Format(time.RFC3339),
	}
	if cut := strings.LastIndexByte(l.Session, '/'); cut >= 0 {
		n.Parent = l.Session[:cut]
	}
	memo := ReadMemo(info)
	n.Used, n.Granted, n.Progress, n.Workspace = memo.Tree, memo.Granted, memo.Progress, memo.Workspace
	if !l.Status.Ended() {
		n.Remaining = memo.Remaining
	}
	if l.Status == agent.StatusSuspended {
		note := wire.Summary(*suspensionOf(info, memo), false) // a memo holds only what may be shown
		n.Suspension = &note
	}
	return n
}
