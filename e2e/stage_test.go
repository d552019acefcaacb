package e2e

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// The users' kit plays a tree on a real server, with its people and a week that is
// skipped, and on Temporal's test environment says that it can't.
func TestTheKitPlaysATree(t *testing.T) {
	t.Parallel()
	pay := tool.New("pay", "pays an amount", func(context.Context, *tool.Call, struct{ EUR int }) (string, error) { return "paid", nil }, nil)
	firm := &worker.Options{
		Tools: []tool.Tool{pay},
		Agents: []agent.Definition{
			{Name: "lead", Model: "m", Tools: []string{agent.AwaitResumptionTool, "pay"}, Agents: []agent.SubAgent{{Agent: "clerk"}}},
			{Name: "clerk", Model: "m", Tools: []string{"pay"}, Rules: []agent.Rule{{Do: agent.RulingAsk, Tools: []string{"pay"}}}},
		},
	}
	script := testsuite.NewScript(
		testsuite.Reply{Match: "^book", Calls: []testsuite.Call{{Tool: "subagent__clerk", Arguments: map[string]any{"task": "pay it"}}}},
		testsuite.Reply{Match: "^pay it", Calls: []testsuite.Call{{Tool: "pay", Arguments: map[string]any{"EUR": 800}}}},
		testsuite.Reply{Match: "^paid", Text: "It is paid."},
		testsuite.Reply{Match: "It is paid.", Calls: []testsuite.Call{{Tool: agent.AwaitResumptionTool, Arguments: map[string]any{"reason": "the bank is slow", "conditions": map[string]any{"after": "168h"}}}}},
		testsuite.Reply{Match: "bank is slow|Summed up", Text: "It has arrived."},
	)
	person := &testsuite.Person{Rules: []testsuite.PersonRule{{Tool: "pay", Approve: true}}}
	s := testsuite.New(t, &testsuite.Options{Worker: firm, Model: script, Person: person, Server: dial(t, shared(t))})
	run := s.Start("lead", "book", nil)
	require.Equal(t, agent.SuspensionParked, run.Suspended().Kind)
	s.FastForward(7 * 24 * time.Hour)
	o := run.Completed()
	require.Equal(t, "It has arrived.", o.Text)
	require.Len(t, person.Decisions(), 1)
	require.Equal(t, "clerk", person.Decisions()[0].Request.Agent)
	require.Equal(t, agent.StatusCompleted, s.Run(run.Session+"/clerk-1").Completed().Status)
}

// A verb of the kit waits for a worker, as one that takes over from one that died.
func TestTheKitWaitsForAWorker(t *testing.T) {
	t.Parallel()
	var left atomic.Int32
	server := dialHearing(t, shared(t), func(method string, _ any) error {
		if method == "UpdateWorkflowExecution" && left.Add(-1) >= 0 { // as while a run's workflow task fails
			return serviceerror.NewWorkflowNotReady("Workflow Task in failed state.").(serviceerror.ServiceError).Status().Err()
		}
		return nil
	})
	s := testsuite.New(t, &testsuite.Options{
		Worker: &worker.Options{Agents: []agent.Definition{{Name: "asker", Model: "m", Tools: []string{agent.AskUserTool}}}},
		Model: testsuite.NewScript(
			testsuite.Reply{Match: "^book", Calls: []testsuite.Call{{Tool: agent.AskUserTool, Arguments: map[string]any{"question": "Which hotel?"}}}},
			testsuite.Reply{Match: "^the small one", Text: "It is booked."},
		),
		Server: server,
	})
	run := s.Start("asker", "book", nil)
	run.Suspended()
	left.Store(2)
	run.Answer("the small one")
	require.Equal(t, "It is booked.", run.Completed().Text)
	require.Negative(t, left.Load())
}
