package worker_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

func echo(name string) tool.Tool {
	return tool.New(name, "", func(context.Context, *tool.Call, struct{}) (string, error) { return "", nil }, nil)
}

// Everything that does not fit is told at once, before anything is started (HA-38,
// HA-150).
func TestAllFaultsAtOnce(t *testing.T) {
	_, err := worker.New(nil, &worker.Options{
		Agents: []agent.Definition{
			{Name: "a", Model: "nowhere/m", Tools: []string{"missing", "mcp:gone"}},
			{Name: "Bad Name", Model: "script"},
			{Name: "b", Model: "script", Limits: agent.Limits{Turns: -1}},
			{Name: "c", Model: "script", Limits: agent.Limits{CostUSD: agent.Dollar}},
			{Name: "d", Model: "script"}, {Name: "d", Model: "script"},
			{Name: "e", Model: "script", Profile: "poet"},
			{Name: "f", Model: "script", ClientTools: []agent.ToolSpec{{Name: "subagent_wait"}}, Agents: []agent.SubAgent{{Agent: "g"}}},
			{Name: "g", Model: "script", ClientTools: []agent.ToolSpec{{Name: "subagent_wait"}}},
		},
		Tools:  []tool.Tool{echo("twice"), echo("twice"), echo("no good"), echo("finish"), echo("subagent_list")},
		Models: map[string]model.Model{"script": testsuite.NewScript()},
	})
	require.Error(t, err)
	for _, says := range []string{
		"worker.Options.Store is missing", `agent a: model "nowhere/m" is not in this worker's build; it has script`, `tool "missing" is not known`,
		`there is no MCP server "gone"`, `agent "Bad Name"`, "limits.turns: -1", "the price of script is not known", `agent "d" is there twice`,
		"profile must be one of tool_using, researcher, verifier, completer", `tool "twice" is there twice`, `tool "no good"`, `tool "finish": the name is the runtime's own`, `tool "subagent_list": the name is the runtime's own`, `agent f: client_tools[0]: the name "subagent_wait" is the runtime's own`,
	} {
		require.Contains(t, err.Error(), says)
	}
	require.Equal(t, 14, len(strings.Split(err.Error(), "\n")), err.Error())
	_, err = worker.New(nil, nil)
	require.ErrorIs(t, err, agent.CodeNotSetUp)
	require.ErrorIs(t, err, agent.CodeInvalidInput)
}

// A rule for a tool that nobody has is refused: the tool that was meant would be called
// without leave. Patterns, client tools and tools of agents below may be meant.
func TestRulesNameTools(t *testing.T) {
	o := func(tools ...string) *worker.Options {
		dir, err := store.OpenDir(t.TempDir(), nil)
		require.NoError(t, err)
		return &worker.Options{
			Store: dir, Models: map[string]model.Model{"script": testsuite.NewScript()}, Tools: []tool.Tool{echo("order")},
			Agents: []agent.Definition{{
				Name: "buyer", Model: "script", Rules: []agent.Rule{{Do: agent.RulingAsk, Tools: tools}}, ClientTools: []agent.ToolSpec{{Name: "sign"}},
				Agents: []agent.SubAgent{{Agent: "clerk", Tools: []string{"*"}}},
			}, {Name: "clerk", Model: "script", Tools: []string{"order"}}},
		}
	}
	_, err := worker.New(nil, o("ordr"))
	require.ErrorIs(t, err, agent.CodeUnknownTool)
	require.ErrorContains(t, err, `agent buyer: rules[0]: there is no tool "ordr"; the worker has order`)
	_, err = o("order", "ord*", "sign", "subagent__clerk", agent.MemoryTool).Resolve()
	require.NoError(t, err)
	for _, name := range []string{agent.AskUserTool, agent.NotebookTool, agent.FinishTool, agent.ReportProgressTool} {
		_, err = o(name).Resolve()
		require.ErrorContains(t, err, "nobody is asked about "+name+", which the run carries out itself")
	}
}

// A stateless agent can't run below another one, or check its answer: the session above would keep what it
// says (OA-112).
func TestAStatelessAgentRunsAlone(t *testing.T) {
	dir, err := store.OpenDir(t.TempDir(), nil)
	require.NoError(t, err)
	for _, lead := range []agent.Definition{
		{Agents: []agent.SubAgent{{Agent: "sorter"}}}, {Verify: agent.Verify{Checks: []agent.Check{{Name: "k", Agent: "sorter", Task: "Look."}}}},
	} {
		lead.Name, lead.Model = "lead", "script"
		_, err := (&worker.Options{
			Store: dir, Models: map[string]model.Model{"script": testsuite.NewScript()}, Agents: []agent.Definition{lead, {Name: "sorter", Model: "script", Stateless: true}},
		}).Resolve()
		require.ErrorContains(t, err, "sorter is stateless, and can't run below another agent")
	}
}

// An agent below keeps a client tool if its parent has a tool or a client tool of that name, or hands it on
// by its entry. Otherwise it would lose it, and the worker refuses to start.
func TestClientToolsAreHandedOn(t *testing.T) {
	dir, err := store.OpenDir(t.TempDir(), nil)
	require.NoError(t, err)
	for entry, lacks := range map[string]string{"": "sign", "*": ""} {
		sub := agent.SubAgent{Agent: "clerk"}
		if entry != "" {
			sub.Tools = []string{entry}
		}
		_, err := (&worker.Options{
			Store: dir, Models: map[string]model.Model{"script": testsuite.NewScript()}, Tools: []tool.Tool{echo("order")},
			Agents: []agent.Definition{
				{Name: "buyer", Model: "script", Tools: []string{"order"}, ClientTools: []agent.ToolSpec{{Name: "pay"}}, Agents: []agent.SubAgent{sub}},
				{Name: "clerk", Model: "script", ClientTools: []agent.ToolSpec{{Name: "order"}, {Name: "pay"}, {Name: "sign"}}},
			},
		}).Resolve()
		if lacks == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, "clerk has tools that buyer has not ("+lacks+")")
	}
}

// A model is found by its full name, or by its provider's.
func TestModelsAreFound(t *testing.T) {
	one, other := testsuite.NewScript(), testsuite.NewScript()
	dir, err := store.OpenDir(t.TempDir(), nil)
	require.NoError(t, err)
	o := &worker.Options{
		Agents: []agent.Definition{{Name: "a", Model: "acme/big"}, {Name: "b", Model: "acme/small"}, {Name: "c", Model: "local"}},
		Models: map[string]model.Model{"acme": one, "acme/small": other, "local": model.WithInfo(other, "qwen3", model.Info{Price: agent.Price{Input: 3}})},
		Store:  dir,
	}
	d, err := o.Resolve()
	require.NoError(t, err)
	for full, name := range map[string]string{"acme/big": "big", "acme/small": "acme/small", "acme/older": "older"} {
		m, err := d.Model(full)
		require.NoError(t, err, "a run may be older than the build, and have a model that no agent names any more")
		require.Equal(t, name, m.Name)
	}
	require.Equal(t, agent.USD(3), d.Agents["c"].Spec.Price.Input)
	require.Equal(t, 50, d.Agents["a"].Spec.Limits.OwnTurns, "every default is filled in when a run records it")
}

func TestLoopback(t *testing.T) {
	for addr, want := range map[string]bool{
		"127.0.0.1:7233": true, "[::1]:7233": true, "127.8.8.8:1": true, "@": true, "/run/temporal.sock": true,
		"10.0.0.5:7233": false, "[2001:db8::1]:7233": false, "0.0.0.0:7233": false,
	} {
		require.Equal(t, want, worker.Loopback(addr), addr)
	}
}

// Two migrations of one pair of versions are refused, and what is none: nobody could tell
// which is meant.
func TestMigrationsThatCannotBe(t *testing.T) {
	same := func(state map[string]json.RawMessage) (map[string]json.RawMessage, error) { return state, nil }
	for want, list := range map[string][]activities.Migration{
		"migrations[1]: there are two from version 1 to 2": {{From: 1, To: 2, Migrate: same}, {From: 1, To: 2, Migrate: same}},
		"migrations[0]: it leads from version 3 to itself": {{From: 3, To: 3, Migrate: same}},
		"migrations[0]: Migrate is missing":                {{From: 1, To: 2}},
	} {
		_, err := worker.New(nil, &worker.Options{Migrations: list})
		require.ErrorIs(t, err, agent.CodeInvalidInput)
		require.ErrorContains(t, err, want)
	}
	_, err := worker.New(nil, &worker.Options{Migrations: []activities.Migration{{From: 1, To: 2, Migrate: same}, {From: 2, To: 1, Migrate: same}, {From: 2, To: 3, Migrate: same}}})
	require.NotContains(t, err.Error(), "migrations", "a way back, and a longer chain, can be meant")
}
