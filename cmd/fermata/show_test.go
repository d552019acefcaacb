package main

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
	"github.com/fermata-agents/fermata/testsuite"
)

// Why a run neither rests nor ends is shown.
func TestAFaultIsShown(t *testing.T) {
	var out strings.Builder
	c := newCLI(nil, &out, io.Discard)
	c.showText(&shown{RunStatus: agent.RunStatus{Status: agent.StatusRunning, StoreError: agent.Errorf(agent.CodeWorkerLost, "the worker was lost 5 times")}})
	require.Regexp(t, `fault +\[worker_lost\] the worker was lost 5 times`, out.String())
}

// Limits count from their last renewal, and only what is below counts as agents.
func TestLimitsAreShown(t *testing.T) {
	var out strings.Builder
	c := newCLI(nil, &out, io.Discard)
	c.showText(&shown{RunStatus: agent.RunStatus{
		Status: agent.StatusRunning, Tree: agent.Tally{Agents: 4, Turns: 4}, Remaining: &agent.Budget{Turns: new(2), Agents: new(0)},
		Limits: agent.LimitsUsed{Turns: &agent.Used[int]{Used: 1, Max: 3}, Agents: &agent.Used[int]{Used: 3, Max: 3}},
	}})
	require.Regexp(t, `(?m)^tree +3 agents below, 4 turns, 0 tokens, 0 USD used; 2 turns, 0 agents left$`, out.String())
	require.Regexp(t, `(?m)^limit +1 of 3 turns, since it was renewed$`, out.String())
	require.Regexp(t, `(?m)^limit +3 of 3 agents below$`, out.String())
}

// A tree counts the agents below each run.
func TestAgentsOfATree(t *testing.T) {
	require.Equal(t, map[string]int{"s": 0}, agentsBelow([]agent.Node{{Session: "s"}}))
	require.Equal(t, map[string]int{"s": 1}, agentsBelow([]agent.Node{{Session: "s", Used: agent.Tally{Agents: 2}}}), "of one that is not listed any more")
	require.Equal(t, map[string]int{"s": 3, "s/a-1": 1, "s/a-1/c-1": 0, "s/b-1": 0}, agentsBelow([]agent.Node{
		{Session: "s", Used: agent.Tally{Agents: 3}}, {Session: "s/a-1"}, {Session: "s/a-1/c-1"}, {Session: "s/b-1"},
	}), "what has started further below is news to the root")
}

// A tree shows what became of the workspaces of sub-agents, if one had its own (HA-103).
func TestConflictsOfATree(t *testing.T) {
	nodes := []agent.Node{{Session: "s", Agent: "lead"}, {Session: "s/coder-1", Agent: "coder", Depth: 1, Workspace: agent.WorkspaceMerged}, {Session: "s/coder-2", Agent: "coder", Depth: 1, Workspace: agent.WorkspaceConflict}}
	var out strings.Builder
	newCLI(nil, &out, io.Discard).showTree(nodes)
	require.Regexp(t, `(?m)^SESSION .* WORKSPACE$`, out.String())
	require.Regexp(t, `(?m)^  /coder-1 .* merged$`, out.String())
	require.Regexp(t, `(?m)^  /coder-2 .* conflict$`, out.String())
	out.Reset()
	newCLI(nil, &out, io.Discard).showTree(nodes[:1])
	require.NotContains(t, out.String(), "WORKSPACE")
}

// A tree shows what each run and those below it have used, what it was granted, and what is left of it.
func TestTheBudgetsOfATree(t *testing.T) {
	var out strings.Builder
	c := newCLI(nil, &out, io.Discard)
	c.showTree([]agent.Node{
		{Session: "s-1", Agent: "lead", Status: agent.StatusSuspended, Used: agent.Tally{Agents: 2, Turns: 6, Usage: agent.Usage{Input: 250, Output: 50}}, Remaining: &agent.Budget{Tokens: new(int64(700))}},
		{Session: "s-1/clerk-1", Agent: "clerk", Depth: 1, Status: agent.StatusSuspended, Used: agent.Tally{Agents: 1, Turns: 5, Usage: agent.Usage{Input: 150, Output: 30}, Cost: agent.Dollar / 4}, Granted: &agent.Budget{Tokens: new(int64(300)), Turns: new(7)}, Remaining: &agent.Budget{Tokens: new(int64(120)), Turns: new(2)}},
	})
	require.Regexp(t, `(?m)^SESSION +AGENT +STATUS +AGENTS +USED +GRANTED +LEFT +WAITS FOR$`, out.String())
	require.Regexp(t, `(?m)^s-1 +lead +suspended +1 +6 turns, 300 tokens, 0 USD +- +700 tokens *$`, out.String(), "nobody grants to a root")
	require.Regexp(t, `(?m)^  /clerk-1 +clerk +suspended +0 +5 turns, 180 tokens, 0.25 USD +7 turns, 300 tokens +2 turns, 120 tokens *$`, out.String())
}

// What may have had its effect, and may not, is shown at the end of a run.
func TestCallsOfUnknownOutcomeAreShown(t *testing.T) {
	var out strings.Builder
	c := newCLI(nil, &out, io.Discard)
	o := &agent.Outcome{Session: "s-1", Status: agent.StatusCompleted, Tools: []agent.ToolCount{{Tool: "look", Calls: 2, OK: 2}, {Tool: "pay", Calls: 3, OK: 2, Unknown: 1}}}
	c.showText(&shown{RunStatus: statusFromOutcome(o, agent.Memo{}), Outcome: o})
	require.Regexp(t, `(?m)^unknown +1 of 3 calls of pay: it is unknown whether it took effect; see fermata transcript s-1$`, out.String())
	require.NotContains(t, out.String(), "look")
}

// An ended run says what came too late for its model, and a daemon which files it looks at.
func TestLateMessagesAndWatchedFilesAreShown(t *testing.T) {
	said := func(v *shown) string {
		var out strings.Builder
		newCLI(nil, &out, io.Discard).showText(v)
		return out.String()
	}
	o := &agent.Outcome{Status: agent.StatusCompleted, Text: "Done.", Unread: []agent.UnreadMessage{{Event: 10, By: "ana", Text: "wait\x1b[2J"}}}
	require.Contains(t, said(&shown{RunStatus: statusFromOutcome(o, agent.Memo{}), Outcome: o}),
		"1 message came too late for the model; the session's next run reads what was said:\n  ana (event 10): wait\\u001b[2J\n")
	require.Regexp(t, `watches +inbox, orders\n`, said(&shown{RunStatus: agent.RunStatus{Status: agent.StatusSuspended, Watch: []string{"inbox", "orders"}}}))
}

// What a run at rest keeps is shown in a few lines.
func TestWhatARunKeepsIsShown(t *testing.T) {
	var out strings.Builder
	kept := &agent.Kept{Calls: []agent.KeptCall{{Call: "t2.1", Tool: "pay"}, {Call: "t2.2", Tool: "pay", Decided: true}, {Call: "t2.3", Tool: "do", Step: "file.1"}, {Call: "t2.4", Tool: "book", Decided: true, Asked: true}}}
	for _, text := range []string{"one", "two", "three", "four", "five", "six"} {
		kept.Messages = append(kept.Messages, agent.KeptMessage{By: "ana", Text: text})
	}
	newCLI(nil, &out, io.Discard).showText(&shown{RunStatus: agent.RunStatus{Status: agent.StatusSuspended, Suspension: &agent.Suspension{}, Queued: 6, Kept: kept}})
	require.Regexp(t, `(?s)queued +6 messages\nmessage +ana: one\n.*message +ana: five\n +and 1 more\ncall +pay t2.1 has not begun\ncall +pay t2.2, decided, has not begun\ncall +do \(file.1\) has not begun\ncall +book t2.4, decided, ran as far as its question\n`, out.String())
}

// Of a session that Temporal has forgotten, the result is in the store.
func TestShowOfAForgottenSession(t *testing.T) {
	s := scripted(t, role{agent.Definition{Name: "teller"}, []testsuite.Reply{{Text: "Told."}}}).works()
	run := s.begin("a", "teller", nil)
	s.rests(run)
	_, err := s.temporal.WorkflowService().DeleteWorkflowExecution(t.Context(), &workflowservice.DeleteWorkflowExecutionRequest{
		Namespace: connect.DefaultNamespace, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: run.Session},
	})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := s.temporal.DescribeWorkflowExecution(t.Context(), run.Session, "")
		return errors.As(err, new(*serviceerror.NotFound))
	}, patience, 20*time.Millisecond)
	r := s.run("show", run.Session)
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.out, "completed")
	s.fails(agent.CodeNotFound.ExitStatus(), "[not_found]", "show", s.session("nobody"))
}
