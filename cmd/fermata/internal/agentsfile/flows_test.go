package agentsfile_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/agentsfile"
	"github.com/fermata-agents/fermata/flow"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/worker"
)

// flowOf is a flow of an agents file.
func flowOf(t *testing.T, path, name string) flow.Flow {
	t.Helper()
	f, err := agentsfile.Load(context.Background(), path)
	require.NoError(t, err)
	for _, w := range f.Flows {
		if w.Definition().Name == name {
			return w.Flow
		}
	}
	t.Fatalf("%s has no flow %s", path, name)
	return flow.Flow{}
}

// asked is what a step was asked: "PATH: TASK", the prompt, the question, or what is approved.
func asked(t *testing.T, s testsuite.RehearsedStep) string {
	var a struct{ Task, Context, Text, Question, What string }
	require.NoError(t, json.Unmarshal(s.Arguments, &a))
	text := s.Path + ": " + a.Task + a.Text + a.Question + a.What
	if a.Context != "" {
		text += " (" + a.Context + ")"
	}
	return text
}

// rehearse runs a flow with results by path, and returns what was asked.
func rehearse(t *testing.T, f flow.Flow, input any, results map[string]any) (*testsuite.Rehearsal, []string) {
	t.Helper()
	r := testsuite.Rehearse(t, f, input, func(s testsuite.RehearsedStep) (any, error) {
		switch v := results[s.Path].(type) {
		case nil:
			return nil, testsuite.ErrOpen
		case error:
			return nil, v
		default:
			return v, nil
		}
	})
	var all []string
	for _, s := range r.Steps {
		all = append(all, asked(t, s))
	}
	return r, all
}

type object = map[string]any

const patterns = "../../../../examples/flows/patterns.yaml"

// The patterns of examples/flows do what those of examples/patterns do.
func TestPatternsOfAFile(t *testing.T) {
	tests := []struct {
		flow, input string
		results     map[string]any
		asked       []string
		text, err   string
	}{
		{"chain", "Tea", object{"outliner": object{"points": []string{"Leaves", "Water"}}, "writer": "Tea is good."}, []string{"outliner: Tea", `writer: ["Leaves","Water"]`}, "Tea is good.", ""},
		{"chain", "Tea", object{"outliner": object{"points": []string{}}}, []string{"outliner: Tea"}, "", "The outline has no points."},
		{"route", "My lamp", object{"classifier": object{"kind": "refund"}, "answer/cashier": "Paid."}, []string{"classifier: My lamp", "answer/cashier: Pay back: My lamp"}, "Paid.", ""},
		{"route", "Hello", object{"classifier": object{"kind": "other"}, "answer/desk": "Hi."}, []string{"classifier: Hello", "answer/desk: Hello"}, "Hi.", ""},
		{"views", "Buy!", object{"view.lawyer/lawyer": "Too loud.", "view.stylist/stylist": "Too short.", "editor": "Please buy."}, []string{"view.lawyer/lawyer: Buy!", "view.stylist/stylist: Buy!", "editor: Text: Buy!\nThe lawyer says: Too loud.\nThe stylist says: Too short.\n"}, "Please buy.", ""},
		{"views", "Buy!", object{"view.lawyer/lawyer": errors.New("ill")}, []string{"view.lawyer/lawyer: Buy!"}, "", "ill"},
		{"orchestrate", "A house", object{"planner": object{"tasks": []string{"walls", "roof"}}, "parts.1/hand": "W", "parts.2/hand": "R", "editor": "House"}, []string{"planner: A house", "parts.1/hand: walls", "parts.2/hand: roof", `editor: Join these: ["W","R"]`}, "House", ""},
		{"improve", "Tea", object{"draft/writer": "T", "draft/judge": object{"good": false, "advice": "Longer."}, "draft#2/writer": "Tea.", "draft#2/judge": object{"good": true}}, []string{"draft/writer: Tea", "draft/judge: T", "draft#2/writer: Tea (Longer.)", "draft#2/judge: Tea."}, "Tea.", ""},
		{"remind", "Tea with Ana", object{"event": object{"begins": "2027-01-31T09:00:00+01:00", "guests": "Ana"}, "wait": flow.Event{TimedOut: true}, "mail": "Hello Ana."}, []string{"event: When does this begin, and who comes? Tea with Ana", "wait: ", "mail: Greet Ana in one sentence: it begins."}, "Hello Ana.", ""},
		{"remind", "Tea", object{"event": object{"begins": "soon", "guests": ""}}, []string{"event: When does this begin, and who comes? Tea"}, "", `wait wait: at is "soon": write a time`},
	}
	for _, tt := range tests {
		t.Run(tt.flow, func(t *testing.T) {
			r, all := rehearse(t, flowOf(t, patterns, tt.flow), tt.input, tt.results)
			require.Equal(t, tt.asked, all)
			require.Equal(t, tt.text, r.Text)
			if tt.err != "" {
				require.ErrorContains(t, r.Err, tt.err)
				return
			}
			require.NoError(t, r.Err)
		})
	}
}

// A repeat whose condition never holds fails the flow.
func TestRepeatThatIsNeverEnough(t *testing.T) {
	results := object{}
	for i := range 4 {
		round := fmt.Sprintf("draft#%d/", i+1)
		if i == 0 {
			round = "draft/"
		}
		results[round+"writer"], results[round+"judge"] = "T", object{"good": false}
	}
	r, all := rehearse(t, flowOf(t, patterns, "improve"), "Tea", results)
	require.ErrorContains(t, r.Err, "repeat draft: until does not hold after 4 rounds")
	require.Len(t, all, 8)
}

// The review of examples/flows: three of five reviewers are enough, the author answers for a risk,
// and what is approved is merged.
func TestReviewOfAFile(t *testing.T) {
	f := flowOf(t, "../../../../examples/flows/fermata.yaml", "review")
	low, high := object{"risk": "low", "says": []string{}}, object{"risk": "high", "says": []string{"It runs what a user writes."}}
	results := object{
		"findings.docs/reviewer": low, "findings.tests/reviewer": low, "findings.security/reviewer": high,
		"author": "Only admins reach it.", "merge": flow.Decision{Approved: true, By: "ana"}, "note": "written",
	}
	r, all := rehearse(t, f, object{"number": 7, "diff": "+ x"}, results)
	require.NoError(t, r.Err)
	require.Equal(t, "findings.security/reviewer: Review the security of this change:\n+ x\n", all[0])
	require.Equal(t, []string{
		`author: Why is this safe? [{"risk":"high","says":["It runs what a user writes."]},{"risk":"low","says":[]},{"risk":"low","says":[]}]`,
		"merge: Merge change 7? (Only admins reach it.)", "note: ",
	}, all[5:])
	require.JSONEq(t, `{"path":"merged.md","content":"Change 7 is merged, says ana."}`, string(r.Steps[7].Arguments))
	require.JSONEq(t, `{"number":7,"merged":true,"findings":[{"risk":"high","says":["It runs what a user writes."]},{"risk":"low","says":[]},{"risk":"low","says":[]}]}`, string(r.Output))

	results["findings.security/reviewer"], results["merge"] = low, flow.Decision{Reason: "not now"}
	r, all = rehearse(t, f, object{"number": 7, "diff": "+ x"}, results)
	require.NoError(t, r.Err)
	require.Equal(t, []string{"merge: Merge change 7?"}, all[5:], "nobody asks the author, and nothing is written")
	require.JSONEq(t, `false`, string(part(t, r.Output, "merged")))

	r, _ = rehearse(t, f, object{"number": "seven"}, results)
	require.Equal(t, agent.CodeInvalidInput, agent.CodeOf(r.Err))
	require.ErrorContains(t, r.Err, "the run's input does not fit the flow")
}

func part(t *testing.T, raw json.RawMessage, name string) json.RawMessage {
	var all map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(raw, &all))
	return all[name]
}

// Every fault of a flow is found before anything starts, with its line and its key.
func TestFaultsOfFlows(t *testing.T) {
	const head = "agents:\n  a: {model: script:script.yaml, output: {type: object, properties: {good: {type: boolean}}}}\n  b: {model: script:script.yaml}\nflows:\n  f:\n    steps:\n"
	tests := []struct{ name, steps, want string }{
		{"unknown agent", "- {agent: c, task: x}", `flows.f.steps[0].agent is "c", and this file has no such agent or flow; there are a, b, f`},
		{"unknown tool", "- {tool: fs_raed}", `flows.f.steps[0].tool is "fs_raed", and no tool is called so; there are fs_read, fs_list, fs_grep, fs_write, shell_run, web_fetch, save_artifact, memory, todo, and SERVER__TOOL for a server under mcp; did you mean "fs_read"?`},
		{"a server alone", "- {tool: tickets__}\nmcp: {tickets: {command: [cat]}}", `flows.f.steps[0].tool is "tickets__", and no tool is called so`},
		{"unknown key", "- {agent: a, taks: x}", `flows.f.steps[0].taks is not known here; did you mean "task"?`},
		{"no kind", "- {name: x}", "flows.f.steps[0] does nothing: write one of agent, approve, ask, choose, fail, generate, map, parallel, repeat, steps, tool, wait"},
		{"two kinds", "- {agent: a, task: x, ask: y}", "flows.f.steps[0].ask goes with another step: this one has agent"},
		{"another's key", "- {ask: x, task: y}", "flows.f.steps[0].task belongs to a step of another kind; ask may have name, if, context, choices, answer, remind, deadline, default"},
		{"no task", "- {agent: a}", "flows.f.steps[0] needs a task for its agent"},
		{"no model", "- {generate: x}", "flows.f.steps[0] needs the model that is called with its prompt"},
		{"unknown model", "- {generate: x, model: antropic/claude}", `flows.f.steps[0].model: model "antropic/claude" is not known: write anthropic/NAME,`},
		{"a model's schema", "- {generate: x, model: script:script.yaml, output: {type: objekt}}", `flows.f.steps[0].output.type has "objekt"; the types are`},
		{"a path in a prompt", "- {generate: \"${c}\", model: script:script.yaml, instructions: x}", `flows.f.steps[0].generate names "c", and there is no such step`},
		{"a path in instructions", "- {generate: x, model: script:script.yaml, instructions: \"${c}\"}", `flows.f.steps[0].instructions names "c", and there is no such step`},
		{"a part of a reply", "- {generate: x, model: script:script.yaml}\n- {agent: a, task: \"${generate.x}\"}", "flows.f.steps[1].task names generate.x, and generate is a text, which has no parts"},
		{"fewer than no tokens", "- {generate: x, model: script:script.yaml, max_output_tokens: -1}", "flows.f.steps[0].max_output_tokens is -1; it may be 0 or more"},
		{"a cost that nobody knows", "- {generate: x, model: local}\n    limits: {cost_usd: 1}\nmodels: {local: {provider: openai, model: qwen3, base_url: \"http://127.0.0.1:1/v1\"}}", "flows.f.limits.cost_usd can't be held, since the price of local is not known"},
		{"no time", "- {wait: {at: tomorrow}}", `flows.f.steps[0].wait.at is "tomorrow": write a time such as 2027-01-31T09:00:00+01:00, or a day such as 2027-01-31`},
		{"no such day", "- {wait: {at: 2027-02-31}}", `flows.f.steps[0].wait.at is "2027-02-31": write a time`},
		{"a path in a time", "- {wait: {at: \"${c}\"}}", `flows.f.steps[0].wait.at names "c", and there is no such step`},
		{"an object for a time", "- {agent: a, task: x}\n- {wait: {at: \"${a}\"}}", "flows.f.steps[1].wait.at is no time"},
		{"a name twice", "- {agent: a, task: x}\n- {agent: a, task: y}", "flows.f.steps[1] has the name a, as something before it; give it another with name:"},
		{"a name that is taken", "- {agent: a, task: x, name: input}", "flows.f.steps[0].name has the name input, which stands for something else; use another"},
		{"no such step", "- {agent: a, task: \"${c}\"}", `flows.f.steps[0].task names "c", and there is no such step; seen from here are input`},
		{"a later step", "- {agent: a, task: \"${b}\"}\n- {agent: b, task: x}", "flows.f.steps[0].task names b, which comes later or is inside of another step; seen from here are input"},
		{"another branch", "- parallel: [{agent: a, task: x}, {agent: b, task: \"${a}\"}]", "flows.f.steps[0].parallel[1].task names a, which comes later or is inside of another step; seen from here are input"},
		{"inside of a step", "- parallel: [{agent: a, task: x}]\n- {agent: b, task: \"${a}\"}", "flows.f.steps[1].task names a, which comes later or is inside of another step; seen from here are input, parallel"},
		{"no such field", "- {agent: a, task: x}\n- {agent: b, task: \"${a.godo}\"}", "flows.f.steps[1].task names a.godo, and a has only good"},
		{"a part of a text", "- {agent: b, task: x}\n- {agent: a, task: \"${b.x}\"}", "flows.f.steps[1].task names b.x, and b is a text, which has no parts"},
		{"a part of a text input", "- {agent: b, task: \"${input.x}\"}", "flows.f.steps[0].task names input.x, and input is a text, which has no parts"},
		{"an open path", "- {agent: b, task: \"${input\"}", `flows.f.steps[0].task has a "${" without "}"; write "$${" for a plain "${"`},
		{"logic", "- {agent: b, task: \"${input + 1}\"}", `flows.f.steps[0].task has "${input + 1}": a path has names with dots between them, such as input.files.0; write "$${" for a plain "${"`},
		{"deep in arguments", "- {tool: fs_read, arguments: {paths: [{x: \"${y}\"}]}}", `flows.f.steps[0].arguments.paths[0].x names "y", and there is no such step; seen from here are input`},
		{"last outside", "- {agent: b, task: \"${last.a}\"}", "flows.f.steps[0].task names last, which is only inside of a repeat"},
		{"a condition that is no schema", "- {agent: b, task: x, if: {input: true}}", "flows.f.steps[0].if has true for input, and needs a JSON Schema, such as {const: true}"},
		{"a condition with a pattern", "- {agent: b, task: x, if: {input: {pattern: x}}}", "flows.f.steps[0].if has for input a schema that can't be used: it /pattern is not taken here"},
		{"a schema", "- {agent: b, task: x, output: {type: objekt}}", `flows.f.steps[0].output.type has "objekt"; the types are object, array, string, number, integer, boolean, null; did you mean "object"?`},
		{"no most", "- {repeat: {steps: [{agent: b, task: x}]}}", "flows.f.steps[0].repeat needs most: how often its steps are done at most"},
		{"too often", "- {repeat: {most: 1001, steps: [{agent: b, task: x}]}}", "flows.f.steps[0].repeat.most is 1001; it may be 1 to 1000"},
		{"no list", "- {map: {over: \"${input}\", steps: [{agent: b, task: x}]}}", "flows.f.steps[0].map.over is no list"},
		{"a text for a list", "- {map: {over: \"x ${input}\", steps: [{agent: b, task: x}]}}", "flows.f.steps[0].map.over must be a list, or the path of one"},
		{"an item in an item", "- {map: {over: [1], steps: [{map: {over: [2], steps: [{agent: b, task: x}]}}]}}", "flows.f.steps[0].map.steps[0].map calls its item item, as the map around it; give it another name with as:"},
		{"no steps", "- {map: {over: [1], steps: []}}", "flows.f.steps[0].map.steps needs a step"},
		{"never done", "- choose: [{agent: b, task: x}, {agent: a, task: x}]", "flows.f.steps[0].choose[0] has no if, so nothing behind it is ever done; put it last"},
		{"a default alone", "- {ask: x, default: y}", "flows.f.steps[0].default is what a deadline decides: set deadline too"},
		{"a rule", "- {agent: b, task: x}\n    rules: [{do: ask, tools: [fs_wirte]}]", `flows.f.rules[0].tools[0]: no tool is called "fs_wirte"; there are`},
		{"a limit", "- {agent: b, task: x}\n    limits: {turns: -1}", "agent f: limits.turns: -1 is not a positive number"},
		{"the name of an agent", "- {agent: b, task: x}\n  b:\n    steps: [{agent: a, task: x}]", "flows.b: an agent has this name too; use another"},
		{"a deep list", "- {steps: [{steps: [{steps: [{steps: [{steps: [{steps: [{agent: b, task: x}]}]}]}]}]}]}", "steps are inside of 6 other lists, and 5 are allowed; make them a flow of their own"},
		{"a long path", "- {name: " + strings.Repeat("n", 60) + ", steps: [{name: " + strings.Repeat("n", 61) + ", steps: [{name: " + strings.Repeat("n", 62) + ", steps: [{agent: b, task: x, name: " + strings.Repeat("n", 63) + "}]}]}]}", "name has a path with more than 200 bytes when the flow runs; use shorter names"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			write(t, head+"      "+strings.ReplaceAll(tt.steps, "\n-", "\n      -"))
			_, err := agentsfile.Load(t.Context(), agentsfile.DefaultName)
			require.Error(t, err)
			require.Len(t, messages(err), 1, "%v", err)
			require.Contains(t, err.Error(), tt.want)
			require.Regexp(t, `^fermata.yaml:\d+: `, err.Error())
		})
	}
}

// The line of a fault is that of its key, however deep it is.
func TestLineOfAFaultOfAFlow(t *testing.T) {
	write(t, `agents:
  b: {model: script:script.yaml}
flows:
  f:
    steps:
      - map:
          over: [1]
          steps:
            - agent: b
              task: ${item}
            - agent: b
              name: c
              task: ${d}
              context: ${e}
`)
	_, err := agentsfile.Load(t.Context(), agentsfile.DefaultName)
	require.Equal(t, []string{
		`fermata.yaml:13: flows.f.steps[0].map.steps[1].task names "d", and there is no such step; seen from here are b, input, item`,
		`fermata.yaml:14: flows.f.steps[0].map.steps[1].context names "e", and there is no such step; seen from here are b, input, item`,
	}, messages(err))
}

// A flow opens the tools and servers that its steps name, and is a sub-agent like any other.
func TestAFlowIsAnAgentOfTheFile(t *testing.T) {
	write(t, `agents:
  lead: {model: script:script.yaml, agents: [{agent: f, tools: ["*"]}]}
flows:
  f: {steps: [{tool: fs_read, arguments: {path: x}}, {tool: tickets__list}, {agent: g, task: x}]}
  g: {steps: [{agent: f, task: x}]}
mcp:
  tickets: {command: [cat]}
`)
	f, err := agentsfile.Load(t.Context(), agentsfile.DefaultName)
	require.NoError(t, err)
	def, err := f.Agent("f")
	require.NoError(t, err)
	require.Equal(t, agent.FlowModel, def.Model)
	require.Equal(t, []string{"fs_read", "mcp:tickets"}, def.Tools)
	require.Equal(t, []agent.SubAgent{{Agent: "g"}}, def.Agents)
	require.True(t, f.Uses("fs_read"))
	dir, err := filepath.Abs(".")
	require.NoError(t, err)
	require.Equal(t, dir, f.Workspace())
	require.ErrorContains(t, f.SetModel("f", "openai/gpt-5", "."), "f is a flow, which has no model")
}

// The steps of a flow call models, and wait for a time that one of them says.
func TestAFlowCallsModelsAndWaits(t *testing.T) {
	write(t, `agents:
  a: {model: script:script.yaml}
flows:
  f:
    steps:
      - name: day
        generate: When is ${input}?
        model: script:days.yaml
        instructions: You know the calendar.
        output: {type: object, properties: {begins: {type: string}}, required: [begins]}
      - {name: over, wait: {at: 2020-01-01}}
      - wait: {at: "${day.begins}T08:00:00Z"}
      - {name: greet, generate: "Greet everybody on ${day.begins}.", model: script:days.yaml}
`)
	day := time.Now().UTC().AddDate(0, 1, 0).Format(time.DateOnly)
	require.NoError(t, os.WriteFile("days.yaml", []byte(strings.ReplaceAll(`rules:
  - {match: Greet everybody on DAY, text: Hello.}
replies:
  - text: '{"begins": "DAY"}'
`, "DAY", day)), 0o600))
	f, err := agentsfile.Load(t.Context(), agentsfile.DefaultName)
	require.NoError(t, err)
	env := testsuite.New(t, &testsuite.Options{Worker: &worker.Options{Agents: f.Agents, Flows: f.WorkerFlows(), Models: f.Models()}})
	run := env.Start("f", "the fair", nil)
	require.Equal(t, "over", run.Suspended().Waits[0].Step)
	env.FastForward(2 * time.Second) // a time that is over ends the wait
	s := run.Suspended()
	require.Equal(t, agent.SuspensionParked, s.Kind)
	require.Equal(t, day+"T08:00:00Z", s.Waits[0].Conditions.List()[0].At.Format(time.RFC3339))
	env.FastForward(32 * 24 * time.Hour)
	require.Equal(t, "Hello.", run.Completed().Text)
}

// The keys of models that steps call are looked for before a run.
func TestKeysOfAFlowsModels(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "")
	write(t, "agents:\n  a: {model: script:script.yaml}\nflows:\n  f: {steps: [{generate: x, model: openai/gpt-5}]}\n")
	f, err := agentsfile.Load(t.Context(), agentsfile.DefaultName)
	require.NoError(t, err)
	require.Equal(t, []agentsfile.Key{{Env: "OPENAI_API_KEY", Agents: []string{"f"}}}, f.Keys())
	require.EqualError(t, f.MissingKey("f"), "fermata.yaml:4: agent f: its model openai/gpt-5 needs a key: set OPENAI_API_KEY in the environment, or give it a model that needs none")
	require.NoError(t, f.MissingKey("a"))
}
