package e2e

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// An agent that checks the work of another one verifies, and started alone it chats, since it has no
// tools. Each run follows the policy of its own agent (HA-50).
func TestReasoningOfATree(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	seen := map[string]agent.Reasoning{}
	m := modelFunc(func(_ context.Context, r *model.Request) *model.Reply {
		mu.Lock()
		defer mu.Unlock()
		last := r.Messages[len(r.Messages)-1].Text()
		switch {
		case strings.HasPrefix(r.Instructions, "You judge"):
			seen["judge"] = r.Reasoning
			return saysText(`{"verdict":"accept","reasoning":"fine"}`)
		case r.Call.Agent == "verifier" && strings.Contains(last, "Is it right?"):
			seen["check"] = r.Reasoning
			return saysText(`{"verdict":"accept","reasoning":"fine"}`)
		}
		seen[r.Call.Agent] = r.Reasoning
		return saysText("3")
	})
	s := on(t, shared(t))
	t.Cleanup(func() { s.replay(t) })
	s.startWorker(t, m, nil,
		agent.Definition{Name: "tester", Tools: []string{agent.TodoTool}, ReasoningPolicy: &agent.ReasoningPolicy{Scale: agent.ReasoningLarge}, Verify: agent.Verify{Checks: []agent.Check{
			{Name: "rubric", Judge: &agent.Judge{}}, {Name: "review", Agent: "verifier", Task: "Is it right?"},
		}}},
		agent.Definition{Name: "verifier", ReasoningPolicy: &agent.ReasoningPolicy{}},
	)
	_, out := s.run(t, "add 1 and 2", nil)
	require.Equal(t, agent.StatusCompleted, out.Status, "%+v", out.Error)
	alone, err := s.Start(t.Context(), "verifier", "hello", nil)
	require.NoError(t, err)
	_, err = alone.Result(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string]agent.Reasoning{"tester": "high", "judge": "high", "check": "medium", "verifier": "low"}, seen)
	history := s.history(t, alone.Session, "")
	var recorded bool
	for _, e := range history {
		for _, p := range e.GetActivityTaskScheduledEventAttributes().GetInput().GetPayloads() {
			recorded = recorded || strings.Contains(string(p.GetData()), `"reasoning":"low"`)
		}
	}
	require.True(t, recorded, "the history has the level of the model's call")
}
