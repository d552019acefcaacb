package worker_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/skill"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// Each line of the log about a run has its session: those of a tool that panics and of a matcher that
// fails, before and after a suspension (OA-94).
func TestEveryLineOfARunHasItsSession(t *testing.T) {
	core, said := observer.New(zap.DebugLevel)
	boom := tool.New("boom", "fails", func(context.Context, *tool.Call, struct{}) (string, error) { panic("oh") }, nil)
	call := func(name string, arguments map[string]any) testsuite.Reply {
		return testsuite.Reply{Calls: []testsuite.Call{{Tool: name, Arguments: arguments}}}
	}
	script := testsuite.NewScript(
		call(agent.AskUserTool, map[string]any{"question": "Now?"}), call("boom", nil),
		testsuite.Reply{Text: "done"},
	)
	host := &agent.SkillMatch{Strategy: agent.SkillsByHost}
	run := testsuite.New(t, &testsuite.Options{Worker: &worker.Options{
		Logger: zap.New(core), Models: map[string]model.Model{"script": script}, Tools: []tool.Tool{boom}, Skills: two(t),
		SkillMatcher: func(context.Context, skill.Task, []agent.Skill) ([]agent.SkillCandidate, error) {
			return nil, errors.New("no index")
		},
		Agents: []agent.Definition{
			{Name: "lead", Model: "script", Tools: []string{"boom", agent.AskUserTool}, Skills: []string{"*"}, SkillMatch: host},
		},
	}}).Start("lead", "go", nil)
	run.Suspended()
	run.Answer("yes")
	run.Completed()

	var lines []string
	for _, e := range said.All() {
		lines = append(lines, e.Message)
		require.Equal(t, run.Session, e.ContextMap()["session"], e.Message)
	}
	require.Contains(t, lines, "the skill matcher failed; skills are matched by metadata")
	require.Contains(t, lines, "tool panicked")
}
