package worker_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/skill"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// served is a skill of an MCP server.
func served(t *testing.T, server, name string) *skill.Skill {
	t.Helper()
	uri, body := "skill://"+name+"/SKILL.md", "---\nname: "+name+"\ndescription: x\n---\nServed.\n"
	s, err := skill.FromServer(skill.Entry{
		Server: server, URI: uri, Frontmatter: json.RawMessage(`{"name":"` + name + `","description":"x"}`),
		Files: []skill.EntryFile{{URI: uri, Digest: fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(body))), Size: int64(len(body))}},
		Read:  func(context.Context, string) ([]byte, error) { return []byte(body), nil },
	})
	require.NoError(t, err)
	return s
}

// A skill of a server is named with its server. It is not among "*", it hides no other skill, and
// no command runs unasked beside it.
func TestSkillsOfServers(t *testing.T) {
	shell := func(context.Context, *tool.Call, struct{}) (string, error) { return "", nil }
	kept, err := store.OpenDir(t.TempDir(), nil)
	require.NoError(t, err)
	components := func(o worker.Options, skills ...string) error {
		o.Models = map[string]model.Model{"script": testsuite.NewScript()}
		if o.Agents == nil {
			o.Agents = []agent.Definition{{}}
		}
		o.Agents[0].Name, o.Agents[0].Model, o.Agents[0].Skills = "a", "script", skills
		o.Store = kept
		_, err := o.Components()
		return err
	}
	all := append(two(t), served(t, "desk", "refunds"), served(t, "desk", "visits"), served(t, "bank", "payments"))
	for _, c := range []struct{ name, want []string }{
		{[]string{"*"}, []string{"pdf", "ship"}},
		{[]string{"mcp:desk"}, []string{"refunds", "visits"}},
		{[]string{"pdf", "mcp:desk/visits", "mcp:bank"}, []string{"pdf", "visits", "payments"}},
		{[]string{"mcp:desk/skill://refunds/SKILL.md", "mcp:desk"}, []string{"refunds", "visits"}},
	} {
		script := testsuite.NewScript(testsuite.Reply{Text: "done"})
		o := &worker.Options{Skills: all, Agents: []agent.Definition{{Name: "a", Model: "script", Skills: c.name}}, Models: map[string]model.Model{"script": script}}
		testsuite.New(t, &testsuite.Options{Worker: o}).Start("a", "begin", nil).Completed()
		var got []string
		for _, line := range regexp.MustCompile(`(?m)^> ([a-z]+)`).FindAllStringSubmatch(script.Requests()[0].Instructions, -1) {
			got = append(got, line[1])
		}
		require.Equal(t, c.want, got)
	}
	for want, name := range map[string]string{
		`skill "refunds" is the MCP server desk's: name it mcp:desk/refunds`:            "refunds",
		`skill "mcp:gone": the worker has no such skill of the MCP server gone`:         "mcp:gone",
		`skill "mcp:bank/refunds": the worker has no such skill of the MCP server bank`: "mcp:bank/refunds",
		`"mcp:desk/" names no MCP server`:                                               "mcp:desk/",
		`"mcp:../desk" names no MCP server`:                                             "mcp:../desk",
		`"Refunds" is no name of a skill`:                                               "mcp:desk/Refunds",
	} {
		err := components(worker.Options{Skills: all}, name)
		require.ErrorContains(t, err, want)
	}
	err = components(worker.Options{Skills: append(all, served(t, "bank", "pdf"))}, "*")
	require.ErrorContains(t, err, `skill "pdf" is there twice: of a directory, and of the MCP server bank`)

	o := worker.Options{Skills: all, Tools: []tool.Tool{tool.New(agent.ShellTool, "runs", shell, nil)}}
	with := func(d agent.Definition) worker.Options {
		d.Tools = []string{agent.ShellTool}
		o.Agents = []agent.Definition{d}
		return o
	}
	err = components(with(agent.Definition{}), "mcp:desk")
	require.ErrorIs(t, err, agent.CodeDenied)
	require.ErrorContains(t, err, "agent a has skills of the MCP server desk, and its shell_run, or that of an agent below it, asks nobody")
	below := with(agent.Definition{Agents: []agent.SubAgent{{Agent: "b", Tools: []string{"shell_*"}}}})
	below.Agents[0].Tools = nil
	below.Agents = append(below.Agents, agent.Definition{Name: "b", Model: "script", Tools: []string{agent.ShellTool}})
	require.ErrorIs(t, components(below, "mcp:desk"), agent.CodeDenied)
	require.NoError(t, components(below, "*"))
	err = components(with(agent.Definition{Rules: []agent.Rule{{Do: agent.RulingAsk, Tools: []string{agent.ShellTool}, AfterCalls: 3}}}), "mcp:desk")
	require.ErrorIs(t, err, agent.CodeDenied)
	for _, d := range []agent.Definition{{Rules: []agent.Rule{{Do: agent.RulingAsk, Tools: []string{"shell_*"}}}}, {Default: agent.RulingAsk}} {
		err = components(with(d), "mcp:desk")
		require.NoError(t, err)
	}
	err = components(with(agent.Definition{}), "*")
	require.NoError(t, err)
	o.Approvals = map[string]agent.ToolApproval{"shell_*": {}}
	err = components(with(agent.Definition{}), "mcp:desk")
	require.NoError(t, err)
}

// beside returns what a worker says of its agents. The first agent has the skills of an MCP server.
func beside(t *testing.T, o worker.Options) error {
	t.Helper()
	kept, err := store.OpenDir(t.TempDir(), nil)
	require.NoError(t, err)
	o.Skills, o.Models, o.Store = append(two(t), served(t, "desk", "refunds")), map[string]model.Model{"script": testsuite.NewScript()}, kept
	for i := range o.Agents {
		o.Agents[i].Model = "script"
	}
	o.Agents[0].Name, o.Agents[0].Skills = "a", []string{"mcp:desk"}
	_, err = o.Components()
	return err
}

func runs(name string) tool.Tool {
	return tool.New(name, "runs", func(context.Context, *tool.Call, struct{}) (string, error) { return "", nil }, nil)
}

// The worker does not start if the words of a server could run a command that no person has seen: a
// deadline approves it, or an agent runs it that checks the first one's work.
func TestCommandsBesideAServersSkill(t *testing.T) {
	lapses := agent.AnswerTimeouts{Deadline: agent.Duration(time.Second), Default: agent.DefaultApprove}
	asks := agent.Rule{Do: agent.RulingAsk, Tools: []string{agent.ShellTool}, AnswerTimeouts: lapses}
	shell := []string{agent.ShellTool}
	for name, o := range map[string]worker.Options{
		"a rule whose deadline approves":      {Agents: []agent.Definition{{Tools: shell, Rules: []agent.Rule{asks}}}},
		"an approval whose deadline approves": {Agents: []agent.Definition{{Tools: shell}}, Approvals: map[string]agent.ToolApproval{agent.ShellTool: {AnswerTimeouts: lapses}}},
		"an agent that checks": {Agents: []agent.Definition{
			{Verify: agent.Verify{Checks: []agent.Check{{Name: "look", Agent: "b", Tools: []string{"*"}, Task: "Check it."}}}},
			{Name: "b", Tools: shell},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			o.Tools = []tool.Tool{runs(agent.ShellTool)}
			require.ErrorIs(t, beside(t, o), agent.CodeDenied)
		})
	}
}

// A sub-agent with all tools is no reason to refuse an agent where no command can run.
func TestNoCommandsBesideAServersSkill(t *testing.T) {
	agents := func(ceiling []string, tools ...string) []agent.Definition {
		return []agent.Definition{{Ceiling: ceiling, Agents: []agent.SubAgent{{Agent: "b", Tools: []string{"*"}}}}, {Name: "b", Tools: tools}}
	}
	require.NoError(t, beside(t, worker.Options{Tools: []tool.Tool{runs("note")}, Agents: agents(nil, "note")}))
	both := []tool.Tool{runs("note"), runs(agent.ShellTool)}
	require.NoError(t, beside(t, worker.Options{Tools: both, Agents: agents([]string{"note"}, "note", agent.ShellTool)}))
	require.ErrorIs(t, beside(t, worker.Options{Tools: both, Agents: agents(nil, "note", agent.ShellTool)}), agent.CodeDenied)
}
