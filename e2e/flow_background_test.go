package e2e

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/flow"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/tool"
)

// A model starts a flow in the background as it starts an agent: the list shows that it runs, and
// a wait returns its result (HA-96).
func TestAModelStartsAFlowInTheBackground(t *testing.T) {
	t.Parallel()
	let, once := make(chan struct{}), sync.Once{}
	count := flow.New("count", func(c flow.Context, _ string) (string, error) {
		return flow.Do(c, "files", func(ctx context.Context, _ *tool.Call) (string, error) {
			select {
			case <-let:
				return "42 files", nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}, nil)
	}, nil)
	m := modelFunc(func(_ context.Context, r *model.Request) *model.Reply {
		last := r.Messages[len(r.Messages)-1]
		if last.Role == agent.RoleUser {
			return callsTool("subagent__count", `{"task":"count the files","background":true}`)
		}
		switch result := last.Parts[0].Result; result.Tool {
		case "subagent__count":
			return callsTool("subagent_list", `{}`)
		case "subagent_list":
			once.Do(func() { close(let) })
			return callsTool("subagent_wait", `{}`)
		default:
			return saysText("done")
		}
	})
	s, _ := flows(t, count, m, nil, agent.Definition{Name: "tester", Agents: []agent.SubAgent{{Agent: "count"}}, Lifecycle: true})
	run, o := s.run(t, "go", nil)
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	messages, err := s.Transcript(t.Context(), run.Session)
	require.NoError(t, err)
	var told []string
	for _, said := range messages {
		if said.Role == agent.RoleTool {
			told = append(told, said.Parts[0].Result.Text)
		}
	}
	child := run.Session + "/count-1"
	require.Len(t, told, 3)
	require.JSONEq(t, `{"child":"`+child+`","status":"running"}`, told[0])
	require.JSONEq(t, `[{"ok":false,"child":"`+child+`","status":"running"}]`, told[1])
	require.Contains(t, told[2], `"ok":true`)
	require.Contains(t, told[2], "42 files")
}
