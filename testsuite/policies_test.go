package testsuite_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/skill"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// An agent with all policies of one agent: a role, a skill that fits the task, a notebook, a list of
// steps, memory, reminders, lessons, recovery, reports of progress, a limit that adapts and one that
// finalizes, tools that are found, bounds of a turn's form, a compaction of its own, instructions that are
// renewed, hooks at each point, and an answer that a tool, a judge and the start's judge check. What ends a run
// in another way (finish, return_unable, stop_after, done_sentinel) can't be in the same story. Sub-agents need a server (see TestEveryCrashOfWorktrees).
func TestAllPoliciesAtOnce(t *testing.T) {
	seen := map[string]int{} // calls of tools and hooks
	script := testsuite.NewScript(
		testsuite.Reply{Match: "Is the work done", Text: `{"verdict":"accept","reasoning":"There are three."}`},
		testsuite.Reply{Match: "^More", Calls: asks("git_log", nil)},
		testsuite.Reply{Calls: asks("notebook", map[string]any{"goals": []string{"release notes"}})},
		testsuite.Reply{Calls: asks("todo", map[string]any{"items": []map[string]any{{"text": "read the log", "state": "in_progress"}}})},
		testsuite.Reply{Calls: asks("memory", map[string]any{"command": "create", "path": "/memories/style.md", "file_text": "Short notes."})},
		testsuite.Reply{Calls: asks("report_progress", map[string]any{"message": "reading"})},
		testsuite.Reply{Calls: asks("git_log", nil)},
		testsuite.Reply{Calls: asks("tool_search", map[string]any{"query": "changes of a release"})},
		testsuite.Reply{Calls: asks("read_changes", nil)},
		testsuite.Reply{Calls: asks("await_resumption", map[string]any{"reason": "the last change"})},
		testsuite.Reply{Calls: asks("wait_for_user", nil)},
		testsuite.Reply{Text: "Two notes."}, testsuite.Reply{Text: "Three notes."},
	).WithInfo(model.Info{Window: 12_000})
	tools := []tool.Tool{
		does(seen, "git_log", "", errors.New("no repository")), does(seen, "read_changes", "a, b and c "+strings.Repeat("whale ", 6000), nil),
		does(seen, "sum_up", `{"summary":"There are three changes."}`, nil), does(seen, "task", "", nil), does(seen, "plan", "", nil), does(seen, "look", "", nil), does(seen, "gate", "", nil), does(seen, "told", "", nil),
		tool.New("count_notes", "Counts.", func(_ context.Context, _ *tool.Call, p agent.Proposal) (string, error) {
			return map[bool]string{true: "There are three changes."}[p.Text == "Two notes."], nil
		}, &tool.Options{ReadOnly: true}),
	}
	s := testsuite.New(t, &testsuite.Options{Model: script, Worker: &worker.Options{Skills: noteSkill(t), Tools: tools, Agents: []agent.Definition{{
		Name: "writer", Model: "anthropic/claude-sonnet-5", Role: "summarizer", ReasoningPolicy: &agent.ReasoningPolicy{}, Reminders: []agent.Reminder{{Text: "Three notes at most."}},
		Tools:  []string{"git_log", "read_changes", agent.TodoTool, agent.MemoryTool, agent.ReportProgressTool, agent.WaitForUserTool, agent.AwaitResumptionTool},
		Skills: []string{"release-notes"}, SkillMatch: &agent.SkillMatch{}, Notebook: &agent.NotebookPolicy{}, Lessons: true, Report: true, TimestampMessages: true, RefreshOnResume: true, TurnPolicy: &agent.TurnPolicy{MaxProseChars: 400}, TextCalls: agent.TextCallsReject,
		ToolSearch: &agent.ToolSearch{Always: []string{"git_log", agent.TodoTool, agent.MemoryTool}}, Compaction: agent.CompactionPolicy{Strategy: agent.CompactionCustom, Tool: "sum_up", KeepLast: -1},
		Recovery: agent.Recovery{agent.FailureToolError: {Do: agent.RecoverCorrect, Times: 2}}, LoopDetection: agent.LoopDetection{Cycles: 3},
		Limits: agent.Limits{Adaptive: &agent.AdaptiveLimit{Initial: 6, Max: 20}}, OnLimit: agent.LimitActionFinalize,
		Verify: agent.Verify{Checks: []agent.Check{{Name: "count", Tool: "count_notes"}, {Name: "rubric", Judge: &agent.Judge{Model: "anthropic/claude-haiku-5", Instructions: "Three notes are enough."}}}},
		Hooks: agent.Hooks{
			BeforeRun: agent.RunHooks{Checks: asksTool("task")}, BeforeCalls: agent.CallHooks{Checks: asksTool("plan")}, AfterTurn: agent.TurnHooks{Checks: asksTool("look")},
			BeforeSuspension: agent.HookList{Checks: asksTool("gate")}, AfterSuspension: agent.HookList{Checks: asksTool("told")},
			BeforeResume: agent.HookList{Checks: asksTool("gate")}, AfterResume: agent.HookList{Checks: asksTool("told")},
		},
	}}}})
	run := s.Start("writer", "Write the release notes", &client.StartOptions{By: "ana", Judge: &agent.Judge{Instructions: "Three notes."}})
	require.Equal(t, agent.SuspensionParked, run.Suspended().Kind)
	run.Resume()
	require.Equal(t, agent.WaitForUserTool, run.Suspended().Cause)
	run.Send("Go on.")
	o := run.Completed()
	require.Equal(t, "Three notes.", o.Text)
	require.Equal(t, 1, o.Verify.Vetoes)
	require.NotZero(t, o.AdaptiveBudget.ExtensionsUsed)
	asked := script.Requests()
	require.Contains(t, asked[len(asked)-3].Messages[0].Text(), "There are three changes.", "a summary stays whole beside long instructions and tools")
	said := o.Report.JudgeDecisions
	require.Equal(t, []string{"count", "count", "rubric", agent.StartJudge}, []string{said[len(said)-4].Check, said[len(said)-3].Check, said[len(said)-2].Check, said[len(said)-1].Check})
	require.Subset(t, types(run.Events()), []agent.EventType{agent.EventSkillActivated, agent.EventNotebookUpdated, agent.EventLessonLearned, agent.EventLimitMoved, agent.EventCheckDone, agent.EventCompacted, agent.EventProgressReported})
	require.Equal(t, map[string]int{"task": 1, "git_log": 1, "read_changes": 1, "sum_up": 2, "plan": 4, "look": 10, "gate": 2, "told": 4}, seen)

	o = s.Start("writer", "More, please", &client.StartOptions{Session: run.Session, Limits: agent.Limits{Turns: 1}}).Ended()
	require.Equal(t, agent.CodeLimitTurns, o.Error.Code)
	require.Contains(t, o.Text, "Summed up", "the last reply")
}

// does returns a tool that counts its calls.
func does(seen map[string]int, name, result string, err error) tool.Tool {
	return tool.New(name, "Does "+strings.ReplaceAll(name, "_", " ")+" of a release.", func(context.Context, *tool.Call, map[string]any) (string, error) {
		seen[name]++
		return result, err
	}, &tool.Options{ReadOnly: true})
}

func asks(name string, arguments map[string]any) []testsuite.Call {
	return []testsuite.Call{{Tool: name, Arguments: arguments}}
}

func asksTool(name string) []agent.Check { return []agent.Check{{Name: name, Tool: name}} }

// noteSkill returns a skill that fits the task.
func noteSkill(t *testing.T) []*skill.Skill {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "release-notes")
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte("---\nname: release-notes\ndescription: Writes release notes.\nallowed-tools: git_log read_changes\n---\nOne note for each change.\n"), 0o600))
	skills, err := skill.ReadDirs(dir)
	require.NoError(t, err)
	return skills
}

func types(events []agent.Event) (all []agent.EventType) {
	for _, e := range events {
		all = append(all, e.Type)
	}
	return all
}
