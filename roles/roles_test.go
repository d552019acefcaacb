package roles_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/roles"
)

func filled(t *testing.T, def agent.Definition, thinks bool) agent.Definition {
	t.Helper()
	def.Name, def.Model = "a", "p/m"
	got, err := roles.Fill(def, thinks)
	require.NoError(t, err)
	require.NoError(t, got.WithDefaults().Check())
	return got
}

// HA-123, HA-124, HA-126: each role is plain options, with the numbers of its kind.
func TestEachRoleIsPlainOptions(t *testing.T) {
	const natural, tool = agent.Completion(""), agent.CompletionTool
	for _, want := range []struct {
		role           string
		turns, nudges  int
		completion     agent.Completion
		effort         agent.Reasoning
		deny, ask      bool // whether a rule of the role refuses or asks
		classWritesToo bool // whether that rule is about every tool that changes something
	}{
		{"auditor", 12, 1, natural, "medium", true, false, true},
		{"implementer", 60, 4, tool, "medium", false, false, false},
		{"merger", 60, 3, tool, "medium", true, false, true},
		{"on_call", 24, 3, tool, "low", false, true, true},
		{"releaser", 40, 3, tool, "low", false, true, true},
		{"repairer", 16, 2, tool, "medium", false, false, false},
		{"researcher", 30, 4, natural, "medium", true, false, false},
		{"reviewer", 30, 3, natural, "medium", true, false, false},
		{"summarizer", 1, 0, natural, "off", false, false, false},
		{"verifier", 12, 1, natural, "medium", true, false, false},
	} {
		t.Run(want.role, func(t *testing.T) {
			require.Contains(t, roles.Names(), want.role)
			def := filled(t, agent.Definition{Role: want.role, Tools: []string{"fs_write"}}, true).WithDefaults()
			require.Equal(t, want.turns, def.Limits.OwnTurns)
			require.Equal(t, want.nudges, def.Nudges)
			require.Equal(t, want.effort, def.Reasoning)
			require.Equal(t, want.completion == tool, def.Completion == tool)
			require.NotEmpty(t, def.Instructions)
			require.NotEmpty(t, def.Description)
			for _, r := range def.Rules {
				require.Equal(t, want.deny, r.Do == agent.RulingDeny)
				require.Equal(t, want.ask, r.Do == agent.RulingAsk)
				require.Equal(t, want.classWritesToo, r.Class == "writes")
				require.NotEmpty(t, r.Reason)
			}
			require.Equal(t, want.deny || want.ask, len(def.Rules) > 0)
		})
	}
	require.Len(t, roles.Names(), 10, "the table lacks a role")
}

// HA-123: the author's keys win.
func TestTheAuthorsKeysWin(t *testing.T) {
	mine := agent.Definition{
		Role: "merger", Instructions: "Mine.", Description: "Mine too.", Nudges: 9, Completion: agent.CompletionNatural, Profile: agent.ProfileCompleter,
		Reasoning: agent.ReasoningMax, Limits: agent.Limits{OwnTurns: 3}, Rules: []agent.Rule{{Do: agent.RulingAsk}}, Lifecycle: true,
	}
	got := filled(t, mine, true)
	mine.Name, mine.Model = "a", "p/m"
	require.Equal(t, mine, got)

	// One limit of the author's leaves the role's others.
	got = filled(t, agent.Definition{Role: "reviewer", Limits: agent.Limits{Tokens: 7}}, true)
	require.Equal(t, agent.Limits{Tokens: 7, OwnTurns: 30}, got.Limits)
	// A bound for the whole tree replaces that of the run's own turns.
	got = filled(t, agent.Definition{Role: "reviewer", Limits: agent.Limits{Turns: 7}}, true)
	require.Equal(t, agent.Limits{Turns: 7}, got.Limits)

	// A rule about a tool that the agent lacks would be refused as a slip.
	require.Empty(t, got.Rules)
	require.Len(t, filled(t, agent.Definition{Role: "reviewer", Tools: []string{"fs_read", "fs_write"}}, true).Rules, 1)

	again, err := roles.Fill(got, true)
	require.NoError(t, err)
	require.Equal(t, got, again)
}

// HA-151: a role chooses an effort only if the author has not, and if the model can think.
func TestARoleChoosesTheEffort(t *testing.T) {
	for _, c := range []struct {
		role   string
		own    agent.Reasoning
		thinks bool
		want   agent.Reasoning
	}{
		{"reviewer", "", true, "medium"},
		{"on_call", "", true, "low"},
		{"summarizer", "", true, "off"},
		{"reviewer", "", false, ""},
		{"summarizer", "", false, ""},
		{"reviewer", "max", true, "max"},
		{"reviewer", "max", false, "max"},
		{"summarizer", "auto", true, "auto"},
	} {
		require.Equal(t, c.want, filled(t, agent.Definition{Role: c.role, Reasoning: c.own}, c.thinks).Reasoning, "%+v", c)
	}
}

func TestAnUnknownRole(t *testing.T) {
	_, err := roles.Fill(agent.Definition{Name: "a", Role: "reviwer"}, true)
	require.ErrorIs(t, err, agent.CodeInvalidInput)
	require.ErrorContains(t, err, "reviewer")
	require.Empty(t, roles.Text("../data/reviewer"))
	_, ok := roles.Get("none")
	require.False(t, ok)
	same, err := roles.Fill(agent.Definition{Name: "a"}, true)
	require.NoError(t, err)
	require.Equal(t, agent.Definition{Name: "a"}, same)
}
