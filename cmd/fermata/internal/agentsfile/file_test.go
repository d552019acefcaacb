package agentsfile_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/agentsfile"
)

// write puts an agents file, and the script that some of them name, into a
// directory and makes it the working directory.
func write(t *testing.T, text string) {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, agentsfile.DefaultName), []byte(text), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "script.yaml"), []byte("replies: [{text: Hello.}]\n"), 0o600))
}

// messages lists the faults of an error, one a line.
func messages(err error) []string {
	if err == nil {
		return nil
	}
	return strings.Split(err.Error(), "\n")
}

func TestFaults(t *testing.T) {
	const sound = "agents:\n  a:\n    model: script:script.yaml\n"
	tests := []struct {
		name, text string
		want       []string
	}{
		{"empty", "", []string{"fermata.yaml:1: the file is empty; begin with agents:"}},
		{"a list", "- a\n", []string{"fermata.yaml:1: the file needs keys such as agents:, models: and mcp: at its top"}},
		{"broken", "agents:\n  a:\n    model: [x\n  b: y\n", []string{"fermata.yaml:4: not YAML: mapping values are not allowed in this context"}},
		{"tab", "agents:\n\ta: {}\n", []string{"fermata.yaml:2: not YAML: found character that cannot start any token (while scanning for the next token that begins in line 2)"}},
		{"unknown anchor", "agents:\n  a: *b\n", []string{"fermata.yaml:2: not YAML: unknown anchor 'b' referenced"}},
		{"two documents", sound + "---\na: b\n", []string{"fermata.yaml:1: not YAML: expected single document, found multiple"}},
		{"no agents", "workspace: .\n", []string{"fermata.yaml:1: the file has no agents: write agents: with a name and a model below"}},
		{"empty agents", "agents: {}\n", []string{"fermata.yaml:1: agents is empty: write a name and a model below"}},
		{"agents is a list", "agents: [a]\n", []string{"fermata.yaml:1: agents needs names of agents, each with its fields below"}},
		{"agent is a word", "agents:\n  a: claude\n", []string{"fermata.yaml:2: agents.a needs its fields, such as description:, and not a plain value"}},
		{"a tool that nobody has", sound + "tools: {fs_wirte: {approval: true}}\n", []string{`fermata.yaml:4: tools.fs_wirte: no tool is called "fs_wirte"; there are fs_read, fs_list, fs_grep, fs_write, shell_run, web_fetch, save_artifact, memory, todo, SERVER__TOOL and patterns such as "fs_*"; did you mean "fs_write"?`}},
		{"a tool that says nothing", sound + "tools: {fs_write: {}}\n", []string{`fermata.yaml:4: tools.fs_write has no fields: write approval: true, or leave it out`}},
		{"a tool that asks for what can't be", sound + "tools: {fs_write: {approval: {confirm: x}}}\n", []string{`fermata.yaml:4: tools.fs_write.approval: confirm must be digest, not "x"`}},
		{"unknown part", sound + "agnets: {}\n", []string{`fermata.yaml:4: "agnets" is not known here; the file may have agents, flows, models, rates, daily, mcp, tools, skills, workspace, workspaces, shell, web, as_root; did you mean "agents"?`}},
		{"part twice", sound + sound, []string{"fermata.yaml:4: agents appears twice"}},
		{"output of no type", sound + "    output: {type: objekt}\n", []string{`fermata.yaml:4: agents.a.output.type has "objekt"; the types are object, array, string, number, integer, boolean, null; did you mean "object"?`}},
		{"output is no schema", sound + "    output: 7\n", []string{"fermata.yaml:4: agents.a.output must be a JSON Schema, such as {type: object, properties: {…}}"}},
		{"output of no properties", sound + "    output: {type: object, properties: 3}\n", []string{"fermata.yaml:4: agents.a.output.properties needs names, each with a JSON Schema below"}},
		{"no time", sound + "    model_timeout: 0s\n", []string{"fermata.yaml:4: agents.a.model_timeout is zero; leave it out for the default"}},
		{"no age", sound + "    resume_within: 0s\n", []string{"fermata.yaml:4: agents.a.resume_within is zero; leave it out for the default"}},
		{"less than no time", sound + "    model_timeout: -3s\n", []string{"fermata.yaml:4: agent a: model_timeout must be positive"}},
		{"rule for nobody", sound + "    rules: [{do: ask, tools: [fs_write]}]\n", []string{`fermata.yaml:4: agents.a.rules[0].tools[0]: no agent of this file has the tool "fs_write"; the rule would have no effect`}},
		{"a tool that it waits for and lacks", sound + "    require: [fs_read, [todo, finish]]\n    stop_after: [todo]\n", []string{
			`fermata.yaml:4: agents.a.require[0]: agent a has no tool "fs_read"; add it to the agent's tools`,
			`fermata.yaml:4: agents.a.require[1][0]: agent a has no tool "todo"; add it to the agent's tools`,
			`fermata.yaml:5: agents.a.stop_after[0]: agent a has no tool "todo"; add it to the agent's tools`,
		}},
		{"a nudge that is a dash", sound + "    completion: tool\n    nudge: \"-\"\n", []string{"fermata.yaml:5: agent a: nudge can't be left out, and the model would read a dash; write a text, or leave the key out for the runtime's own"}},
		{"a misspelt key of a remedy", sound + "    recovery:\n      tool_error: {do: retry, tims: 2}\n", []string{"fermata.yaml:5: agents.a.recovery.tool_error.tims is not known here; did you mean \"times\"?"}},
		{"a text that can't be left out", sound + "    texts: {nudge: \"-\"}\n", []string{"fermata.yaml:4: agent a: texts.nudge can't be left out, and the model would read a dash; write a text, or leave the key out for the runtime's own"}},
		{"a placeholder of no value", sound + "    texts: {nudge: \"Go on, {foo}.\"}\n", []string{"fermata.yaml:4: agent a: texts.nudge names {foo}, which stands for no value; this text has no values"}},
		{"all skills of none", sound + "    skills: [\"*\"]\n", []string{`fermata.yaml:4: agents.a.skills[0]: "*" stands for all skills of the file, and it has none; name their directories with skills: at the top of the file`}},
		{"a check without a name", sound + "    verify:\n      checks:\n        - {command: make}\n", []string{`fermata.yaml:6: agent a: verify.checks[0]: the check's name is "": use 1 to 32 lower-case letters, digits or '_', beginning with a letter`}},
		{"no vetoes of calls", sound + "    hooks: {before_calls: {max: 0, checks: [{name: x, judge: {}}]}}\n", []string{"fermata.yaml:4: agents.a.hooks.before_calls.max is zero; leave it out for the default"}},
		{"nothing kept", sound + "    compaction: {threshold: 0, keep_last: 0}\n", []string{"fermata.yaml:4: agents.a.compaction.threshold is zero; leave it out for the default", "fermata.yaml:4: agents.a.compaction.keep_last is zero; leave it out for the default"}},
		{"no vetoes", sound + "    verify: {max: 0, checks: [{name: x, judge: {}}]}\n", []string{"fermata.yaml:4: agents.a.verify.max is zero; leave it out for the default"}},
		{"no turns", sound + "    limits: {turns: 0, own_turns: 0}\n", []string{"fermata.yaml:4: agents.a.limits.turns is zero; leave it out for the default", "fermata.yaml:4: agents.a.limits.own_turns is zero; leave it out for the default"}},
		{"no cost", sound + "    limits: {cost_usd: 0.00}\n", []string{"fermata.yaml:4: agents.a.limits.cost_usd is zero; leave it out for the default"}},
		{"no depth for a sub-agent", sound + "    agents: [{agent: a, limits: {depth: 0}}]\n", []string{"fermata.yaml:4: agents.a.agents[0].limits.depth is zero; leave it out for the default"}},
		{"no corrections", sound + "    nudges: 0\n    repairs: 0\n", []string{
			"fermata.yaml:4: agents.a.nudges is zero; write -1 for none, or leave it out for the profile's number", "fermata.yaml:5: agents.a.repairs is zero; write -1 for none, or leave it out for the profile's number",
		}},
		{"fewer than no nudges", sound + "    nudges: -2\n", []string{"fermata.yaml:4: agent a: nudges is -2; it may be a positive number, or -1 for none"}},
		{"no times", sound + "    recovery: {refusal: {do: retry, times: 0}}\n    tool_narrowing: {window_turns: 0}\n", []string{
			"fermata.yaml:4: agents.a.recovery.refusal.times is zero; leave it out for the default", "fermata.yaml:5: agents.a.tool_narrowing.window_turns is zero; leave it out for the default",
		}},
		{"zeros that would mean the default", sound + "    loop_detection: {parallel: 0}\n    verify:\n      checks:\n        - {name: x, judge: {max_output_tokens: 0}}\n    turn_policy: {max_prose_chars: 0}\n    notebook: {remind: 0}\n    daemon: {watchdog: 0, every: 0s}\n    limits: {adaptive: {shrink_by: 0}}\n    rules: [{do: deny, after_calls: 0}]\n    state_version: 0\n", []string{
			"fermata.yaml:4: agents.a.loop_detection.parallel is zero; leave it out for the default",
			"fermata.yaml:7: agents.a.verify.checks[0].judge.max_output_tokens is zero; leave it out for the default",
			"fermata.yaml:8: agents.a.turn_policy.max_prose_chars is zero; leave it out for the default",
			"fermata.yaml:9: agents.a.notebook.remind is zero; leave it out for the default",
			"fermata.yaml:10: agents.a.daemon.watchdog is zero; leave it out for the default",
			"fermata.yaml:10: agents.a.daemon.every is zero; leave it out for the default",
			"fermata.yaml:11: agents.a.limits.adaptive.shrink_by is zero; leave it out for the default",
			"fermata.yaml:12: agents.a.rules[0].after_calls is zero; leave it out for the default",
			"fermata.yaml:13: agents.a.state_version is zero; leave it out for the default",
		}},
		{"zeros elsewhere", sound + "daily: {tokens: 0, cost_usd: 0.0}\nrates: {openai: {per_second: 0, concurrent: 0}}\nmodels:\n  m: {provider: openai, model: gpt-5, window: 0, price: {input: 0, output: 0}}\n  n: {provider: openai, model: gpt-5, price: {input: 0, output: 0}}\n  o: {provider: openai, model: own, price: {input: 0, output: 0}}\nmcp:\n  x: {command: [y], start_timeout: 0s}\nflows:\n  f:\n    steps: [{tool: fs_read, attempts: 0}]\n", []string{
			"fermata.yaml:4: daily.tokens is zero; leave it out for the default", "fermata.yaml:4: daily.cost_usd is zero; leave it out for the default",
			"fermata.yaml:5: rates.openai.per_second is zero; leave it out for the default", "fermata.yaml:5: rates.openai.concurrent is zero; leave it out for the default",
			"fermata.yaml:7: models.m.window is zero; leave it out for the default",
			"fermata.yaml:8: models.n.price is zero, and the price of gpt-5 is known; leave it out for that price",
			"fermata.yaml:11: mcp.x.start_timeout is zero; leave it out for the default",
			"fermata.yaml:14: flows.f.steps[0].attempts is zero; leave it out for the default",
		}},
		{"almost no cost", sound + "    limits: {cost_usd: 0.0000001}\n", []string{"fermata.yaml:4: agents.a.limits.cost_usd rounds to zero; the smallest amount is 0.000001"}},
		{"a limit that begins above its end", sound + "    limits: {own_turns: 4, adaptive: {initial: 9}}\n", []string{"fermata.yaml:4: agent a: limits.adaptive.initial is 9, more than limits.adaptive.max, which is 4"}},
		{"a hook that writes", sound + "    hooks:\n      before_calls:\n        checks:\n          - {name: x, tool: fs_read}\n          - {name: w, tool: fs_write}\n", []string{
			"fermata.yaml:8: agents.a.hooks.before_calls.checks[1]: the tool fs_write is not read-only, and without arguments it gets what a model wrote; make the tool read-only, or give the check arguments",
		}},
		{"a check that asks", sound + "    verify: {checks: [{name: x, command: make}]}\ntools: {\"shell_*\": {approval: true}}\n", []string{
			"fermata.yaml:4: agents.a.verify.checks[0]: the tool shell_run needs a person's approval before each call, and a check asks nobody; name another tool",
		}},
		{"a summary by nobody", sound + "    compaction: {strategy: custom, tool: sum_up}\n", []string{
			`fermata.yaml:4: agents.a.compaction.tool: there is no tool "sum_up": a tool that writes summaries is a Go function in a worker of your own; in a file, leave compaction.strategy out, or use another one than custom`,
		}},
		{"a summary by what writes", sound + "    compaction: {strategy: custom, tool: fs_write}\n", []string{
			"fermata.yaml:4: agents.a.compaction.tool: the runtime calls it without asking anyone, and it may change something: a tool that writes summaries is a Go function in a worker of your own; in a file, leave compaction.strategy out, or use another one than custom",
		}},
		{"a veto of no kind", sound + "    hooks:\n      before_calls:\n        checks: [{name: x, judge: {}}]\n        on_veto: skip\n", []string{
			`fermata.yaml:7: agent a: hooks.before_calls.on_veto is replace or retain, not "skip"`,
		}},
		{"a tool that is skipped", sound + "    hooks:\n      before_calls:\n        checks:\n          - {name: x, tool: fs_read, skip: {last_turns: 1}}\n", []string{
			"fermata.yaml:7: agent a: hooks.before_calls.checks[0].skip: only a judge of hooks.before_calls is skipped; a judge of verify has cadence",
		}},
		{"a cadence of no kind", sound + "    verify:\n      checks: [{name: x, judge: {}, cadence: {when: often}}]\n", []string{
			`fermata.yaml:5: agent a: verify.checks[0].cadence.when: must be always or stalled, not "often"`,
		}},
		{"a fault beside a role", sound + "    role: reviewer\n    model_attempts: -1\n", []string{"fermata.yaml:5: agent a: model_attempts must be positive"}},
		{"agent twice", sound + "  a:\n    model: script:script.yaml\n", []string{"fermata.yaml:4: agents.a is already in line 2"}},
		{"field twice", sound + "    model: x\n", []string{"fermata.yaml:4: agents.a.model appears twice"}},
		{"unknown field", sound + "    modle: x\n", []string{"fermata.yaml:4: agents.a.modle is not known here; did you mean \"model\"?"}},
		{"wrong type, deep", sound + "    limits:\n      wall_clock: 5m\n      turns: many\n", []string{"fermata.yaml:6: agents.a.limits.turns must be a whole number, not string"}},
		{"wrong type, flow", sound + "    limits: {turns: \"40\"}\n", []string{"fermata.yaml:4: agents.a.limits.turns must be a whole number, not string"}},
		{"list for text", sound + "    instructions: [x]\n", []string{"fermata.yaml:4: agents.a.instructions must be a string, not a list"}},
		{"text for list", sound + "    tools: fs_read\n", []string{"fermata.yaml:4: agents.a.tools must be a list, not string"}},
		{"null", sound + "    tools:\n", []string{"fermata.yaml:4: agents.a.tools is null; leave it out instead"}},
		{"blank", sound + "    instructions: \" \"\n", []string{"fermata.yaml:4: agents.a.instructions is blank; leave it out instead"}},
		{"sub-agent", sound + "    agents: [clerk]\n", []string{`fermata.yaml:4: agents.a.agents[0] must be an object, not string; a sub-agent is written as {agent: NAME}`}},
		{"duration", sound + "    limits: {wall_clock: soon}\n", []string{`fermata.yaml:4: agents.a.limits.wall_clock is wrong: "soon" is not a duration such as "90s" or "7d"`}},
		{"negative", sound + "    limits:\n      turns: -1\n", []string{"fermata.yaml:5: agent a: limits.turns: -1 is not a positive number"}},
		{"temperature", sound + "    temperature: -9\n", []string{"fermata.yaml:4: agent a: temperature is -9; it may be 0 to 2"}},
		{"a day of silence", sound + "    model_timeout: 2562047h\n", []string{"fermata.yaml:4: agent a: model_timeout is 2562047h; it may be 24h at most"}},
		{"a call for ever", sound + "mcp:\n  x: {command: [y], call_timeout: 2562047h}\n", []string{"fermata.yaml:5: mcp.x.call_timeout is 2562047h: write 1ms to 24h"}},
		{"daemon without a time", sound + "    daemon:\n      queue: 4\n      every: 0s\n", []string{"fermata.yaml:6: agents.a.daemon.every is zero; leave it out for the default"}},
		{"terminal", sound + "    description: \"red \\e[31m\"\n    agents:\n      - {agent: a, description: \"bell \\a\"}\n", []string{
			`fermata.yaml:4: agent a: description has a control character, '\x1b'; take it out`,
			`fermata.yaml:6: agents.a.agents[0]: agent a: agents[0].description has a control character, '\a'; take it out`,
		}},
		{"merge key", "x: &x {model: y}\n" + sound + "    limits:\n      <<: {turns: 1}\n", []string{
			`fermata.yaml:1: "x" is not known here; the file may have agents, flows, models, rates, daily, mcp, tools, skills, workspace, workspaces, shell, web, as_root`,
			"fermata.yaml:6: agents.a.limits.<< is not known here",
		}},
		{"alias to itself", "agents:\n  a: &a\n    model: script:script.yaml\n    output: *a\n", []string{"fermata.yaml: the file is nested too deep or too large; is there an alias (*NAME) that contains itself?"}},
		{"tag", sound + "    instructions: !secret x\n", []string{"fermata.yaml:4: agents.a.instructions has the tag !secret, which means nothing here"}},
		{"bad name", "agents:\n  Big-One:\n    model: script:script.yaml\n", []string{`fermata.yaml:2: agent "Big-One": use 1 to 32 lower-case letters, digits or '_', beginning with a letter`}},
		{"other name", sound + "    name: b\n", []string{`fermata.yaml:4: agents.a.name is "b"; leave it out, the agent is called a`}},
		{"no model", "agents:\n  a:\n    instructions: x\n", []string{"fermata.yaml:2: agent a: model is missing; name one, such as anthropic/claude-sonnet-5"}},
		{"address of a model", sound + "models:\n  far: {provider: openai, model: x, base_url: \"ftp://127.0.0.1:9/v1\"}\n", []string{`fermata.yaml:5: models.far.base_url must be an http or https URL with a host`}},
		{"unknown model", "agents:\n  a:\n    instructions: x\n    model: gpt\n", []string{`fermata.yaml:4: agents.a.model: model "gpt" is not known: write anthropic/NAME, gemini/NAME, openai/NAME, azure/NAME, bedrock/NAME, vertex/NAME, script:FILE, or a name from models`}},
		{"unknown fallback", sound + "    fallbacks:\n      - anthropic/claude-opus-5\n      - gpt\n", []string{`fermata.yaml:6: agents.a.fallbacks[1]: model "gpt" is not known: write anthropic/NAME, gemini/NAME, openai/NAME, azure/NAME, bedrock/NAME, vertex/NAME, script:FILE, or a name from models`}},
		{"fallback twice", sound + "    fallbacks: [script:script.yaml]\n", []string{"fermata.yaml:4: agent a: fallbacks[0]: script:script.yaml is asked already; name another model"}},
		{"fallback without price", "agents:\n  a:\n    model: openai/gpt-5\n    fallbacks: [openai/gpt-4o, openai/new]\n    limits: {cost_usd: 2.5}\n", []string{"fermata.yaml:5: agents.a.limits.cost_usd can't be held, since the price of openai/new is not known; give it one under models, with price: {input: …, output: …}"}},
		{"unknown tools", sound + "    tools:\n      - fs_read\n      - fs_raed\n      - mcp:tickets\n", []string{
			`fermata.yaml:6: agents.a.tools[1]: tool "fs_raed" is not known; there are fs_read, fs_list, fs_grep, fs_write, shell_run, web_fetch, save_artifact, memory, todo, ask_user, await_resumption, wait_for_user, report_progress, and "mcp:NAME" for a server under mcp; did you mean "fs_read"?`,
			`fermata.yaml:7: agents.a.tools[2]: there is no server "tickets" under mcp`,
		}},
		{"tool twice", sound + "    tools: [fs_read, fs_read]\n", []string{`fermata.yaml:4: agents.a.tools[1]: "fs_read" appears twice`}},
		{"schema", sound + "    output:\n      $ref: \"#/nowhere\"\n", []string{`fermata.yaml:4: agents.a: output is a JSON Schema that can't be used: JSON Pointer "/nowhere": no schema field "nowhere"`}},
		{"reasoning", sound + "    reasoning: hard\n", []string{`fermata.yaml:4: agent a: reasoning must be one of auto, off, minimal, low, medium, high, xhigh, max, not "hard"`}},
		{"reasoning of YAML", sound + "    reasoning: off\n    profile: wild\n", []string{`fermata.yaml:5: agent a: profile must be one of tool_using, researcher, verifier, completer, not "wild"`}},
		{"profile", sound + "    profile: wild\n", []string{`fermata.yaml:4: agent a: profile must be one of tool_using, researcher, verifier, completer, not "wild"`}},
		{"cost without price", sound + "    limits:\n      cost_usd: 2.5\n", []string{"fermata.yaml:5: agents.a.limits.cost_usd can't be held, since the price of script:script.yaml is not known; give it one under models, with price: {input: …, output: …}"}},
		{"workspace", sound + "workspace: nowhere\n", []string{`fermata.yaml:4: workspace "nowhere" is not a directory`}},
		{"workspace is a list", sound + "workspace: [a]\n", []string{"fermata.yaml:4: workspace must be the path of a directory"}},
		{"model entry", sound + "models:\n  local:\n    provider: ollama\n    model: q\n  openai: {provider: openai, model: q}\n  third:\n    provider: openai\n  fourth: {provider: openai, model: q, api_key: sk-1}\n", []string{
			`fermata.yaml:6: models.local.provider must be anthropic, azure, bedrock, gemini, openai or vertex, not "ollama"`,
			"fermata.yaml:8: models.openai: the name is taken; use another",
			"fermata.yaml:9: models.third.model is missing: write the provider's own name for it",
			"fermata.yaml:11: models.fourth.api_key is not known here",
		}},
		{"price", sound + "models:\n  local: {provider: openai, model: q, price: {input: cheap}}\n", []string{"fermata.yaml:5: models.local.price.input is wrong: \"cheap\" is not an amount in US dollars, such as 2.5"}},
		{"mcp entry", sound + "mcp:\n  x: {}\n  a__b: {command: [y]}\n  z:\n    command: tickets\n", []string{
			"fermata.yaml:5: mcp.x.command is missing: write the program and its arguments, as a list, or a url",
			"fermata.yaml:6: mcp.a__b: name it with letters, digits, '-' or single '_', beginning with a letter: its tools are called NAME__TOOL",
			"fermata.yaml:8: mcp.z.command must be a list, not string",
		}},
		{"mcp by url", sound + "mcp:\n  a: {url: \"http://example.com\"}\n  b: {url: \"https://example.com\", command: [y]}\n  c: {url: \"https://example.com\", env: {A: b}}\n  d: {command: [y], headers: {A: b}}\n" +
			"  e: {command: [y], plain: true}\n  f: {url: \"https://example.com\", headers: {Mcp-Session-Id: x}}\n  g: {url: \"https://example.com\", dir: x}\n  h: {url: \"http://example.com\", plain: true, headers: {A: \"${B}\"}}\n  i: {command: [y], elicit: always}\n", []string{
			"fermata.yaml:5: mcp.a: MCP server a: its URL is http:// on another machine, where others on the network can read what is sent: use https://, or allow plain HTTP",
			"fermata.yaml:6: mcp.b has a command and a url: use one of them",
			"fermata.yaml:7: mcp.c.env belongs to a server with a command; headers name variables as ${NAME}",
			"fermata.yaml:8: mcp.d.headers belongs to a server with a url",
			"fermata.yaml:9: mcp.e.plain belongs to a server with a url",
			"fermata.yaml:10: mcp.f: MCP server f: the header Mcp-Session-Id is the protocol's own",
			"fermata.yaml:11: mcp.g.dir belongs to a server with a command",
			`fermata.yaml:13: mcp.i.elicit is "always": write rounds, or replay where calls may be made again`,
		}},
		{"all at once", "agents:\n  a:\n    modle: x\n    tools: [fly]\n    limits: {turns: x, tokens: y}\n  b:\n    model: gpt\nworkspace: nowhere\n", []string{
			"fermata.yaml:3: agents.a.modle is not known here; did you mean \"model\"?",
			`fermata.yaml:4: agents.a.tools[0]: tool "fly" is not known; there are fs_read, fs_list, fs_grep, fs_write, shell_run, web_fetch, save_artifact, memory, todo, ask_user, await_resumption, wait_for_user, report_progress, and "mcp:NAME" for a server under mcp`,
			"fermata.yaml:5: agents.a.limits.turns must be a whole number, not string",
			"fermata.yaml:5: agents.a.limits.tokens must be a whole number, not string",
			`fermata.yaml:7: agents.b.model: model "gpt" is not known: write anthropic/NAME, gemini/NAME, openai/NAME, azure/NAME, bedrock/NAME, vertex/NAME, script:FILE, or a name from models`,
			`fermata.yaml:8: workspace "nowhere" is not a directory`,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			write(t, tt.text)
			_, err := agentsfile.Load(t.Context(), agentsfile.DefaultName)
			require.Equal(t, tt.want, messages(err))
		})
	}
}

// A pipe to which nobody writes is waited for, and not longer than the user wants.
func TestAPipeIsGivenUp(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "agents.yaml")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := agentsfile.Load(ctx, pipe)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestFaultsHaveCodes(t *testing.T) {
	write(t, "agents:\n  a:\n    model: gpt\n")
	_, err := agentsfile.Load(t.Context(), agentsfile.DefaultName)
	require.ErrorIs(t, err, agent.CodeUnknownModel)
	write(t, "agents:\n  a:\n    model: script:script.yaml\n    tools: [fly]\n")
	_, err = agentsfile.Load(t.Context(), agentsfile.DefaultName)
	require.ErrorIs(t, err, agent.CodeUnknownTool)
	_, err = agentsfile.Load(t.Context(), "elsewhere.yaml")
	require.ErrorIs(t, err, agent.CodeInvalidInput)
}

func TestSoundFile(t *testing.T) {
	write(t, `
agents:
  reviewer:
    model: local
    description: Reviews.
    instructions: |
      You review code.
      Be brief.
    tools: [fs_read, fs_grep, fs_list, "mcp:tickets"]
    limits: {turns: 40, tokens: 200000, cost_usd: 2.0, wall_clock: 30m}
    completion: natural
    require: [fs_read, [fs_grep, fs_list]]
    output: {type: object, properties: {ok: {type: boolean, default: null}}}
    temperature: 0.2
    max_output_tokens: 1_000
  writer:
    model: script:script.yaml
models:
  local: {provider: openai, base_url: "http://127.0.0.1:11434/v1", model: qwen3, price: {input: 0.5, output: 1}, window: 32000}
mcp:
  tickets: {command: [cat], env: {TOKEN: $TICKETS_TOKEN}}
`)
	t.Setenv("TICKETS_TOKEN", "t")
	f, err := agentsfile.Load(t.Context(), agentsfile.DefaultName)
	require.NoError(t, err)
	def, err := f.Agent("reviewer")
	require.NoError(t, err)
	require.Equal(t, agent.Limits{Turns: 40, Tokens: 200000, CostUSD: 2 * agent.Dollar, WallClock: agent.Duration(30 * time.Minute)}, def.Limits)
	require.Equal(t, "You review code.\nBe brief.\n", def.Instructions)
	require.Equal(t, []agent.OneOf{{"fs_read"}, {"fs_grep", "fs_list"}}, def.Require)
	require.JSONEq(t, `{"type":"object","properties":{"ok":{"type":"boolean","default":null}}}`, string(def.Output))
	require.Equal(t, 1000, def.MaxOutputTokens)
	require.InDelta(t, 0.2, *def.Temperature, 0)
	info := f.Models()["local"].Info("local")
	require.Equal(t, agent.Price{Input: agent.Dollar / 2, Output: agent.Dollar}, info.Price)
	require.Equal(t, 32000, info.Window)
	require.Empty(t, f.Keys(), "a server of the user's own needs no key")
	require.Equal(t, f.Dir, f.Workspace())

	kit, err := f.Open(nil, nil)
	require.NoError(t, err)
	require.Len(t, kit.Tools, 5)
	require.Len(t, kit.Sources, 1)
	require.NoError(t, kit.Close())

	_, err = f.Agent("nobody")
	require.ErrorIs(t, err, agent.CodeUnknownAgent)
	require.ErrorContains(t, err, "it has reviewer, writer")
}

func TestOnlyWhatIsUsedIsOpened(t *testing.T) {
	write(t, "agents:\n  a:\n    model: script:script.yaml\nmcp:\n  gone: {command: [no-such-program-anywhere]}\n")
	f, err := agentsfile.Load(t.Context(), agentsfile.DefaultName)
	require.NoError(t, err)
	kit, err := f.Open(nil, nil)
	require.NoError(t, err)
	require.Empty(t, kit.Tools)
	require.Empty(t, kit.Sources)
	require.NoError(t, kit.Close())
	require.Empty(t, f.Workspace())
}

// A worker that watches files, or makes workspaces, has the workspace, also if no agent has a tool in it.
func TestTheWorkspaceIsOpenedForWatches(t *testing.T) {
	const head = "agents:\n  a:\n    model: script:script.yaml\n"
	for name, more := range map[string]string{
		"watch": "    daemon: {watch: [inbox]}\n",
		"own":   "    agents: [{agent: b, workspace: {kind: directory, at_end: keep}}]\n  b: {model: \"script:script.yaml\"}\n",
	} {
		t.Run(name, func(t *testing.T) {
			write(t, head+more)
			f, err := agentsfile.Load(t.Context(), agentsfile.DefaultName)
			require.NoError(t, err)
			require.Equal(t, f.Dir, f.Workspace())
			kit, err := f.Open(nil, nil)
			require.NoError(t, err)
			require.NotNil(t, kit.Workspaces())
			require.Empty(t, kit.Tools, "no agent has one")
			require.NoError(t, kit.Close())
		})
	}
}

func TestOpenNamesTheServer(t *testing.T) {
	const head = "agents:\n  a:\n    model: script:script.yaml\n    tools: [\"mcp:x\"]\nmcp:\n"
	write(t, head+"  x: {command: [no-such-program-anywhere]}\n")
	f, err := agentsfile.Load(t.Context(), agentsfile.DefaultName)
	require.NoError(t, err)
	_, err = f.Open(nil, nil)
	require.ErrorContains(t, err, `fermata.yaml:6: mcp.x: the program "no-such-program-anywhere" can't be run`)

	write(t, head+"  x: {command: [cat], env: {TOKEN: $NOT_SET_ANYWHERE}}\n")
	f, err = agentsfile.Load(t.Context(), agentsfile.DefaultName)
	require.NoError(t, err)
	_, err = f.Open(nil, nil)
	require.ErrorContains(t, err, "fermata.yaml:6: mcp.x: env.TOKEN names NOT_SET_ANYWHERE, which is not set")
}

// How long a server may take, and for whom it is, is in the file and within bounds.
func TestTimesOfServers(t *testing.T) {
	const head = "agents:\n  a:\n    model: script:script.yaml\n    tools: [\"mcp:x\"]\nmcp:\n"
	write(t, head+"  x: {command: [cat], call_timeout: 90s, start_timeout: 1m, per: run}\n")
	_, err := agentsfile.Load(t.Context(), agentsfile.DefaultName)
	require.NoError(t, err)
	for field, words := range map[string]string{
		"start_timeout: 6m":  "mcp.x.start_timeout is 6m: write 1ms to 5m",
		"start_timeout: -1s": "mcp.x.start_timeout is -1s: write 1ms to 5m",
		"call_timeout: -1s":  "mcp.x.call_timeout is -1s: write 1ms to 24h",
		"per: tenant":        `mcp.x.per is "tenant": write worker, session or run`,
		"call_timeout: soon": "is not a duration",
	} {
		write(t, head+"  x: {command: [cat], "+field+"}\n")
		_, err := agentsfile.Load(t.Context(), agentsfile.DefaultName)
		require.ErrorContains(t, err, words)
		require.ErrorContains(t, err, "fermata.yaml:6: ")
	}
}

// Only the variables that headers name reach a server, and those must be there.
func TestHeadersFromTheEnvironment(t *testing.T) {
	given := make(chan http.Header, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		given <- req.Header
		http.Error(w, "no "+req.Header.Get("Authorization"), http.StatusUnauthorized)
	}))
	defer server.Close()
	write(t, "agents:\n  a:\n    model: script:script.yaml\n    tools: [\"mcp:x\"]\nmcp:\n  x: {url: \""+server.URL+"\", headers: {Authorization: \"Bearer ${TICKETS_TOKEN}\", X-Team: blue}}\n")
	f, err := agentsfile.Load(t.Context(), agentsfile.DefaultName)
	require.NoError(t, err)
	_, err = f.Open(nil, nil)
	require.ErrorIs(t, err, agent.CodeInvalidInput)
	require.ErrorContains(t, err, "fermata.yaml:6: mcp.x: headers.Authorization names TICKETS_TOKEN, which is not set in the environment")

	t.Setenv("TICKETS_TOKEN", "s3cret-token")
	kit, err := f.Open(nil, nil)
	require.NoError(t, err)
	defer kit.Close()
	_, err = kit.Sources[0].List(t.Context())
	require.ErrorContains(t, err, "401 Unauthorized: no [Authorization]")
	header := <-given
	require.Equal(t, "Bearer s3cret-token", header.Get("Authorization"))
	require.Equal(t, "blue", header.Get("X-Team"))
}

func TestKeys(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "")
	t.Setenv("OPENAI_BASE_URL", "")
	t.Setenv("OPENAI_API_KEY", "set")
	t.Setenv("OWN_KEY", "")
	write(t, "agents:\n  a: {model: anthropic/x}\n  b: {model: openai/y}\n  c: {model: own}\n  d: {model: script:script.yaml}\n  e: {model: anthropic/z}\n  f: {model: openai/y, fallbacks: [openai/z, anthropic/x]}\n"+
		"models:\n  own: {provider: openai, model: y, base_url: \"http://127.0.0.1:1/v1\", api_key_env: OWN_KEY}\n")
	f, err := agentsfile.Load(t.Context(), agentsfile.DefaultName)
	require.NoError(t, err)
	require.Equal(t, []agentsfile.Key{
		{Env: "ANTHROPIC_API_KEY", Agents: []string{"a", "e", "f"}},
		{Env: "OPENAI_API_KEY", Set: true, Agents: []string{"b", "f"}},
		{Env: "OWN_KEY", Agents: []string{"c"}},
	}, f.Keys())
	require.NoError(t, f.MissingKey("b"))
	require.NoError(t, f.MissingKey("d"))
	err = f.MissingKey("a")
	require.ErrorIs(t, err, agent.CodeProviderAuth)
	require.EqualError(t, err, "fermata.yaml:2: agent a: its model anthropic/x needs a key: set ANTHROPIC_API_KEY in the environment, or give it a model that needs none")
	require.ErrorContains(t, f.MissingKey("f"), "fermata.yaml:7: agent f: its model anthropic/x needs a key")
}

// The model of a judge needs its key and its price, wherever the judge is named.
func TestKeysOfJudges(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "set")
	t.Setenv("OPENAI_BASE_URL", "")
	t.Setenv("OPENAI_API_KEY", "")
	for _, at := range []string{"verify", "hooks.before_run", "hooks.before_calls"} {
		one := "{checks: [{name: rubric, judge: {instructions: x}}, {name: guard,\n    judge: {model: openai/none, instructions: x}}]}"
		if hook, ok := strings.CutPrefix(at, "hooks."); ok {
			at, one = "hooks", "{"+hook+": "+one+"}"
		}
		write(t, "agents:\n  a: {model: anthropic/claude-opus-5, "+at+": "+one+"}\n  b: {model: anthropic/claude-opus-5}\n")
		f, err := agentsfile.Load(t.Context(), agentsfile.DefaultName)
		require.NoError(t, err)
		require.Equal(t, []agentsfile.Key{{Env: "ANTHROPIC_API_KEY", Set: true, Agents: []string{"a", "b"}}, {Env: "OPENAI_API_KEY", Agents: []string{"a"}}}, f.Keys(), at)
		require.ErrorContains(t, f.MissingKey("a"), "fermata.yaml:3: agent a: its model openai/none needs a key: set OPENAI_API_KEY")
		require.NoError(t, f.MissingKey("b"))
		require.Equal(t, []string{"openai/none"}, f.Unpriced(f.Agents[0]))
		require.Empty(t, f.Unpriced(f.Agents[1]))
	}
}

// Google's key has two names, of which either will do.
func TestKeyOfGemini(t *testing.T) {
	for _, c := range []struct {
		gemini, google string
		want           agentsfile.Key
	}{
		{"", "", agentsfile.Key{Env: "GEMINI_API_KEY", Agents: []string{"a"}}},
		{"", "set", agentsfile.Key{Env: "GOOGLE_API_KEY", Set: true, Agents: []string{"a"}}},
		{"set", "set", agentsfile.Key{Env: "GEMINI_API_KEY", Set: true, Agents: []string{"a"}}},
	} {
		t.Setenv("GEMINI_API_KEY", c.gemini)
		t.Setenv("GOOGLE_API_KEY", c.google)
		write(t, "agents:\n  a: {model: gemini/gemini-3.6-flash, reasoning: low, limits: {cost_usd: 1}}\nmodels:\n  fast: {provider: gemini, model: gemini-3.5-flash-lite, base_url: \"http://127.0.0.1:1\"}\n")
		f, err := agentsfile.Load(t.Context(), agentsfile.DefaultName)
		require.NoError(t, err)
		require.Equal(t, []agentsfile.Key{c.want}, f.Keys())
		require.Equal(t, agent.ReasoningLow, f.Agents[0].Reasoning)
		require.Contains(t, f.Models(), "fast")
	}
}

// Who reads a cost can find out how old the prices are.
func TestPriceTables(t *testing.T) {
	write(t, "agents:\n  a: {model: gemini/gemini-3.6-flash, fallbacks: [anthropic/claude-opus-5, own, openai/nobody-knows]}\n  b: {model: script:script.yaml}\n"+
		"models:\n  own: {provider: openai, model: gpt-5, price: {input: 1, output: 2}}\n")
	f, err := agentsfile.Load(t.Context(), agentsfile.DefaultName)
	require.NoError(t, err)
	tables := f.PriceTables()
	require.Len(t, tables, 2)
	require.Equal(t, "anthropic", tables[0].Provider)
	require.Equal(t, "gemini", tables[1].Provider)
	for _, p := range tables {
		_, err := time.Parse(time.DateOnly, p.AsOf)
		require.NoError(t, err)
	}
}

func TestSetModel(t *testing.T) {
	write(t, "agents:\n  a: {model: anthropic/x, fallbacks: [openai/y], limits: {turns: 3}}\n")
	f, err := agentsfile.Load(t.Context(), agentsfile.DefaultName)
	require.NoError(t, err)
	require.ErrorIs(t, f.SetModel("a", "gpt", f.Dir), agent.CodeUnknownModel)
	require.ErrorIs(t, f.SetModel("b", "anthropic/y", f.Dir), agent.CodeUnknownAgent)
	require.NoError(t, f.SetModel("a", "script:script.yaml", f.Dir))
	def, err := f.Agent("a")
	require.NoError(t, err)
	require.Equal(t, "script:script.yaml", def.Model)
	require.Empty(t, def.Fallbacks)
	require.Contains(t, f.Models(), "script:script.yaml")
}
