//go:build unix

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite/eval"
)

// published names a folder with packages that others publish, each in a folder of its own
// with its version. `.ci/run published` fetches them.
const published = "FERMATA_PUBLISHED"

// ofOthers returns a bench and the folder of the published packages.
func ofOthers(t *testing.T) (*bench, string) {
	t.Helper()
	packages := os.Getenv(published)
	if packages == "" {
		t.Skip(published + " is not set; .ci/run published sets it")
	}
	return setup(t), packages
}

// All skills of a published collection are found and sound as they are. A model loads three
// of them, reads a reference, and runs a script where it is, in the shell's sandbox: it
// reads the workspace, and can't write to the skills (HA-132).
func TestPublishedSkills(t *testing.T) {
	t.Parallel()
	b, packages := ofOthers(t)
	skills := filepath.Join(packages, "ai-labs-claude-skills-2.0.1", "dist", "skills")
	b.write("fermata.yaml", "skills: ["+skills+"]\nagents:\n  writer: {model: \"script:script.yaml\", tools: [fs_read, shell_run], skills: [\"*\"], rules: [{do: allow, tools: [shell_run]}]}\n"+
		"workspace: story\nshell: {read: ["+skills+"]}\nas_root: true\n")
	require.NoError(t, os.MkdirAll(filepath.Join(b.dir, "story", "chapters"), 0o700))
	b.write("story/chapters/one.md", "# Chapter 1\n\n**Timeline:** Day 1\n**Characters:** Mira, Tom\n\nThey met at the harbour.\n")
	script := filepath.Join(skills, "storyboard-manager", "scripts", "timeline_tracker.py")
	b.write("script.yaml", `replies:
  - {calls: [{tool: skill, arguments: {name: storyboard-manager}}, {tool: skill, arguments: {name: tech-debt-analyzer}}, {tool: skill, arguments: {name: docker-containerization}}]}
  - {calls: [{tool: skill, arguments: {name: storyboard-manager, path: references/story_structures.md}}]}
  - {calls: [{tool: shell_run, arguments: {command: "/usr/bin/python3 `+script+` . --output json"}}]}
  - {calls: [{tool: shell_run, arguments: {command: "echo x > `+skills+`/storyboard-manager/SKILL.md"}}]}
  - {text: "Done."}
`)

	r := b.run("skills", "ls", "--json")
	require.Zero(t, r.exit, r.err)
	require.Len(t, strings.Split(strings.TrimSpace(r.out), "\n"), 23)
	r = b.run("skills", "check")
	require.Zero(t, r.exit, r.out+r.err)
	require.NotRegexp(t, "(?m)^(fail|warn)", r.out)
	r = b.run("skills", "show", "storyboard-manager")
	require.Zero(t, r.exit, r.err)
	for _, part := range []string{"Assist writers with story planning", "references/story_structures.md", "scripts/timeline_tracker.py", "│ # Storyboard Manager"} {
		require.Contains(t, r.out, part)
	}

	r = b.run("run", "writer", "Track the timeline", "--session", "story", "--json")
	require.Zero(t, r.exit, r.err)
	text, err := os.ReadFile(filepath.Join(skills, "storyboard-manager", "references", "story_structures.md"))
	require.NoError(t, err)
	results := resultsOf(t, r.out)
	require.Len(t, results, 6)
	heading, _, _ := strings.Cut(string(text), "\n")
	require.Contains(t, results[3].Text, heading)
	require.Contains(t, results[4].Text, `"total_events": 3`)
	require.Contains(t, results[5].Text, "Permission denied")
	before, err := os.ReadFile(filepath.Join(skills, "storyboard-manager", "SKILL.md"))
	require.NoError(t, err)
	require.Contains(t, string(before), "# Storyboard Manager")
}

// resultsOf lists the results of tools in the output of a run with --json.
func resultsOf(t *testing.T, out string) (all []agent.ToolResult) {
	t.Helper()
	for line := range strings.Lines(out) {
		var e struct {
			Type string        `json:"type"`
			Data agent.Message `json:"data"`
		}
		if json.Unmarshal([]byte(line), &e) != nil || e.Type != "message" {
			continue
		}
		for _, p := range e.Data.Parts {
			if p.Result != nil {
				all = append(all, *p.Result)
			}
		}
	}
	return all
}

// Evaluations that others wrote are read as they are: questions on long conversations with
// the answers that are expected, and the tasks of a skill with a file and what a judge looks
// for.
func TestPublishedEvaluations(t *testing.T) {
	t.Parallel()
	b, packages := ofOthers(t)
	require.NoError(t, os.CopyFS(filepath.Join(b.dir, "packages"), os.DirFS(packages)))
	b.write("fermata.yaml", `
skills: [packages/agent-skills-eval-0.1.1/examples]
agents:
  rememberer: {model: "script:rememberer.yaml"}
  analyst: {model: "script:analyst.yaml", skills: [basic-skill], skill_match: {}}
`)
	b.write("rememberer.yaml", `
rules:
  - {match: "my favorite color.*What is my favorite color", text: "Your favorite color is Blue."}
  - {match: "Max.*What pet do I have", text: "A golden retriever named Max."}
replies: [{text: "Pizza.", repeat: 9}]
`)
	b.write("analyst.yaml", "rules: [{match: \"highest revenue\", text: \"February, with 18.\"}]\n")
	b.write("memory.yaml", `
name: longmemeval
agent: rememberer
cases_from:
  file: packages/mastra-longmemeval-0.1.28/src/__fixtures__/test-dataset.json
  case:
    name: "{{question_id}}"
    input: "These were our conversations: {{haystack_sessions}} Today is {{question_date}}. {{question}}"
    graders: [{contains: ["{{answer}}"]}]
`)
	r := b.run("eval", "run", "memory.yaml", "--json")
	require.Equal(t, 1, r.exit, r.err)
	states := map[string]eval.State{}
	for _, trial := range evaluationOf(t, r.out).trials {
		require.NotEmpty(t, trial.Build)
		states[trial.Case] = trial.State
	}
	require.Equal(t, map[string]eval.State{"test-001": eval.StatePassed, "test-002": eval.StatePassed, "test-003": eval.StateFailed}, states)
	r = b.run("eval", "run", "memory.yaml", "--limit", "2")
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.out, "2 trials passed, 0 failed")

	b.write("judge.yaml", "rules: [{match: \"(?s)identifies February.*includes the value 18.*February, with 18\", text: '{\"reasons\": \"both hold\", \"pass\": true}'}]\n")
	b.write("skill.yaml", `
name: basic-skill
agent: analyst
cases_from:
  file: packages/agent-skills-eval-0.1.1/examples/basic-skill/evals/evals.json
  list: evals
  dir: packages/agent-skills-eval-0.1.1/examples/basic-skill
  case:
    name: "{{id}}"
    input: "{{prompt}}"
    files: "{{files}}"
    graders: [{judge: {model: "script:judge.yaml", rubric: "{{expected_output}} All of these hold: {{assertions}}"}}]
`)
	r = b.run("eval", "run", "skill.yaml", "--json")
	require.Zero(t, r.exit, r.err)
	e := evaluationOf(t, r.out)
	require.Equal(t, 1, e.report.Passed)
	require.Equal(t, "top-revenue-month", e.report.Cases[0].Name)
}
