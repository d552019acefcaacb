package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite"
)

// A transcript ends with the reminders with which each request ends: the agent's own, and those of the
// agents above with their names. An agent without reminders has none (HA-110).
func TestATranscriptShowsReminders(t *testing.T) {
	s := scripted(t,
		role{agent.Definition{Name: "lead", Agents: []agent.SubAgent{{Agent: "clerk"}}, Reminders: []agent.Reminder{{Text: "Never push.", Propagate: agent.PropagateAll}, {Text: "Be quick."}}}, []testsuite.Reply{
			{Calls: []testsuite.Call{{Tool: "subagent__clerk", Arguments: map[string]any{"task": "look"}}}}, {Text: "Looked."},
		}},
		role{agent.Definition{Name: "clerk", Reminders: []agent.Reminder{{Text: "Say\nwhy."}}}, []testsuite.Reply{{Text: "It is there."}}},
		role{agent.Definition{Name: "plain"}, []testsuite.Reply{{Text: "Told."}}},
	).works()
	id, other := s.session("a"), s.session("b")
	require.Zero(t, s.run("run", "lead", "go", "--session", id).exit)
	require.Zero(t, s.run("run", "plain", "go", "--session", other).exit)
	const begins = "== runtime (reminders)\n│ Reminders, which hold for all of your work:\n"
	require.True(t, strings.HasSuffix(s.run("transcript", id).out, "│ Looked.\n\n"+begins+"│ - Never push.\n│ - Be quick.\n"))
	require.True(t, strings.HasSuffix(s.run("transcript", id+"/clerk-1").out, begins+"│ - Never push. (from the agent lead)\n│ - Say why.\n"))
	require.Equal(t, agent.NoteReminders, lastLine[agent.Message](t, s.run("transcript", id, "--json").out).Note)
	require.NotContains(t, s.run("transcript", other).out, "reminders")
}
