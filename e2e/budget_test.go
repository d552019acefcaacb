package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// priced is a model that costs a dollar for a million tokens.
func priced(s *testsuite.Script) model.Model {
	return model.WithInfo(s, "script", model.Info{Price: agent.Price{Input: agent.Dollar, Output: agent.Dollar}})
}

// house is a stage with a lead and clerks of which each works for some turns.
func house(t *testing.T, lead, clerk agent.Definition, replies ...testsuite.Reply) *stage {
	t.Helper()
	s := setup(t, agent.Definition{}, testsuite.NewScript())
	s.queue += "-house-" + uuid.NewString()[:4]
	s.Client = client.New(s.temporal, &client.Options{TaskQueue: s.queue, Store: s.dir})
	lead.Name, lead.Model, lead.Agents = "lead", "priced", []agent.SubAgent{{Agent: "clerk", Tools: []string{"*"}}}
	clerk.Name, clerk.Model, clerk.Tools = "clerk", "priced", []string{"echo"}
	w, err := worker.New(s.temporal, &worker.Options{
		TaskQueue: s.queue, Agents: []agent.Definition{lead, clerk}, Tools: []tool.Tool{echo(nil)}, Store: s.dir, Logger: zap.NewNop(),
		Models: map[string]model.Model{"priced": priced(testsuite.NewScript(replies...))}, Temporal: stopsSoon,
	})
	require.NoError(t, err)
	require.NoError(t, w.Start(t.Context()))
	t.Cleanup(w.Stop)
	return s
}

// delegated is a reply that gives work to clerks.
func delegated(n int) testsuite.Reply {
	r := testsuite.Reply{Match: `\Alead`, Usage: testsuite.Usage{Input: 100}}
	for i := range n {
		r.Calls = append(r.Calls, testsuite.Call{Tool: "subagent__clerk", Arguments: map[string]any{"task": fmt.Sprintf("clerk %d", i)}})
	}
	return r
}

// toils are the replies of clerks: each calls a tool so often, and costs 500,000 tokens.
func toils(n int) (replies []testsuite.Reply) {
	said := `\Aclerk`
	for i := range n {
		text := fmt.Sprintf("step %d;", i)
		replies = append(replies, testsuite.Reply{Match: said, Usage: testsuite.Usage{Input: 500_000}, Calls: call("echo", map[string]any{"text": text})})
		said = `\A` + text
	}
	return append(replies, testsuite.Reply{Match: said, Usage: testsuite.Usage{Input: 500_000}, Text: "done"})
}

// A lead that is limited to a dollar and to a thousand tokens does not go on after its
// agents have spent more: the tree goes over by one reply for each at work, and no more.
func TestATreeKeepsToItsLimit(t *testing.T) {
	t.Parallel()
	lead := agent.Definition{Limits: agent.Limits{CostUSD: agent.Dollar, Tokens: 1000}}
	s := house(t, lead, agent.Definition{}, append(toils(20), delegated(3), testsuite.Reply{Match: `"ok":`, Text: "all is done", Usage: testsuite.Usage{Input: 100}})...)
	run, err := s.Start(t.Context(), "lead", "lead", nil)
	require.NoError(t, err)
	out := s.rest(t, run)
	require.Equal(t, agent.StatusFailed, out.Status)
	require.Equal(t, string(agent.CodeLimitTokens), out.Reason)
	require.ErrorContains(t, out.Error, "the run and the agents below it have used")
	require.Equal(t, agent.USD(100), out.Cost, "its own")
	require.Equal(t, 4, out.Tree.Agents)
	require.LessOrEqual(t, out.Tree.Usage.Total(), int64(1000+3*500_000))
	require.LessOrEqual(t, out.Tree.Cost, 3*agent.Dollar/2+agent.Dollar)
	require.LessOrEqual(t, out.Tree.Turns, 4)
	nodes, err := run.Tree(t.Context())
	require.NoError(t, err)
	require.Len(t, nodes, 4)
	require.Equal(t, out.Tree, nodes[0].Used)
	require.Nil(t, nodes[0].Remaining, "it has ended")
	for _, n := range nodes[1:] {
		require.NotNil(t, n.Granted, "%+v", n)
		require.LessOrEqual(t, *n.Granted.Tokens, int64(1000))
	}
}

// The limit asks at the run that has it, with what the whole tree has done, and while
// nobody answers its agents rest for it; with the answer they go on.
func TestATreesLimitAsksAtItsOwner(t *testing.T) {
	t.Parallel()
	lead := agent.Definition{Limits: agent.Limits{Tokens: 1_500_000}, OnLimit: agent.LimitActionAsk}
	s := house(t, lead, agent.Definition{OnLimit: agent.LimitActionAsk}, append(toils(6), delegated(1), testsuite.Reply{Match: `"ok":`, Text: "all is done", Usage: testsuite.Usage{Input: 100}})...)
	run, err := s.Start(t.Context(), "lead", "lead", nil)
	require.NoError(t, err)
	for round := range 2 {
		rest := s.suspended(t, run)
		require.Equal(t, agent.SuspensionInputRequired, rest.Kind, "%d", round)
		require.Equal(t, agent.CodeLimitTokens, rest.Requests[0].Cause)
		require.Contains(t, rest.Requests[0].Context, "The tree: 2 agents")
		require.Contains(t, rest.Requests[0].Context, "/clerk-1: ")
		require.Eventually(t, func() bool {
			nodes, err := run.Tree(t.Context())
			return err == nil && len(nodes) == 2 && nodes[1].Suspension != nil && nodes[1].Suspension.Kind == agent.SuspensionAwaitingBudget
		}, patience, 50*time.Millisecond)
		nodes, err := run.Tree(t.Context()) // the tree says also while it rests what is used and left
		require.NoError(t, err)
		require.NotNil(t, nodes[0].Remaining, "%+v", nodes[0])
		require.NotNil(t, nodes[0].Remaining.Tokens)
		require.NotNil(t, nodes[1].Granted, "%+v", nodes[1])
		require.Positive(t, *nodes[1].Granted.Tokens)
		require.Positive(t, nodes[1].Used.Usage.Total())
		choice := 0
		_, err = s.Answer(t.Context(), rest.Requests[0], "", &client.AnswerOptions{Choice: &choice})
		require.NoError(t, err)
		if round == 1 {
			break
		}
	}
	out := s.rest(t, run)
	require.Equal(t, agent.StatusCompleted, out.Status, "%+v", out.Error)
	require.Equal(t, "all is done", out.Text)
	require.Equal(t, 9, out.Tree.Turns)
	require.Equal(t, int64(7*500_000)+out.Usage.Total(), out.Tree.Usage.Total())
}
