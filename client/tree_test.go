package client

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/fermata-agents/fermata/agent"
)

// node is an execution that ran for a while; forever where until is zero.
func node(t *testing.T, session, run string, status enums.WorkflowExecutionStatus, from, until int) *workflowpb.WorkflowExecutionInfo {
	info := execution(t, session, run, status, agent.Memo{V: 1, Run: run, Status: agent.StatusRunning}, map[string]any{agent.AttrAgent: "worker"})
	info.FirstRunId = "" // listings do not tell it
	lasted(t, info, start.Add(time.Duration(from)*time.Minute), start.Add(time.Duration(until)*time.Minute))
	return info
}

func shown(t *testing.T, f *fake, session, run string) (out []string) {
	t.Helper()
	nodes, err := (&Run{client: New(f, nil), Session: session, ID: run}).Tree(t.Context())
	require.NoError(t, err)
	for _, n := range nodes {
		out = append(out, fmt.Sprintf("%d %s < %s %s %s", n.Depth, n.Session, n.Parent, n.Run, n.Status))
	}
	return out
}

func TestTree(t *testing.T) {
	waiting := execution(t, "a/pay-1/ask-1", "r4", running, agent.Memo{V: 1, Run: "r4", Status: agent.StatusSuspended, Suspension: "s-1"}, map[string]any{agent.AttrWaitsFor: []string{"held"}})
	top := node(t, "a", "r1", running, 5, 0)
	top.FirstRunId = "r1"
	f := &fake{
		describe: func(string, string) (*workflowpb.WorkflowExecutionInfo, error) { return top, nil },
		list: func(string) []*workflowpb.WorkflowExecutionInfo {
			return []*workflowpb.WorkflowExecutionInfo{
				node(t, "a/look-10", "r6", enums.WORKFLOW_EXECUTION_STATUS_TERMINATED, 9, 10), waiting,
				node(t, "a/look-2", "r3", completed, 6, 7), node(t, "a/pay-1", "r2", running, 6, 0), node(t, "a", "r1", running, 5, 0),
				node(t, "a/look-2", "r3", enums.WORKFLOW_EXECUTION_STATUS_TERMINATED, 5, 6), // it was reset
			}
		},
	}
	require.Equal(t, []string{
		"0 a <  r1 running", "1 a/pay-1 < a r2 running", "2 a/pay-1/ask-1 < a/pay-1 r4 suspended", "1 a/look-2 < a r3 completed", "1 a/look-10 < a r6 cancelled",
	}, shown(t, f, "a", "r1"))
	nodes, err := (&Run{client: New(f, nil), Session: "a", ID: "r1"}).Tree(t.Context())
	require.NoError(t, err)
	require.Equal(t, &agent.SuspensionSummary{ID: "s-1", Kind: agent.SuspensionHeld}, nodes[2].Suspension)
	require.Equal(t, "WorkflowType = 'fermata.run' AND ExecutionStatus != 'ContinuedAsNew' AND RootWorkflowId = 'a'", f.queries[0])
}

// What an agent had left went back when it ended.
func TestNothingIsLeftAtTheEnd(t *testing.T) {
	left := &agent.Budget{Turns: new(2), Tokens: new(int64(600)), Agents: new(1)}
	for status, want := range map[enums.WorkflowExecutionStatus]*agent.Budget{running: left, completed: nil} {
		info := execution(t, "a", "r", status, agent.Memo{V: 1, Run: "r", Status: agent.StatusRunning, Granted: left, Remaining: left}, nil)
		n := nodeOf(info, "r", time.Now())
		require.Equal(t, want, n.Remaining)
		require.Equal(t, left, n.Granted)
	}
}

// A session's runs come one after the other; each has a tree of its own.
func TestTreeOfOneRunOfMany(t *testing.T) {
	all := []*workflowpb.WorkflowExecutionInfo{
		node(t, "a", "r1", completed, 0, 10), node(t, "a/x-1", "c1", completed, 1, 9),
		node(t, "a", "r2", completed, 20, 30), node(t, "a/x-2", "c2", completed, 21, 29), // continued as new: the first execution began at 12
		node(t, "a/x-3", "c3", completed, 13, 14),
		node(t, "a", "r3", running, 40, 0), node(t, "a/x-4", "c4", running, 41, 0),
	}
	f := &fake{list: func(string) []*workflowpb.WorkflowExecutionInfo { return all }}
	describe := func(top *workflowpb.WorkflowExecutionInfo, run string) {
		top.FirstRunId = run
		f.describe = func(_, execution string) (*workflowpb.WorkflowExecutionInfo, error) { return top, nil }
	}
	describe(node(t, "a", "r1", completed, 0, 10), "r1")
	require.Equal(t, []string{"0 a <  r1 completed", "1 a/x-1 < a c1 completed"}, shown(t, f, "a", "r1"))
	describe(node(t, "a", "r2", continued, 12, 20), "r2")
	require.Equal(t, []string{"0 a <  r2 completed", "1 a/x-2 < a c2 completed", "1 a/x-3 < a c3 completed"}, shown(t, f, "a", "r2"))
	describe(node(t, "a", "r3", running, 40, 0), "r3")
	require.Equal(t, []string{"0 a <  r3 running", "1 a/x-4 < a c4 running"}, shown(t, f, "a", "r3"))
}

// A part of a tree is found within the whole.
func TestTreeBelowTheRoot(t *testing.T) {
	top := node(t, "a/pay-1", "r2", running, 6, 0)
	top.FirstRunId = "r2"
	f := &fake{
		describe: func(string, string) (*workflowpb.WorkflowExecutionInfo, error) { return top, nil },
		list: func(string) []*workflowpb.WorkflowExecutionInfo {
			return []*workflowpb.WorkflowExecutionInfo{top, node(t, "a/pay-1/b-1", "r5", running, 7, 0)}
		},
	}
	require.Equal(t, []string{"1 a/pay-1 < a r2 running", "2 a/pay-1/b-1 < a/pay-1 r5 running"}, shown(t, f, "a/pay-1", "r2"))
	require.Equal(t, "WorkflowType = 'fermata.run' AND ExecutionStatus != 'ContinuedAsNew' AND RootWorkflowId = 'a' AND "+
		"(WorkflowId = 'a/pay-1' OR WorkflowId STARTS_WITH 'a/pay-1/')", f.queries[0])
}
