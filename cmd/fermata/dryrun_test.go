package main

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// HA-108: run --dry-run shows the start, and makes nothing: no server, no store, no run.
func TestRunDry(t *testing.T) {
	t.Chdir(t.TempDir())
	data := t.TempDir()
	require.NoError(t, os.Mkdir("project", 0o755))
	require.NoError(t, os.WriteFile("fermata.yaml", []byte(`
agents:
  critic:
    model: anthropic/claude-sonnet-5
    role: reviewer
    tools: [fs_read, fs_write]
    rules: [{do: ask, tools: [fs_write], reason: It changes files.}]
  sorter: {model: anthropic/claude-sonnet-5, stateless: true}
workspace: project
`), 0o600))
	look := func(args ...string) ran {
		return inProcess(t, append([]string{"run", "critic", "Read main.go", "--dry-run", "--data", data}, args...)...)
	}
	r := look()
	require.Zero(t, r.exit, r.err)
	for _, want := range []string{
		"agent         critic (nothing was started)", "role          reviewer", "reasoning     medium", "limits        30 turns of its own",
		"first request ", "of the 1000000 tokens", "fs_read", "made", "fs_write", "asked for", "It changes files.", "│ You are a reviewer.", "\n│ - ", "Read main.go",
	} {
		require.Contains(t, r.out, want)
	}
	r = look("--json")
	require.Zero(t, r.exit, r.err)
	var p agent.Preview
	require.NoError(t, json.Unmarshal([]byte(r.out), &p))
	require.Equal(t, "preview", p.Type)
	require.Equal(t, "claude-sonnet-5", p.Spec.Model[len("anthropic/"):])
	require.Positive(t, p.Request.Tokens)

	// A stateless agent takes no session, and that is said before anything starts (OA-112).
	r = inProcess(t, "run", "sorter", "Spam?", "--session", "mail-7", "--data", data)
	require.Equal(t, 2, r.exit, r.err)
	require.Contains(t, r.err, "agent sorter is stateless, and keeps no session: leave --session out")

	entries, err := os.ReadDir(data)
	require.NoError(t, err)
	require.Empty(t, entries, "nothing was started")

	for _, wrong := range [][]string{{"--detach"}, {"--session", "a"}, {"--carry", "reset"}, {"--file", "fermata.yaml"}, {"--judge", " "}} {
		require.Equal(t, 2, look(wrong...).exit, wrong)
	}
}

// The look shows the skills that the run would begin with, its checks, and what follows a failure.
// A skill that the agent lacks is refused before anything starts.
func TestRunDryShowsWhatTheAgentNames(t *testing.T) {
	t.Chdir(t.TempDir())
	data := t.TempDir()
	require.NoError(t, os.MkdirAll("skills/notes", 0o755))
	require.NoError(t, os.MkdirAll("skills/deploy", 0o755))
	require.NoError(t, os.WriteFile("skills/notes/SKILL.md", []byte("---\nname: notes\ndescription: Writes release notes.\n---\nOne line for each change.\n"), 0o600))
	require.NoError(t, os.WriteFile("skills/deploy/SKILL.md", []byte("---\nname: deploy\ndescription: Deploys a build.\npaths: [\"infra/**\"]\n---\nDeploy to staging first.\n"), 0o600))
	require.NoError(t, os.WriteFile("fermata.yaml", []byte(`
skills: [skills]
agents:
  writer:
    model: anthropic/claude-sonnet-5
    skills: ["*"]
    skill_match: {}
    lessons: true
    reasoning_policy: {scale: large}
    reminders: [{text: Never push.}]
    limits: {adaptive: {initial: 4, max: 16}}
    recovery: {refusal: {do: retry, times: 2, then: handoff}, limit_turns: ask}
    verify: {max: 3, checks: [{name: rubric, judge: {instructions: Each line names a change.}, cadence: {every: 2, max_invocations: 1}}]}
    hooks: {before_run: {checks: [{name: guard, judge: {}}]}, before_calls: {checks: [{name: plan, judge: {}, skip: {last_turns: 1, attempts: 3}}]}}
`), 0o600))
	look := func(args ...string) ran {
		return inProcess(t, append([]string{"run", "writer", "Say hello", "--data", data}, args...)...)
	}
	r := look("--dry-run", "--skill", "notes", "--working-file", "infra/main.tf")
	require.Zero(t, r.exit, r.err)
	for _, want := range []string{
		"limits        4 turns of its own at first, and up to 16", "check         rubric (judge, every 2 turns, at most 1 time)", "hook          plan (before_calls, judge, not in the last turn, not after 3 attempts in a row)", "vetoes        3 at most", "hook          guard (before_run, judge, not asked: taken to accept)", "first request ", "tokens of the model's window",
		"recovery      limit_turns: ask", "recovery      refusal: retry, at most 2 times in a row, then handoff", "lessons       ", "reasoning     high (agent, scale large)", "reminder      Never push.",
		"skill         notes (named by you)", "skill         deploy (matches the task)", "│ One line for each change.", "│ Deploy to staging first.",
	} {
		require.Contains(t, r.out, want)
	}
	r = look("--skill", "nots")
	require.Equal(t, 6, r.exit, r.err)
	require.Contains(t, r.err, `agent writer has no skill "nots"; it has deploy, notes; did you mean "notes"?`)
	r = inProcess(t, "send", "s-1", "Go on", "--agent", "writer", "--skill", "nots", "--data", data)
	require.Equal(t, 6, r.exit, r.err)
	require.Contains(t, r.err, "it has deploy, notes")
	entries, err := os.ReadDir(data)
	require.NoError(t, err)
	require.Empty(t, entries, "nothing was started")
}
