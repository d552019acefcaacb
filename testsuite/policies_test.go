package testsuite_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/skill"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// An agent with all policies: a skill that fits the task, a notebook, a list of steps, memory, lessons,
// recovery, a limit that adapts, tools that are found, and an answer that a tool and a judge check.
func TestAllPoliciesAtOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "release-notes")
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte("---\nname: release-notes\ndescription: Writes release notes.\nallowed-tools: git_log read_changes\n---\nOne note for each change.\n"), 0o600))
	skills, err := skill.ReadDirs(dir)
	require.NoError(t, err)
	calls := func(name string, arguments map[string]any) testsuite.Reply {
		return testsuite.Reply{Calls: []testsuite.Call{{Tool: name, Arguments: arguments}}}
	}
	script := testsuite.NewScript(
		testsuite.Reply{Match: "Is the work done", Text: `{"verdict":"accept","reasoning":"There are three."}`},
		calls("notebook", map[string]any{"goals": []string{"release notes"}}),
		calls("todo", map[string]any{"items": []map[string]any{{"text": "read the log", "state": "in_progress"}}}),
		calls("memory", map[string]any{"command": "create", "path": "/memories/style.md", "file_text": "Short notes."}),
		calls("git_log", map[string]any{}),
		calls("tool_search", map[string]any{"query": "changes of a release"}),
		calls("read_changes", map[string]any{}),
		testsuite.Reply{Text: "Two notes."},
		testsuite.Reply{Text: "Three notes."},
	)
	none := func(context.Context, *tool.Call, struct{}) (string, error) { return "a, b and c", nil }
	checks := func(_ context.Context, _ *tool.Call, p agent.Proposal) (string, error) {
		if p.Text != "Three notes." {
			return "There are three changes.", nil
		}
		return "", nil
	}
	s := testsuite.New(t, &testsuite.Options{Model: script, Worker: &worker.Options{Skills: skills, Tools: []tool.Tool{
		tool.New("git_log", "Reads the log.", func(context.Context, *tool.Call, struct{}) (string, error) { return "", errors.New("no repository") }, nil),
		tool.New("read_changes", "Reads the changes of a release.", none, &tool.Options{ReadOnly: true}),
		tool.New("count_notes", "Counts.", checks, &tool.Options{ReadOnly: true}),
	}, Agents: []agent.Definition{{
		Name: "writer", Model: "anthropic/claude-sonnet-5", Tools: []string{"git_log", "read_changes", agent.TodoTool, agent.MemoryTool},
		Skills: []string{"release-notes"}, SkillMatch: &agent.SkillMatch{}, Notebook: &agent.NotebookPolicy{}, Lessons: true, Report: true, TimestampMessages: true,
		ToolSearch: &agent.ToolSearch{Always: []string{"git_log", agent.TodoTool, agent.MemoryTool}},
		Recovery:   agent.Recovery{agent.FailureToolError: {Do: agent.RecoverCorrect, Times: 2}},
		Limits:     agent.Limits{Adaptive: &agent.AdaptiveLimit{Initial: 3, Max: 12}},
		Verify:     agent.Verify{Checks: []agent.Check{{Name: "count", Tool: "count_notes"}, {Name: "rubric", Judge: &agent.Judge{Instructions: "Three notes are enough."}}}},
	}}}})
	run := s.Start("writer", "Write the release notes", &client.StartOptions{By: "ana"})
	o := run.Completed()
	require.Equal(t, "Three notes.", o.Text)
	require.Equal(t, 1, o.Verify.Vetoes)
	require.NotZero(t, o.AdaptiveBudget.ExtensionsUsed)
	for _, want := range []agent.EventType{agent.EventSkillActivated, agent.EventNotebookUpdated, agent.EventLessonLearned, agent.EventLimitMoved, agent.EventCheckDone} {
		require.Contains(t, types(run.Events()), want)
	}
}

func types(events []agent.Event) (all []agent.EventType) {
	for _, e := range events {
		all = append(all, e.Type)
	}
	return all
}
