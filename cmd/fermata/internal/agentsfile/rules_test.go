package agentsfile_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/agentsfile"
)

func TestSoundRules(t *testing.T) {
	write(t, `
agents:
  lead:
    model: script:script.yaml
    tools: [fs_read, shell_run, ask_user, await_resumption]
    agents:
      - {agent: payer, description: Pays., tools: [pay, "fs_*"], limits: {turns: 5}}
    lifecycle: true
    ceiling: ["fs_*", shell_run, pay, "server_tools:web_search"]
    on_limit: ask
    on_loop: fail
    answer_timeouts: {remind: 1h, deadline: 24h, default: Decide yourself.}
    rules:
      - {do: ask, tools: [shell_run], arguments: {type: object}, approvers: [ana@acme.com], confirm: digest, deadline: 1h, default: reject}
      - {do: deny, tools: [subagent__payer, tickets__close], after_calls: 3, reason: Three are enough.}
      - {do: allow, class: reads}
  payer:
    model: script:script.yaml
    client_tools:
      - {name: pay, description: Pays, input: {type: object, properties: {amount_eur: {type: number}}}}
mcp:
  tickets: {command: [cat]}
`)
	f, err := agentsfile.Load(t.Context(), agentsfile.DefaultName)
	require.NoError(t, err)
	lead, err := f.Agent("lead")
	require.NoError(t, err)
	require.Equal(t, agent.SubAgent{Agent: "payer", Description: "Pays.", Tools: []string{"pay", "fs_*"}, Limits: agent.Limits{Turns: 5}}, lead.Agents[0])
	require.True(t, lead.Lifecycle)
	require.Equal(t, agent.LimitActionAsk, lead.OnLimit)
	require.Equal(t, agent.Duration(time.Hour), lead.Rules[0].Deadline)
	require.Equal(t, []string{"ana@acme.com"}, lead.Rules[0].Approvers)
	require.Equal(t, "Decide yourself.", lead.AnswerTimeouts.Default)
	payer, err := f.Agent("payer")
	require.NoError(t, err)
	require.Equal(t, "pay", payer.ClientTools[0].Name)
	require.NotEmpty(t, f.Workspace())
}

// Tools of the runtime's own open nothing.
func TestOwnToolsNeedNoWorkspace(t *testing.T) {
	write(t, "agents:\n  a: {model: \"script:script.yaml\", tools: [ask_user, await_resumption]}\n")
	f, err := agentsfile.Load(t.Context(), agentsfile.DefaultName)
	require.NoError(t, err)
	require.Empty(t, f.Workspace())
	kit, err := f.Open(nil, nil)
	require.NoError(t, err)
	require.Empty(t, kit.Tools)
	require.NoError(t, kit.Close())
}

// Faults of rules are told with their line, and so are tools that an agent below
// would lack (HA-97).
func TestFaultsOfRules(t *testing.T) {
	const sound = "agents:\n  a:\n    model: script:script.yaml\n"
	tests := []struct {
		name, text string
		want       []string
	}{
		{"ruling", "    rules:\n      - do: allow\n      - do: maybe\n", []string{`fermata.yaml:6: agents.a.rules[1]: do must be allow, ask or deny, not "maybe"`}},
		{"several", "    rules:\n      - do: ask\n        deadline: 1h\n        default: perhaps\n      - do: deny\n        approvers: [ana]\n", []string{
			`fermata.yaml:7: agents.a.rules[0]: default must be approve or reject, not "perhaps"`,
			"fermata.yaml:8: agents.a.rules[1]: approvers, confirm, remind, deadline and default belong to a rule that asks, not to one that does deny",
		}},
		{"nobody approves", "    tools: [fs_write]\n    rules:\n      - do: ask\n        approvers: []\ntools: {fs_write: {approval: {approvers: []}}}\n", []string{
			"fermata.yaml:7: agents.a.rules[0]: approvers is empty: name some, or leave it out, and anybody may approve",
			"fermata.yaml:8: tools.fs_write.approval: approvers is empty: name some, or leave it out, and anybody may approve",
		}},
		{"kinds in a list", "    rules:\n      - do: ask\n      - do: ask\n        approvers: ana\n      - {do: ask, confirm: true, approver: [a]}\nshell: {network: yes}\ndaily: 300\n", []string{
			"fermata.yaml:7: agents.a.rules[1].approvers must be a list, not string",
			"fermata.yaml:9: shell.network must be true or false, not string",
			"fermata.yaml:10: daily needs its fields, such as tokens:, and not a plain value",
		}},
		{"a rule's other faults", "    rules:\n      - {do: ask, confirm: true}\n", []string{"fermata.yaml:5: agents.a.rules[0].confirm must be a string, not bool"}},
		{"a rule's unknown field", "    rules:\n      - {do: ask, approver: [a]}\n", []string{"fermata.yaml:5: agents.a.rules[0].approver is not known here; did you mean \"approvers\"?"}},
		{"unknown field", "    rules:\n      - do: ask\n        tool: x\n", []string{"fermata.yaml:6: agents.a.rules[0].tool is not known here; did you mean \"tools\"?"}},
		{"checks that lead back", "    verify: {checks: [{name: x, agent: a, task: Look.}]}\n    loop_detection: {exempt: [nosuch]}\n", []string{
			"fermata.yaml:2: agents.a: its checks lead back to itself (a asks a): each answer would be checked by a run whose answer is checked again; take the check from one of them",
			`fermata.yaml:5: agents.a.loop_detection.exempt[0]: no tool is called "nosuch"; there are fs_read, fs_list, fs_grep, fs_write, shell_run, web_fetch, save_artifact, memory, todo, ask_user, await_resumption, wait_for_user, report_progress, finish, return_unable, show_file, tool_search, notebook, subagent_list, subagent_wait, subagent_pause, subagent_resume, subagent_stop, SERVER__TOOL, subagent__AGENT and patterns such as "fs_*"`,
		}},
		{"misspelt tools", "    rules:\n      - {do: deny, tools: [\"fs_*\", shel_run]}\n      - {do: deny, tools: [subagent__nobody]}\n    ceiling: [fs_raed]\n", []string{
			`fermata.yaml:5: agents.a.rules[0].tools[1]: no tool is called "shel_run"; there are fs_read, fs_list, fs_grep, fs_write, shell_run, web_fetch, save_artifact, memory, todo, ask_user, await_resumption, wait_for_user, report_progress, finish, return_unable, show_file, tool_search, notebook, subagent_list, subagent_wait, subagent_pause, subagent_resume, subagent_stop, SERVER__TOOL, subagent__AGENT and patterns such as "fs_*"; did you mean "shell_run"?`,
			`fermata.yaml:6: agents.a.rules[1].tools[0]: no tool is called "subagent__nobody"; there are fs_read, fs_list, fs_grep, fs_write, shell_run, web_fetch, save_artifact, memory, todo, ask_user, await_resumption, wait_for_user, report_progress, finish, return_unable, show_file, tool_search, notebook, subagent_list, subagent_wait, subagent_pause, subagent_resume, subagent_stop, SERVER__TOOL, subagent__AGENT and patterns such as "fs_*"`,
			`fermata.yaml:7: agents.a.ceiling[0]: no tool is called "fs_raed"; there are fs_read, fs_list, fs_grep, fs_write, shell_run, web_fetch, save_artifact, memory, todo, ask_user, await_resumption, wait_for_user, report_progress, finish, return_unable, show_file, tool_search, notebook, subagent_list, subagent_wait, subagent_pause, subagent_resume, subagent_stop, server_tools:web_search, server_tools:code_execution, SERVER__TOOL, subagent__AGENT and patterns such as "fs_*"; did you mean "fs_read"?`,
		}},
		{"schema of a rule", "    rules:\n      - do: deny\n        arguments: {type: 7}\n", []string{"fermata.yaml:6: agents.a.rules[0].arguments.type has \"7\"; the types are object, array, string, number, integer, boolean, null"}},
		{"schemas without end", "    rules: [{do: deny, arguments: {$ref: '#'}}]\n    client_tools: [{name: pay, input: {allOf: [{$Ref: '#'}]}}]\n    output: {type: object, properties: {a: {$ref: '#/properties/a'}}}\n", []string{
			"fermata.yaml:4: agents.a.rules[0].arguments is not a JSON Schema: it leads back to itself",
			"fermata.yaml:5: agents.a.client_tools[0].input is not a JSON Schema: it leads back to itself",
			"fermata.yaml:6: agents.a: output is a JSON Schema that can't be used: it leads back to itself",
		}},
		{"client tools", "    client_tools:\n      - {name: \"a b\"}\n      - {name: finish}\n      - {name: pay}\n      - name: pay\n        input: {type: 7}\n", []string{
			`fermata.yaml:5: agents.a.client_tools[0]: tool "a b": use 1 to 64 letters, digits, '_' or '-', beginning with a letter`,
			`fermata.yaml:6: agents.a.client_tools[1]: the name "finish" is taken; use another`,
			`fermata.yaml:8: agents.a.client_tools[3]: the name "pay" is taken; use another`,
			"fermata.yaml:9: agents.a.client_tools[3].input.type has \"7\"; the types are object, array, string, number, integer, boolean, null",
		}},
		{"keys of client tools", "    client_tools:\n      - name: pay\n        timeout: 5m\n      - {name: sell, approval: true}\n", []string{
			"fermata.yaml:6: agents.a.client_tools[0].timeout is for tools that a worker carries out; leave it out",
			"fermata.yaml:7: agents.a.client_tools[1]: agent a: client_tools[0]: a client tool needs no approval, since the client decides about each call; leave approval out",
		}},
		{"keys of an approval", "    tools: [fs_write]\ntools:\n  fs_write:\n    approval:\n      reasn: x\n      confirm: null\n", []string{
			`fermata.yaml:8: tools.fs_write.approval.reasn is not known here; did you mean "reason"?`,
			"fermata.yaml:9: tools.fs_write.approval.confirm is null; leave it out instead",
		}},
		{"agents below", "    agents:\n      - agent: nobody\n      - agent: B\n      - {agent: a, limits: {turns: -1}}\n      - agent: a\n", []string{
			`fermata.yaml:5: agents.a.agents[0]: there is no agent "nobody" in this file`,
			`fermata.yaml:6: agents.a.agents[1]: agent "B": use 1 to 32 lower-case letters, digits or '_', beginning with a letter`,
			"fermata.yaml:7: agents.a.agents[2]: limits.turns: -1 is not a positive number",
			`fermata.yaml:8: agents.a.agents[3]: "a" appears twice`,
		}},
		{"tools that are not handed on", "    tools: [fs_read]\n    agents:\n      - agent: b\n      - agent: c\n  b: {model: \"script:script.yaml\", tools: [fs_read, ask_user, shell_run]}\n  c: {model: \"script:script.yaml\", tools: [fs_read]}\n", []string{
			`fermata.yaml:6: agents.a.agents[0]: b has tools that a lacks (shell_run); list in the entry's tools which of them it may use, "*" for all`,
		}},
		{"tools of checks that are not handed on", "    tools: [fs_read]\n    agents: [{agent: b}]\n  b: {model: \"script:script.yaml\", hooks: {before_resume: {checks: [{name: gate, command: \"true\"}]}}, verify: {checks: [{name: look, tool: fs_read, arguments: {path: a.txt}}]}}\n", []string{
			`fermata.yaml:5: agents.a.agents[0]: b has tools that a lacks (shell_run); list in the entry's tools which of them it may use, "*" for all`,
		}},
		{"client tools that are not handed on", "    tools: [fs_read]\n    client_tools: [{name: pay}]\n    agents: [{agent: b}]\n  b: {model: \"script:script.yaml\", client_tools: [{name: pay}, {name: sign}]}\n", []string{
			`fermata.yaml:6: agents.a.agents[0]: b has tools that a lacks (sign); list in the entry's tools which of them it may use, "*" for all`,
		}},
		{"tools that come with a key", "    tools: [finish, notebook]\n", []string{
			`fermata.yaml:4: agents.a.tools[0]: tool "finish" comes with the agent's key completion: tool; leave it out of tools`,
			`fermata.yaml:4: agents.a.tools[1]: tool "notebook" comes with the agent's key notebook: {}; leave it out of tools`,
		}},
		{"a check that takes no answer", "    verify: {checks: [{name: seen, tool: fs_read}, {name: there, tool: fs_read, arguments: {path: a}}]}\n", []string{
			`fermata.yaml:4: agents.a.verify.checks[0]: the tool fs_read can't take an answer as its arguments; give the check arguments`,
		}},
		{"answer timeouts", "    answer_timeouts:\n      default: yes, do\n", []string{"fermata.yaml:5: agents.a.answer_timeouts: a default is what a deadline decides: set deadline too"}},
		{"reached", "    on_limit: shout\n", []string{`fermata.yaml:4: agent a: on_limit must be one of fail, ask, finalize, not "shout"`}},
		{"lifecycle", "    lifecycle: often\n", []string{"fermata.yaml:4: agents.a.lifecycle must be true or false, not string"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			write(t, sound+tt.text)
			_, err := agentsfile.Load(t.Context(), agentsfile.DefaultName)
			require.Equal(t, tt.want, messages(err))
		})
	}
}
