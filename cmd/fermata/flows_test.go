package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/flow"
)

// flows puts the files of examples/flows into the working directory.
func flows(b *bench) {
	files, err := filepath.Glob("../../examples/flows/*.yaml")
	require.NoError(b.t, err)
	require.NotEmpty(b.t, files)
	for _, path := range files {
		text, err := os.ReadFile(path)
		require.NoError(b.t, err)
		b.write(filepath.Base(path), string(text))
	}
}

// A flow of the agents file is run and asks. It is answered after its worker was started anew, with
// a file that has changed, is approved, and ends as the new file says.
func TestAFlowOfTheAgentsFile(t *testing.T) {
	t.Parallel()
	b := setup(t)
	flows(b)
	dev := b.start("dev", "--addr", b.addr)
	dev.until("ready")
	r := b.run("run", "review", `{"number": 7, "diff": "+ eval(input)"}`, "--session", "change-7")
	require.Equal(t, 3, r.exit, "%s%s", r.out, r.err)
	require.Contains(t, r.out, `Why is this safe? [{"risk":"high","says":["It runs what a user writes."]}`)
	require.Zero(t, dev.end(syscall.SIGINT).exit)

	text, err := os.ReadFile(filepath.Join(b.dir, "fermata.yaml"))
	require.NoError(t, err)
	b.write("fermata.yaml", strings.Replace(string(text), "is merged, says", "was merged by", 1))
	dev = b.start("dev", "--addr", b.addr)
	dev.until("ready")
	require.Contains(t, b.run("inbox").out, "Why is this safe?")
	r = b.run("preflight")
	require.Zero(t, r.exit, "%s%s", r.out, r.err)
	r = b.run("answer", "change-7", "only admins reach it", "--request", "q-1")
	require.Zero(t, r.exit, "%s%s", r.out, r.err)
	r = b.run("wait", "change-7")
	require.Equal(t, 3, r.exit, "%s%s", r.out, r.err)
	require.Contains(t, r.out, "Merge change 7?")
	require.NoFileExists(t, filepath.Join(b.dir, "merged.md"))
	r = b.run("approve", "change-7", "--request", "q-2", "--by", "ana")
	require.Zero(t, r.exit, "%s%s", r.out, r.err)
	r = b.run("wait", "change-7", "--json")
	require.Zero(t, r.exit, "%s%s", r.out, r.err)
	o := lastLine[agent.Outcome](t, r.out)
	require.Equal(t, agent.StatusCompleted, o.Status)
	require.Contains(t, string(o.Output), `"merged":true`)
	text, err = os.ReadFile(filepath.Join(b.dir, "merged.md"))
	require.NoError(t, err)
	require.Equal(t, "Change 7 was merged by ana.", string(text))
	require.Contains(t, b.run("show", "change-7", "--draw").out, "flowchart TD\n  subgraph n1[\"findings\"]\n    n2[\"security/reviewer<br>ok, ")
	require.Contains(t, b.run("fork", "change-7", "--redo", "findings.tests", "--plan").out, "made again, because --redo names it: findings.tests/reviewer (ok)\nasked anew, because people approved it for the run before: merge (ok)\n")
	tree := b.run("tree", "change-7").out
	require.GreaterOrEqual(t, strings.Count(tree, "reviewer"), 3, tree)
	require.Zero(t, dev.end(syscall.SIGINT).exit)
}

// The plan of a retry names each step of a flow: what failed is made again, and the rest is kept. That
// what failed is made again is what a retry is for, so it needs no --yes.
func TestPlanOfARetriedFlow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.write("no.yaml", "replies: [{text: No.}]\n")
	b.write("fermata.yaml", `agents:
  a: {model: "script:no.yaml", output: {type: object}}
flows:
  f:
    steps:
      - {name: note, tool: fs_write, arguments: {path: note.md, content: x}}
      - {name: dir, tool: fs_write, arguments: {path: ".", content: x}, if: {input: {const: tool}}}
      - {agent: a, task: "${input}"}
`)
	dev := b.start("dev", "--addr", b.addr)
	dev.until("ready")
	for input, again := range map[string]string{"tool": "dir (rejected)", "agent": "a (failed)"} {
		require.Equal(t, 1, b.run("run", "f", input, "--session", input).exit)
		r := b.run("retry", input, "--plan")
		require.Zero(t, r.exit, r.err)
		require.Contains(t, r.out, "\nkept: note (ok)\nmade again, because a retry makes again what did not succeed: "+again+"\n")
		plan := lastLine[forkPlanLine](t, b.run("retry", input, "--plan", "--json").out)
		require.Equal(t, agent.AgainFailed, plan.Steps[len(plan.Steps)-1].Again)
		require.Equal(t, 1, b.run("retry", input).exit, "it is made again, and fails again")
	}
	require.Zero(t, dev.end(syscall.SIGINT).exit)
}

// An input that does not fit a flow is wrong input, whether the flow is written in the agents file or is
// a Go function of a worker: the error names the key and what is expected, and nothing has begun.
func TestWrongInputOfAFlow(t *testing.T) {
	type order struct {
		Number int `json:"number"`
	}
	s := scripted(t)
	s.options.Flows = []flow.Flow{flow.New("orders", func(flow.Context, order) (string, error) { return "done", nil }, nil)}
	s.works()
	require.Zero(t, s.run("run", "orders", `{"number": 7}`).exit)
	const goes, schema = `the run's input does not fit the flow orders: number: type: x has type "string", want "integer"; it has to fit this schema: `, `"properties":{"number":{"type":"integer"}}`
	for _, where := range []string{"of a worker", "of a file"} {
		if where == "of a file" {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "s.yaml"), []byte("replies: [{text: x}]\n"), 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "fermata.yaml"), []byte(`agents: {a: {model: "script:s.yaml"}}
flows:
  orders: {input: {type: object, properties: {number: {type: integer}}}, steps: [{agent: a, task: x}]}
`), 0o600))
			s.flags = append(s.flags, "--agents", filepath.Join(dir, "fermata.yaml"))
		}
		name := s.session(strings.ReplaceAll(where, " ", "-"))
		r := s.run("run", "orders", `{"number": "x"}`, "--session", name)
		require.Equal(t, 2, r.exit, "%s%s", r.out, r.err)
		require.Contains(t, r.err, goes)
		require.Contains(t, r.err, schema)
		require.NotContains(t, r.out, "turn 1")
	}
	_, err := s.Get(t.Context(), s.session("of-a-file"))
	require.ErrorIs(t, err, agent.CodeNotFound, "nothing was started")
}

// Doctor draws the flows of a file, and needs no server for it.
func TestDoctorDrawsFlows(t *testing.T) {
	t.Parallel()
	b := setup(t)
	flows(b)
	r := b.run("doctor", "--draw", "--agents", "patterns.yaml")
	require.Zero(t, r.exit, r.err)
	require.Equal(t, 6, strings.Count(r.out, "```mermaid\nflowchart TD\n"), r.out)
	require.Contains(t, r.out, `[/"event: When does this begin, and who comes? ${input}"/]`)
	require.Contains(t, r.out, `("wait for ${event.begins}")`)
	require.Contains(t, r.out, "## route\n\n```mermaid\n")
	require.Contains(t, r.out, `{"classifier.kind = refund"}`)
	r = b.run("doctor", "--draw", "--json")
	require.Zero(t, r.exit, r.err)
	d := lastLine[drawingLine](t, r.out)
	require.Equal(t, "review", d.Flow)
	require.True(t, strings.HasPrefix(d.Mermaid, "flowchart TD\n"), d.Mermaid)
	require.Contains(t, b.run("doctor").out, "ok   flow        review: fermata doctor --draw draws it")

	b.write("fermata.yaml", "agents:\n  a: {model: \"script:reviewer.yaml\"}\nflows:\n  f: {steps: [{agent: b, task: x}]}\n")
	r = b.run("doctor", "--draw")
	require.Equal(t, agent.CodeUnknownAgent.ExitStatus(), r.exit)
	require.Contains(t, r.err, `fermata.yaml:4: flows.f.steps[0].agent is "b", and this file has no such agent or flow; there are a, f`)
	b.write("fermata.yaml", "agents:\n  a: {model: \"script:reviewer.yaml\"}\n")
	r = b.run("doctor", "--draw")
	require.Zero(t, r.exit)
	require.Contains(t, r.err, "there is no flow to draw")
}
