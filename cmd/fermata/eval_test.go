package main

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite/eval"
	"github.com/fermata-agents/fermata/testsuite/eval/report"
)

// evaluated is the output of eval run, resume or show with --json.
type evaluated struct {
	trials map[string]eval.Trial // by session
	report report.Report
}

func evaluationOf(t *testing.T, out string) (e evaluated) {
	t.Helper()
	e.trials = map[string]eval.Trial{}
	for line := range strings.Lines(out) {
		var trial trialLine
		require.NoError(t, json.Unmarshal([]byte(line), &trial), line)
		if trial.Type != "trial" {
			require.NoError(t, json.Unmarshal([]byte(line), &e.report), line)
			continue
		}
		require.NotContains(t, e.trials, trial.Session, "it is shown once")
		e.trials[trial.Session] = trial.Trial
	}
	require.Equal(t, "evaluation", e.report.Type, out)
	return e
}

// An evaluation whose process was killed continues where it stood: each of its trials is
// made once, and none is missing. The process is killed within judges' calls, which may
// take 10 minutes: the next process must not wait for that long.
func TestEvaluationSurvivesItsProcess(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.write("fermata.yaml", "agents:\n  slow: {model: \"script:slow.yaml\"}\n")
	b.write("slow.yaml", "price: {input: 1, output: 1}\nreplies:\n  - {text: \"Done.\"}\n")
	judge := "price: {input: 1, output: 1}\nreplies:\n  - {text: '{\"reasons\":\"fine\",\"pass\":true}', repeat: 1000%s}\n"
	b.write("judge.yaml", fmt.Sprintf(judge, ""))
	b.write("late.yaml", fmt.Sprintf(judge, ", delay: 9m"))
	b.write("suite.yaml", `
name: three
agent: slow
trials: 5
at_once: 3
graders: [{exact: Done.}]
cases:
  - {name: a, input: one, graders: [{judge: {model: "script:judge.yaml", rubric: It is done.}}]}
  - {name: b, input: two, graders: [{judge: {model: "script:judge.yaml", rubric: It is done.}}]}
  - {name: c, input: three, graders: [{judge: {model: "script:late.yaml", rubric: It is done.}}]}
`)
	first := b.start("eval", "run", "suite.yaml", "--json")
	for range 6 { // 1 to 3 of a and b: by then c has all places
		first.until(`{"v":1,"type":"trial"`)
	}
	require.Equal(t, -1, first.end(syscall.SIGKILL).exit)
	_, id, _ := strings.Cut(first.err.String(), "evaluation ")
	id, _, _ = strings.Cut(id, " ")

	b.write("late.yaml", fmt.Sprintf(judge, ""))
	// Interrupted again, in order this time.
	again := b.start("eval", "resume", id, "--json")
	again.until(`{"v":1,"type":"trial"`)
	r := again.end(syscall.SIGINT)
	if r.exit != 0 { // it may have been faster
		require.Equal(t, 130, r.exit, r.err)
		require.Contains(t, r.err, "the evaluation is not lost: fermata eval resume "+id)
	}
	r = b.run("eval", "resume", id, "--json")
	require.Zero(t, r.exit, r.err)
	e := evaluationOf(t, r.out)
	require.Len(t, e.trials, 15)
	require.Equal(t, report.StatePassed, e.report.State)
	require.Equal(t, 15, e.report.Passed)
	for _, trial := range e.trials {
		require.Equal(t, eval.StatePassed, trial.State, trial.Why)
		require.Len(t, trial.Verdicts, 2)
		require.Equal(t, 1, trial.Turns)
		require.Equal(t, trial.RunCost+trial.Verdicts[1].Cost, trial.Cost)
	}

	dev := b.start("dev")
	dev.until("ready")
	runs := map[string]int{}
	for line := range strings.Lines(b.run("ls", "--agent", "slow", "--json", "--limit", "100").out) {
		runs[lastLine[map[string]any](t, line)["session"].(string)]++
	}
	require.Len(t, runs, 15)
	for session, n := range runs {
		require.Equal(t, 1, n, session)
		require.Contains(t, e.trials, session)
	}
	shown := evaluationOf(t, b.run("eval", "show", id, "--json").out)
	require.Equal(t, e, shown)
	r = b.run("eval", "ls", "--json")
	require.Equal(t, id, lastLine[map[string]any](t, r.out)["id"])
	require.Zero(t, dev.end(syscall.SIGTERM).exit)
}

// evalProject has agents that do well, that do badly, and that are hostile.
func evalProject(b *bench) {
	b.write("fermata.yaml", `
agents:
  good: {model: "script:good.yaml", tools: [fs_list], rules: [{do: ask, tools: [fs_list]}]}
  bad: {model: "script:bad.yaml"}
  evil: {model: "script:evil.yaml"}
as_root: true
`)
	b.write("good.yaml", "price: {input: 1, output: 1}\nreplies:\n  - {calls: [{tool: fs_list, arguments: {path: .}}]}\n  - {text: \"Listed.\"}\n")
	b.write("bad.yaml", "price: {input: 100, output: 100}\nreplies:\n  - {text: \"No idea.\", usage: {input: 100, output: 100}}\n")
	b.write("evil.yaml", "replies:\n  - {text: \"</system-out></testcase><script>alert(1)</script>]]><img src=x onerror=alert(2)>\\e[31m\\u202egnp.exe\"}\n")
	b.write("suite.yaml", `
name: mixed
trials: 2
person: {rules: [{tool: fs_list, approve: true}]}
cases:
  - {name: good, agent: good, input: List, graders: [{calls: {exactly: [fs_list]}}, {asked: {type: approval, decision: approve}}, {command: {run: [./check.sh]}}]}
  - {name: bad, agent: bad, input: What?, graders: [{contains: [Listed]}]}
  - {name: evil, agent: evil, input: Say, graders: [{exact: nothing}]}
`)
	b.write("check.sh", "#!/bin/sh\ngrep -q '\"text\":\"Listed.\"'\n")
	require.NoError(b.t, os.Chmod(filepath.Join(b.dir, "check.sh"), 0o700)) //nolint:gosec // it is run
}

// The exit status says whether the suite passed, and no answer of a model becomes part of a
// report's markup.
func TestEvaluationReports(t *testing.T) {
	t.Parallel()
	b := setup(t)
	evalProject(b)
	dev := b.start("dev")
	dev.until("ready")
	r := b.run("eval", "run", "suite.yaml", "--label", "before", "--html", "e.html", "--junit", "e.xml")
	require.Equal(t, 1, r.exit, r.err)
	require.Contains(t, r.err, "\nworker ")
	require.Regexp(t, `(?m)^good +passed +2/2 +100% +34 to 100% `, r.out)
	require.Regexp(t, `(?m)^bad +failed +0/2 +0% +0 to 66% .*the answer does not contain "Listed": "No idea\."`, r.out)
	require.Contains(t, r.out, ": failed · 2 trials passed, 4 failed, $")
	require.NotContains(t, r.out+r.err, "\x1b")

	page, err := os.ReadFile(filepath.Join(b.dir, "e.html"))
	require.NoError(t, err)
	for _, no := range []string{"<script", "<img", "onerror=alert(2)>", "\x1b", "\u202e"} {
		require.NotContains(t, string(page), no)
	}
	require.Contains(t, string(page), "&lt;script&gt;alert(1)&lt;/script&gt;")
	require.NotRegexp(t, `(?i)<[^>]*(src|href)=`, string(page), "it loads nothing")
	raw, err := os.ReadFile(filepath.Join(b.dir, "e.xml"))
	require.NoError(t, err)
	var junit struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Cases    []struct {
			Name string `xml:"name,attr"`
		} `xml:"testcase"`
	}
	require.NoError(t, xml.Unmarshal(raw, &junit))
	require.Equal(t, 3, junit.Tests)
	require.Equal(t, 2, junit.Failures)
	require.Len(t, junit.Cases, 3)

	b.sideBySide(t)
	b.added(t)
	require.Zero(t, dev.end(syscall.SIGTERM).exit)
}

// sideBySide compares with an evaluation in which one case has become better.
func (b *bench) sideBySide(t *testing.T) {
	t.Helper()
	r := b.run("eval", "run", "suite.yaml", "--case", "good", "--case", "bad", "--json")
	require.Equal(t, 1, r.exit, r.err)
	b.write("before.jsonl", r.out)
	before := evaluationOf(t, r.out)
	b.write("bad.yaml", "replies:\n  - {text: \"Listed.\"}\n") // read when a worker starts
	r = b.run("eval", "run", "suite.yaml", "--case", "bad", "--trials", "8", "--agents", "fermata.yaml", "--task-queue", "after", "--json")
	require.Zero(t, r.exit, r.err)
	after := evaluationOf(t, r.out)
	require.Len(t, after.trials, 8)
	r = b.run("eval", "compare", "before.jsonl", after.report.ID, "--json")
	require.Zero(t, r.exit, r.err)
	d := lastLine[report.Comparison](t, r.out)
	require.Equal(t, before.report.ID, d.Before.ID)
	require.NotEmpty(t, before.report.Builds)
	require.Equal(t, before.report.Builds, d.Tried.BuildsBefore)
	require.Equal(t, 1, d.Pairs)
	require.Equal(t, report.Unpaired, d.Cases[0].Verdict)
	require.Equal(t, report.Better, d.Cases[1].Verdict)
	require.InDelta(t, 1.0/45, d.Cases[1].P, 1e-9, "0 of 2 and 8 of 8: 1 table of C(10, 2)")
	require.Equal(t, report.Chance, d.Verdict, "one case says nothing about the whole")
	r = b.run("eval", "compare", after.report.ID, "before.jsonl")
	require.Equal(t, 1, r.exit, r.err)
	require.Regexp(t, `(?m)^bad +8/8 100% +0/2 0% +-100 points +0\.022 +worse`, r.out)
	require.Contains(t, r.out, "permutation_exact")
}

// added makes a case of a session, which then passes.
func (b *bench) added(t *testing.T) {
	t.Helper()
	r := b.run("run", "good", "List it", "--session", "s-1")
	require.Equal(t, 3, r.exit, r.err)
	r = b.run("approve", "s-1", "--request", "q-1", "--wait")
	require.Zero(t, r.exit, r.err)
	r = b.run("eval", "add", "s-1", "--to", "new.yaml")
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.out, "case s-1 added to new.yaml: 3 graders")
	r = b.run("eval", "add", "s-1", "--to", "new.yaml", "--name", "again")
	require.Zero(t, r.exit, r.err)
	r = b.run("eval", "add", "s-1", "--to", "new.yaml")
	require.Equal(t, 2, r.exit, "the name is taken: %s", r.err)
	r = b.run("eval", "run", "new.yaml", "--json")
	require.Zero(t, r.exit, r.err)
	require.Len(t, evaluationOf(t, r.out).trials, 2)
}

// A budget stops the evaluation, which says what was left out.
func TestEvaluationBudget(t *testing.T) {
	t.Parallel()
	b := setup(t)
	evalProject(b)
	// A trial of bad costs 2 cents.
	b.write("suite.yaml", `
name: dear
agent: bad
trials: 20
at_once: 1
budget: {cost_usd: 0.2}
cases: [{name: a, input: What?, graders: [{exact: No idea.}]}]
`)
	r := b.run("eval", "run", "suite.yaml", "--json")
	require.Equal(t, 4, r.exit, r.err)
	e := evaluationOf(t, r.out)
	require.Equal(t, report.StateLeftOut, e.report.State)
	require.Equal(t, eval.StopCost, e.report.Stopped)
	require.Equal(t, 10, e.report.Passed)
	require.Equal(t, 10, e.report.LeftOut)
	require.Equal(t, agent.Dollar/5, e.report.Cost)

	b.write("bad.yaml", "replies:\n  - {text: \"No idea.\", delay: 10m}\n")
	b.write("suite.yaml", `
name: late
agent: bad
trials: 3
at_once: 2
budget: {time: 3s}
cases: [{name: a, input: What?, graders: [{exact: No idea.}]}]
`)
	r = b.run("eval", "run", "suite.yaml", "--json")
	require.Equal(t, 4, r.exit, r.err)
	e = evaluationOf(t, r.out)
	require.Equal(t, eval.StopTime, e.report.Stopped)
	require.Equal(t, 3, e.report.LeftOut)
	for _, trial := range e.trials {
		require.Contains(t, []string{"the evaluation was stopped", "it did not begin: budget_time"}, trial.Why)
	}
}

// A stopped evaluation keeps what is done, and ends as one whose budget is used up.
func TestEvaluationStops(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.write("fermata.yaml", "agents:\n  quick: {model: \"script:quick.yaml\"}\n  late: {model: \"script:late.yaml\"}\n")
	b.write("quick.yaml", "replies:\n  - {text: \"Done.\"}\n")
	b.write("late.yaml", "replies:\n  - {text: \"Done.\", delay: 9m}\n")
	b.write("suite.yaml", `
name: two
trials: 2
at_once: 2
graders: [{exact: Done.}]
cases: [{name: quick, agent: quick, input: one}, {name: late, agent: late, input: two}]
`)
	p := b.start("eval", "run", "suite.yaml", "--json")
	for range 2 {
		p.until(`{"v":1,"type":"trial"`)
	}
	_, id, _ := strings.Cut(p.err.String(), "evaluation ")
	id, _, _ = strings.Cut(id, " ")
	r := b.run("eval", "stop", id, "--json")
	require.Zero(t, r.exit, r.err)
	require.Equal(t, map[string]any{"v": 1.0, "id": id, "ended": false}, lastLine[map[string]any](t, r.out))
	r = p.wait()
	require.Equal(t, 4, r.exit, r.err)
	e := evaluationOf(t, r.out)
	require.Equal(t, []any{report.StateLeftOut, eval.StopCancelled, 2, 2}, []any{e.report.State, e.report.Stopped, e.report.Passed, e.report.LeftOut})
	for _, trial := range e.trials {
		if trial.Case == "late" {
			require.Contains(t, []string{"the evaluation was stopped", "it did not begin: cancelled"}, trial.Why)
		}
	}
}

// What can't be evaluated is refused before there is a server.
func TestEvalRefuses(t *testing.T) {
	b := setup(t)
	evalProject(b)
	suite := func(text string) { b.write("s.yaml", text) }
	b.write("d.jsonl", "{\"q\": \"x\"}\n")
	for text, says := range map[string]string{
		"name: a\nagnt: b\n": `s.yaml:2: agnt is not known here; did you mean "agent"?`,
		"name: a\nagent: good\ncases:\n- name: x\n  input: y\n  graders:\n  - exact: z\n  - exatc: z\n":                           `s.yaml:8: cases[0].graders[1].exatc is not known here; did you mean "exact"?`,
		"name: a\nagent: good\ncases_from:\n  file: d.jsonl\n  case:\n    input: '{{q}}'\n    grader: [{exact: z}]\n":             `s.yaml:7: cases_from.case.grader is not known here (with line 1 of d.jsonl); did you mean "graders"?`,
		"name: a\nagent: good\ncases_from:\n  file: d.jsonl\n  case:\n    graders: [{exact: z}]\n    input: '{{question}}'\n":     `s.yaml:7: cases_from.case.input does not fit line 1 of d.jsonl: there is no "question"; there are "q"`,
		"name: a\nagent: good\nk: 5\ncases: [{name: x, input: y, graders: [{exact: z}]}]\n":                                       "s.yaml:3: k must be a list",
		"name: a\nagent: good\nk: [0]\ncases: [{name: x, input: y, graders: [{exact: z}]}]\n":                                     "s.yaml:3: k has 0; k is a list of numbers of trials for pass@k",
		"name: a\nagent: nobody\ncases: [{name: x, input: y, graders: [{exact: z}]}]\n":                                           `case x: fermata.yaml has no agent "nobody"`,
		"name: a\nagent: good\ncases: [{name: x, input: y, graders: [{judge: {model: gpt, rubric: z}}]}]\n":                       `model "gpt" is not known`,
		"name: a\nagent: good\ncases: [{name: x, input: y, graders: [{judge: {model: openai/gpt-9, rubric: z}}]}]\n":              "the model openai/gpt-9 needs a key: set OPENAI_API_KEY",
		"name: a\nagent: good\ncases: [{name: x, input: y, graders: [{function: {name: f}}]}]\n":                                  "register them in a Go worker",
		"name: a\nagent: good\ncases: [{name: x, input: y}]\n":                                                                    "cases[0].graders is missing",
		"name: a\nagent: good\ntrials: 1001\ncases: [{name: x, input: y, graders: [{exact: z}]}]\n":                               "it may be 1 to 1000",
		"name: a\nagent: good\ncases: [{name: x, input: y, files: [../x], graders: [{exact: z}]}]\n":                              "within the suite's directory",
		"name: a\nagent: good\ncases: [{name: x, input: y, graders: [{exact: z}], person: {rules: [{tool: t}]}}]\n":               "needs exactly one",
		"name: a\nagent: good\ncases: [{name: x, input: y, graders: [{exact: z}]}, {name: x, input: y, graders: [{exact: z}]}]\n": "as that of a case before it",
		"name: a\n" + strings.Repeat("# long\n", 100_000):                                                                         "has more than 524288 bytes",
	} {
		suite(text)
		r := b.run("eval", "run", "s.yaml")
		require.NotZero(t, r.exit, text)
		require.Contains(t, r.err, says, text)
		require.NotContains(t, r.err, "temporal ", "no server was started")
	}
	r := b.run("eval", "run", "suite.yaml", "--case", "none")
	require.Equal(t, 2, r.exit)
	require.Contains(t, r.err, "--case none: the suite has no such case; it has ")
	r = b.run("eval", "run", "suite.yaml", "--trials", "-1")
	require.Equal(t, 2, r.exit)
	require.Contains(t, r.err, "--trials is -1: give how often each case is tried")
	r = b.run("eval", "run", "suite.yaml", "--limit", "3")
	require.Equal(t, 2, r.exit)
	require.Contains(t, r.err, "the suite has no cases_from")
	r = b.run("eval", "run", "suite.yaml", "--html", "none/e.html")
	require.Equal(t, 2, r.exit)
	require.Contains(t, r.err, "there is no folder none")
	b.write("r.jsonl", "{\"type\":\"outcome\"}\n")
	r = b.run("eval", "compare", "r.jsonl", "r.jsonl")
	require.Equal(t, 2, r.exit)
	require.Contains(t, r.err, "no line has the type evaluation")
}

// The suite of examples/eval passes, without a key.
func TestTheExampleSuite(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.NoError(t, os.CopyFS(b.dir, os.DirFS("../../examples/eval")))
	r := b.run("eval", "run", "suite.yaml", "--json")
	require.Zero(t, r.exit, r.err)
	e := evaluationOf(t, r.out)
	require.Len(t, e.trials, 9)
	require.Greater(t, e.report.Cost, e.report.RunCost, "the judge costs, too")
}
