package agent_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// The levels are those of docs/models.md. A run that is recorded asks for a level by this table, so a
// change of it changes what such a run does after a deploy (HA-50).
func TestReasoningLevels(t *testing.T) {
	var lines []string
	for _, task := range []agent.ReasoningTask{"chat", "agent", "code", "verify", "summarize"} {
		line := fmt.Sprintf("%-9s", task)
		for _, scale := range []agent.ReasoningScale{"small", "medium", "large"} {
			line += fmt.Sprintf(" %-7s", agent.ReasoningPolicy{Scale: scale}.Level(task))
		}
		lines = append(lines, strings.TrimSpace(line))
		require.Equal(t, agent.ReasoningPolicy{Scale: "medium"}.Level(task), agent.ReasoningPolicy{}.Level(task))
	}
	require.Equal(t, `chat      minimal low     medium
agent     low     medium  high
code      medium  high    xhigh
verify    low     medium  high
summarize minimal minimal low`, strings.Join(lines, "\n"))
	require.Empty(t, agent.ReasoningPolicy{}.Level("sleep"))
	require.Empty(t, agent.ReasoningPolicy{Scale: "huge"}.Level("chat"))
}

func TestReasoningPolicyIsChecked(t *testing.T) {
	def := agent.Definition{Name: "a", Model: "m/x", ReasoningPolicy: &agent.ReasoningPolicy{}}
	require.NoError(t, def.Check())
	def.ReasoningPolicy = &agent.ReasoningPolicy{Scale: "large", Task: "code"}
	require.NoError(t, def.Check())
	def.ReasoningPolicy = &agent.ReasoningPolicy{Scale: "huge"}
	require.EqualError(t, def.Check(), `agent a: reasoning_policy.scale must be small, medium or large, not "huge"`)
	def.ReasoningPolicy = &agent.ReasoningPolicy{Task: "sleep"}
	require.EqualError(t, def.Check(), `agent a: reasoning_policy.task must be one of chat, agent, code, verify, summarize, not "sleep"; leave it out to have it inferred`)
	def.ReasoningPolicy, def.Model = &agent.ReasoningPolicy{}, agent.FlowModel
	require.EqualError(t, def.Check(), `agent a: reasoning_policy is for a model, and a flow has none; leave reasoning_policy out`)
}

// A task that nobody names follows from the definition, and a named one stays (HA-50).
func TestReasoningTaskIsInferred(t *testing.T) {
	for want, defs := range map[agent.ReasoningTask][]agent.Definition{
		agent.ReasoningChat: {{}, {Reasoning: "high"}},
		agent.ReasoningAgent: {
			{Tools: []string{"x"}}, {Skills: []string{"*"}}, {Agents: []agent.SubAgent{{Agent: "b"}}}, {ClientTools: []agent.ToolSpec{{Name: "x"}}},
		},
		agent.ReasoningVerify: {{Profile: agent.ProfileVerifier, Tools: []string{"x"}}},
	} {
		for _, d := range defs {
			require.Nil(t, d.InferReasoningTask(false).ReasoningPolicy)
			d.ReasoningPolicy = &agent.ReasoningPolicy{}
			got := d.WithDefaults().InferReasoningTask(false)
			require.Equal(t, &agent.ReasoningPolicy{Scale: "medium", Task: want}, got.ReasoningPolicy)
			require.Equal(t, agent.ReasoningVerify, d.InferReasoningTask(true).ReasoningPolicy.Task)
			require.Empty(t, d.ReasoningPolicy.Task, "the caller's stays")
			d.ReasoningPolicy = &agent.ReasoningPolicy{Task: agent.ReasoningCode}
			require.Equal(t, agent.ReasoningCode, d.InferReasoningTask(true).ReasoningPolicy.Task)
		}
	}
}
