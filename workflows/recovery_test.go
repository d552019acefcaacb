package workflows_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

// After two failures the last message of the next request lists both, and the request before it in
// the transcript is as it was (PA-27, PA-76).
func TestLessonsEndTheRequest(t *testing.T) {
	add := tool.New("add", "", func(context.Context, *tool.Call, none) (string, error) { return "", errors.New("disk full") }, nil)
	b := setup(t, agent.Definition{Lessons: true, Rules: []agent.Rule{{Do: agent.RulingDeny, Tools: []string{"pay"}}}}, testsuite.NewScript(
		testsuite.Reply{Calls: calls("add")}, testsuite.Reply{Calls: calls("pay")}, testsuite.Reply{Text: "I give up."}), add,
		tool.New("pay", "", func(context.Context, *tool.Call, none) (string, error) { return "paid", nil }, nil))
	require.Equal(t, agent.StatusCompleted, b.run(t, "go").Status)
	requests := b.script.Requests()
	require.Len(t, requests, 3)
	last := requests[2].Messages[len(requests[2].Messages)-1]
	require.Equal(t, agent.RoleUser, last.Role)
	require.Equal(t, agent.NoteLessons, last.Note)
	require.Contains(t, last.Text(), "tool_error: the tool add failed; its result says why")
	require.NotContains(t, last.Text(), "disk full", "what the tool said stays in its result")
	require.Contains(t, last.Text(), "policy_violation: ")
	for _, m := range requests[2].Messages[:len(requests[2].Messages)-1] {
		require.NotEqual(t, agent.NoteLessons, m.Note, "the transcript has none")
	}
}

// The last reply at a limit is asked for without tools, and is the outcome's text beside the
// handoff (PA-55, PA-88).
func TestFinalize(t *testing.T) {
	add := tool.New("add", "", func(context.Context, *tool.Call, none) (string, error) { return "3", nil }, nil)
	b := setup(t, agent.Definition{Limits: agent.Limits{Turns: 1}, OnLimit: agent.LimitActionFinalize}, testsuite.NewScript(
		testsuite.Reply{Match: `\Ago`, Calls: calls("add")}, testsuite.Reply{Match: "Your limit is reached", Text: "The sum is 3, as far as I know."}), add)
	o := b.run(t, "go")
	require.Equal(t, agent.StatusFailed, o.Status)
	require.ErrorIs(t, o.Err(), agent.CodeLimitTurns)
	require.Equal(t, "The sum is 3, as far as I know.", o.Text)
	require.NotNil(t, o.Handoff)
	require.Equal(t, o.Text, o.Handoff.Summary)
	require.Equal(t, agent.SummarizedByRule, o.Handoff.SummarizedBy)
	require.Equal(t, []string{"the run has made the 1 model calls that limits.turns allows"}, o.Handoff.Blockers)
	requests := b.script.Requests()
	require.Len(t, requests, 2)
	require.True(t, requests[1].NoCalls)
	require.Contains(t, requests[1].Messages[len(requests[1].Messages)-1].Text(), "last reply")
	require.Equal(t, 1, o.Turns, "it counts as no turn")
}

// A model that refuses is passed over: the next turn asks the next of its fallbacks (PA-57).
func TestARefusalFallsBack(t *testing.T) {
	refuses := testsuite.Reply{Text: "I will not.", Finish: string(agent.FinishContentFilter)}
	b := setup(t, agent.Definition{Fallbacks: []string{"other"}, Recovery: agent.Recovery{agent.FailureRefusal: {Do: agent.RecoverFallback, Then: agent.RecoverHandoff}}}, testsuite.NewScript(refuses, refuses))
	o := b.run(t, "go")
	require.ErrorIs(t, o.Err(), agent.CodeRefusal)
	require.NotNil(t, o.Handoff)
	requests := b.script.Requests()
	require.Len(t, requests, 2)
	require.Equal(t, []string{"script", "other"}, []string{requests[0].Model, requests[1].Model})
}
