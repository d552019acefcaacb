package flowfile_test

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/flow"
	"github.com/fermata-agents/fermata/internal/flowfile"
	"github.com/fermata-agents/fermata/testsuite"
)

var update = flag.Bool("update", false, "write the drawings")

// known is a file with two agents and any tool. The agent judge has an output.
var known = flowfile.Known{
	Agents: map[string]json.RawMessage{"reader": nil, "planner": nil, "judge": json.RawMessage(`{"type":"object"}`)},
	Tool:   func(string) error { return nil }, Model: func(string, string) error { return nil }, Schema: func(string, json.RawMessage) error { return nil },
}

// read is a valid definition.
func read(t *testing.T, text string) (d flowfile.Definition) {
	t.Helper()
	var v any
	require.NoError(t, yaml.Load([]byte(text), &v))
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &d))
	require.NoError(t, flowfile.Check(d, known))
	return d
}

// play rehearses a flow; a step without a result stays open.
func play(t *testing.T, text string, input any, results map[string]any) (*testsuite.Rehearsal, map[string]string) {
	t.Helper()
	r := testsuite.Rehearse(t, flowfile.New("f", read(t, text), known.Agents), input, func(s testsuite.RehearsedStep) (any, error) {
		switch v := results[s.Path].(type) {
		case nil:
			return nil, testsuite.ErrOpen
		case error:
			return nil, v
		default:
			return v, nil
		}
	})
	arguments := map[string]string{}
	for _, s := range r.Steps {
		arguments[s.Path] = string(s.Arguments)
	}
	return r, arguments
}

type object = map[string]any

// A text may have paths; a text that is only a path is the value; what is missing is null, and
// nothing in a text.
func TestPaths(t *testing.T) {
	_, asked := play(t, `
input: {type: object}
steps:
  - tool: look
    arguments:
      number: ${input.number}
      text: "n=${input.number}, f=${input.files}, x=${input.no.such}."
      second: ${input.files.1}
      none: ${input.files.7}
      plain: "$${input} costs $5 ${input.number}"
      list: [{deep: "${input.files}"}]
`, object{"number": 12345678901234567, "files": []string{"a<b", "c"}}, nil)
	require.JSONEq(t, `{"number":12345678901234567,"text":"n=12345678901234567, f=[\"a<b\",\"c\"], x=.","second":"c","none":null,"plain":"${input} costs $5 12345678901234567","list":[{"deep":["a<b","c"]}]}`, asked["look"])
}

// A tool's result is its text, and a path may lead into it. An agent's output is a value, whether
// the step or the agent has its schema.
func TestResults(t *testing.T) {
	r, asked := play(t, `
steps:
  - {tool: look, arguments: {}}
  - {tool: keep, arguments: {whole: "${look}", part: "${look.name}"}}
  - {agent: judge, task: x}
  - {tool: more, arguments: {whole: "${judge}"}}
  - {agent: reader, task: "${judge}", output: {type: boolean}}
result: "${judge.good} ${reader}"
`, "go", object{"look": `{"name": "Ana"}`, "keep": "kept", "judge": object{"good": true}, "more": "x", "reader": json.RawMessage(`{"status":"completed","text":"false","output":false}`)})
	require.JSONEq(t, `{"whole":"{\"name\": \"Ana\"}","part":"Ana"}`, asked["keep"])
	require.JSONEq(t, `{"whole":{"good":true}}`, asked["more"])
	require.JSONEq(t, `{"task":"{\"good\":true}","output":{"type":"boolean"}}`, asked["reader"])
	require.Equal(t, "true false", r.Text, "%v", r.Err)
}

// An answer with a schema is a value, an approval and a wait have parts.
func TestPeopleAndEvents(t *testing.T) {
	r, asked := play(t, `
steps:
  - {name: many, ask: How many?, answer: {type: object}, context: "of ${input}"}
  - {approve: "Send ${many.n}?", subject: {n: "${many.n}"}, approvers: [ana]}
  - {wait: {topic: "sent.${many.n}", after: 7d}}
  - {name: rest, wait: {}}
result: "${approve.by} ${approve.subject.n} ${wait.payload.id} ${rest.message}"
`, "go", object{"many": object{"n": 3}, "approve": flow.Decision{Approved: true, By: "ana"}, "wait": flow.Event{Topic: "sent.3", Payload: json.RawMessage(`{"id":9}`)}, "rest": flow.Event{Message: "go on"}})
	require.NoError(t, r.Err)
	require.Equal(t, "ana 3 9 go on", r.Text)
	require.JSONEq(t, `{"question":"How many?","context":"of go","choices":null,"schema":{"type":"object"}}`, asked["many"])
	require.JSONEq(t, `{"what":"Send 3?","context":"","subject":{"n":3}}`, asked["approve"])
	require.JSONEq(t, `{"reason":"wait","conditions":{"any":[{"event":{"topic":"sent.3"}},{"after":"168h"}]}}`, asked["wait"])
	require.JSONEq(t, `{"reason":"rest","conditions":{}}`, asked["rest"])
}

// A model is called with a prompt; its reply is a text, or the value that the output describes.
func TestGenerate(t *testing.T) {
	const text = `
steps:
  - {name: plan, generate: "Plan ${input}.", model: script/a, instructions: "You plan ${input}.", output: {type: object}, max_output_tokens: 90}
  - {generate: "Write ${plan.title}.", model: script/b}
`
	r, asked := play(t, text, "tea", object{"plan": object{"title": "Leaves"}, "generate": "Tea is good."})
	require.NoError(t, r.Err)
	require.Equal(t, "Tea is good.", r.Text)
	require.JSONEq(t, `{"model":"script/a","instructions":"You plan tea.","text":"Plan tea.","output":{"type":"object"},"max_output_tokens":90}`, asked["plan"])
	require.JSONEq(t, `{"model":"script/b","text":"Write Leaves."}`, asked["generate"])
	require.Equal(t, []string{"script/a", "script/b"}, flowfile.New("f", read(t, text), known.Agents).Definition().Fallbacks)
}

// A wait ends at a time that is written down, or that a value says.
func TestWaitAtATime(t *testing.T) {
	for at, want := range map[string]string{
		`2027-01-31`: "2027-01-31T00:00:00Z", `2027-01-31T09:00:00+01:00`: "2027-01-31T08:00:00Z",
		`"${input.when}"`: "2027-02-01T00:00:00Z", `"${input.when}T18:30:00Z"`: "2027-02-01T18:30:00Z",
	} {
		r, asked := play(t, `{input: {type: object}, steps: [{wait: {topic: paid, at: `+at+`}}, {agent: reader, task: x}], result: "${wait.timed_out}"}`, object{"when": "2027-02-01"}, object{"wait": flow.Event{TimedOut: true}, "reader": "x"})
		require.NoError(t, r.Err)
		require.Equal(t, "true", r.Text)
		require.JSONEq(t, `{"reason":"wait","conditions":{"any":[{"event":{"topic":"paid"}},{"at":"`+want+`"}]}}`, asked["wait"])
	}
	// What is no time must not wait forever.
	for when, want := range map[string]string{"soon": `wait pay: at is "soon": write a time such as`, "": `wait pay: at is "": write a time such as`} {
		r, _ := play(t, `{input: {type: object}, steps: [{name: pay, wait: {at: "${input.when}"}}]}`, object{"when": when}, nil)
		require.ErrorContains(t, r.Err, want)
		fails(t, r.Err, agent.CodeBadOutput, "pay")
	}
}

// A map takes so many successes as it needs; with need 0 every item comes to its end.
func TestNeeds(t *testing.T) {
	results := object{"m.1/reader": errors.New("ill"), "m.2/reader": "b"}
	for need, want := range map[string]string{"need: 1, ": `["b"]`, "need: 0, ": `["b"]`} {
		r, _ := play(t, `steps: [{name: m, map: {`+need+`over: [a, b], steps: [{agent: reader, task: "${item}"}]}}]`, "go", results)
		require.NoError(t, r.Err)
		require.Equal(t, want, r.Text)
	}
	r, _ := play(t, `steps: [{name: m, map: {over: [a, b], steps: [{agent: reader, task: "${item}"}]}}]`, "go", results)
	var failed *flow.StepError
	require.ErrorAs(t, r.Err, &failed)
	require.Equal(t, "m.1/reader", failed.Path)
	r, _ = play(t, `{input: {}, steps: [{name: m, map: {over: "${input.files}", steps: [{agent: reader, task: "${item}"}]}}]}`, object{}, nil)
	require.Equal(t, "[]", r.Text, "a list that is missing has no items")
	r, _ = play(t, `{input: {}, steps: [{name: m, map: {over: "${input.files}", steps: [{agent: reader, task: "${item}"}]}}]}`, object{"files": 7}, nil)
	require.ErrorContains(t, r.Err, "map m: over is no list: 7")
	for _, text := range []string{"a.txt", "", "null"} { // a text that is no JSON is no list, and not one that is missing
		r, _ = play(t, `{input: {}, steps: [{name: m, map: {over: "${input.files}", steps: [{agent: reader, task: "${item}"}]}}]}`, object{"files": text}, nil)
		require.ErrorContains(t, r.Err, "map m: over is no list: ")
	}
	fails(t, r.Err, agent.CodeBadOutput, "m")
}

// A repeat with on_most: continue goes on with its last round, and one without until does all its
// rounds. A step that is skipped results in null.
func TestRepeats(t *testing.T) {
	r, asked := play(t, `
steps:
  - name: r
    repeat:
      most: 2
      on_most: continue
      until: {reader: {const: good}}
      steps:
        - {agent: reader, task: "last: ${last.reader}"}
  - {name: skipped, agent: planner, task: x, if: {r: {const: good}}}
  - {name: twice, repeat: {most: 2, steps: [{agent: planner, task: x}]}}
result: "${r} ${skipped} ${twice}"
`, "go", object{"r/reader": "bad", "r#2/reader": "worse", "twice/planner": "1", "twice#2/planner": "2"})
	require.NoError(t, r.Err)
	require.Equal(t, "worse  2", r.Text)
	require.JSONEq(t, `{"task":"last: bad"}`, asked["r#2/reader"])
}

// A fail that is skipped has no result: that of the step before is the last one.
func TestFailAtTheEnd(t *testing.T) {
	const text = `steps: [{agent: reader, task: x}, {if: {reader: {const: bad}}, fail: "It says ${reader}."}]`
	r, _ := play(t, text, "go", object{"reader": "good"})
	require.NoError(t, r.Err)
	require.Equal(t, "good", r.Text)
	r, _ = play(t, text, "go", object{"reader": "bad"})
	require.EqualError(t, r.Err, "It says bad.")
	fails(t, r.Err, agent.CodeFlowFailed, "fail")
}

// fails requires an error's code, and the step that it names.
func fails(t *testing.T, err error, code agent.Code, path string) {
	t.Helper()
	var e *agent.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, code, e.Code)
	require.Equal(t, path, e.Path)
}

// A person is asked again after an answer that does not fit the step's schema.
func TestAnswerThatDoesNotFit(t *testing.T) {
	r, asked := play(t, `steps: [{ask: How many?, answer: {type: integer}}]`, "go", object{"ask": "a few", "ask_again": "2.5", "ask_again#2": "2"})
	require.NoError(t, r.Err)
	require.Equal(t, "2", r.Text)
	require.Contains(t, asked["ask_again#2"], "2.5")
}

// The result has to fit the flow's output.
func TestOutput(t *testing.T) {
	const text = `
output: {type: object, required: [n]}
steps: [{agent: judge, task: x}]
`
	r, _ := play(t, text, "go", object{"judge": object{"n": 1}})
	require.NoError(t, r.Err)
	require.JSONEq(t, `{"n":1}`, string(r.Output))
	require.JSONEq(t, `{"type":"object","required":["n"]}`, string(flowfile.New("f", read(t, text), known.Agents).Definition().Output))
	r, _ = play(t, text, "go", object{"judge": object{}})
	require.Equal(t, agent.CodeBadOutput, agent.CodeOf(r.Err))
	require.ErrorContains(t, r.Err, "the result does not fit the flow's output")
}

// The input is JSON that fits its schema, or a text that does.
func TestInput(t *testing.T) {
	const text = `
input: {type: SCHEMA}
steps: [{tool: look, arguments: {in: "${input}"}}]
`
	for _, tt := range []struct{ schema, input, want string }{
		{"integer", "7", `{"in":7}`}, {"string", "7", `{"in":"7"}`}, {"string", `"7"`, `{"in":"7"}`}, {"string", "a {", `{"in":"a {"}`},
		{"integer", "a", ""}, {"object", `{"a":1}}`, ""},
	} {
		r, asked := play(t, strings.Replace(text, "SCHEMA", tt.schema, 1), tt.input, nil)
		if tt.want == "" {
			require.Equal(t, agent.CodeInvalidInput, agent.CodeOf(r.Err), "%+v", tt)
			continue
		}
		require.JSONEq(t, tt.want, asked["look"])
	}
}

// A flow of an agents file takes no files, and says so.
func TestFilesOfTheInput(t *testing.T) {
	r, _ := play(t, `{steps: [{ask: Go on?}]}`, flow.WithFiles[string]{Value: "go", Files: []agent.File{{Session: "s", Name: "p.pdf"}}}, nil)
	require.ErrorIs(t, r.Err, agent.CodeInvalidInput)
	require.ErrorContains(t, r.Err, "the flow f takes none: start it without files")
	require.Empty(t, r.Steps)
}

// Options of a definition are those of the flow.
func TestOptions(t *testing.T) {
	d := flowfile.New("f", read(t, `
description: Does it.
input: {type: object}
limits: {agents: 3}
on_limit: ask
resume_within: 30d
redact: true
default: ask
steps: [{tool: tickets__list}, {tool: tickets__close}, {agent: judge, task: x}]
`), known.Agents).Definition()
	require.Equal(t, []any{"Does it.\nIts task is JSON that fits this schema: {\"type\":\"object\"}", 3, agent.LimitActionAsk, agent.Duration(30 * 24 * time.Hour), true, agent.RulingAsk}, []any{d.Description, d.Limits.Agents, d.OnLimit, d.ResumeWithin, d.Redact, d.Default})
	require.Equal(t, []string{"mcp:tickets"}, d.Tools)
	require.Equal(t, []agent.SubAgent{{Agent: "judge"}}, d.Agents)
}

// Every kind of step is drawn.
func TestMermaid(t *testing.T) {
	text, err := os.ReadFile("testdata/every-kind.yaml")
	require.NoError(t, err)
	drawn := flowfile.Mermaid(read(t, string(text)))
	if *update {
		require.NoError(t, os.WriteFile("testdata/every-kind.mmd", []byte(drawn), 0o600))
	}
	want, err := os.ReadFile("testdata/every-kind.mmd")
	require.NoError(t, err)
	require.Equal(t, string(want), drawn)
}
