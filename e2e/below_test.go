package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// childTold is what the model above reads of an agent below.
type childTold struct {
	OK     bool
	Child  string
	Status agent.Status
	Output json.RawMessage
	Error  string
	Tokens int64 `json:"tokens_used"`
}

// An agent below is held to the schema and to the limits that the one above gives
// it (HA-106, HA-107). Its conversation is its own, begins with what it was asked
// (HA-156), and is one result in that above (HA-105).
func TestWhatAnAgentBelowIsHeldTo(t *testing.T) {
	t.Parallel()
	s := on(t, shared(t))
	t.Cleanup(func() { s.replay(t) })
	script := testsuite.NewScript(
		testsuite.Reply{Match: `\Alead`, Calls: []testsuite.Call{
			{Tool: "subagent__clerk", Arguments: map[string]any{"task": "where does Ada live?"}},
			{Tool: "subagent__walker", Arguments: map[string]any{"task": "walk on"}},
		}},
		testsuite.Reply{Match: `\Awhere`, Text: `in Rome`},
		testsuite.Reply{Match: "does not fit the schema", Text: `{"city":"Rome"}`},
		testsuite.Reply{Match: `\Awalk on`, Calls: call("echo", map[string]any{"text": "a step"})},
		testsuite.Reply{Match: ".*", Text: "done"})
	walk := agent.Limits{Turns: 1}
	w, err := worker.New(s.temporal, &worker.Options{
		TaskQueue: s.queue, Store: s.dir, Logger: zap.NewNop(), Tools: []tool.Tool{echo(nil)}, Models: map[string]model.Model{"script": script},
		Agents: []agent.Definition{
			{Name: "tester", Model: "script", Agents: []agent.SubAgent{
				{Agent: "clerk", Output: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`)},
				{Agent: "walker", Tools: []string{"echo"}, Limits: walk},
			}},
			{Name: "clerk", Model: "script"}, {Name: "walker", Model: "script", Tools: []string{"echo"}, Limits: agent.Limits{Turns: 9}},
		},
	})
	require.NoError(t, err)
	require.NoError(t, w.Start(t.Context()))
	t.Cleanup(w.Stop)

	run, o := s.run(t, "lead", nil)
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	messages, err := s.Transcript(t.Context(), run.Session)
	require.NoError(t, err)
	require.Len(t, messages, 4, "the task, the calls, their results and the answer")
	var told [2]childTold
	for i, p := range messages[2].Parts {
		require.NoError(t, json.Unmarshal([]byte(p.Result.Text), &told[i]))
		require.Positive(t, told[i].Tokens)
		require.True(t, strings.HasPrefix(told[i].Child, run.Session+"/"))
	}
	require.True(t, told[0].OK)
	require.JSONEq(t, `{"city":"Rome"}`, string(told[0].Output))
	require.False(t, told[1].OK)
	require.Contains(t, told[1].Error, "the 1 model calls that limits.turns allows")

	messages, err = s.Transcript(t.Context(), told[0].Child)
	require.NoError(t, err)
	require.Equal(t, "where does Ada live?", messages[0].Text())
	require.Len(t, messages, 4, "an answer that did not fit, and one that did")
}

// An agent below that never answers as its schema says has failed for the one above, and so has one that
// takes more tokens than it was given: the model above reads why, and goes on (HA-106, HA-107).
func TestAnAgentBelowThatIsNotAsItsCallWants(t *testing.T) {
	t.Parallel()
	s := on(t, shared(t))
	t.Cleanup(func() { s.replay(t) })
	script := testsuite.NewScript(
		testsuite.Reply{Match: `\Alead`, Calls: []testsuite.Call{
			{Tool: "subagent__clerk", Arguments: map[string]any{"task": "where does Ada live?"}},
			{Tool: "subagent__walker", Arguments: map[string]any{"task": "walk on"}},
		}},
		testsuite.Reply{Match: `\Awhere|does not fit the schema`, Text: `{"town":"Rome"}`},
		testsuite.Reply{Match: `\Awalk on|\Aa step`, Calls: call("echo", map[string]any{"text": "a step"}), Usage: testsuite.Usage{Input: 300, Output: 50}},
		testsuite.Reply{Match: ".*", Text: "neither did it"})
	w, err := worker.New(s.temporal, &worker.Options{
		TaskQueue: s.queue, Store: s.dir, Logger: zap.NewNop(), Tools: []tool.Tool{echo(nil)}, Models: map[string]model.Model{"script": script},
		Agents: []agent.Definition{
			{Name: "tester", Model: "script", Agents: []agent.SubAgent{
				{Agent: "clerk", Output: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`)},
				{Agent: "walker", Tools: []string{"echo"}, Limits: agent.Limits{Tokens: 500}},
			}},
			{Name: "clerk", Model: "script"}, {Name: "walker", Model: "script", Tools: []string{"echo"}, Limits: agent.Limits{Turns: 9, Tokens: 5000}},
		},
	})
	require.NoError(t, err)
	require.NoError(t, w.Start(t.Context()))
	t.Cleanup(w.Stop)

	_, o := s.run(t, "lead", nil)
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	require.Equal(t, "neither did it", o.Text)
	var told []childTold
	asked := map[string]int{}
	for _, r := range script.Requests() {
		asked[r.Messages[0].Text()]++
		if last := r.Messages[len(r.Messages)-1]; r.Messages[0].Text() == "lead" && last.Role == agent.RoleTool {
			for _, p := range last.Parts {
				told = append(told, childTold{})
				require.NoError(t, json.Unmarshal([]byte(p.Result.Text), &told[len(told)-1]))
			}
		}
	}
	require.Equal(t, map[string]int{"lead": 2, "where does Ada live?": 2, "walk on": 2}, asked, "the schema is said once more, and nobody walks on beyond the limit")
	require.Len(t, told, 2)
	require.Contains(t, told[0].Error, `the output does not fit the agent's schema`)
	require.Contains(t, told[0].Error, `missing properties: ["city"]`)
	require.Equal(t, "the run has used 700 tokens; limits.tokens allows 500", told[1].Error)
	require.Equal(t, int64(700), told[1].Tokens)
	for i, code := range []agent.Code{agent.CodeBadOutput, agent.CodeLimitTokens} {
		require.False(t, told[i].OK)
		require.Equal(t, agent.StatusFailed, told[i].Status)
		require.Empty(t, told[i].Output)
		below, err := must(s.Get(t.Context(), told[i].Child)).Result(t.Context())
		require.NoError(t, err)
		require.ErrorIs(t, below.Err(), code)
	}
}
