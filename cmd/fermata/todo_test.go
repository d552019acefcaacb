package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite"
)

// A model's list of steps lasts over a suspension and over the runs of a session. People see
// it, and the next run's model gets it.
func TestTheListOfSteps(t *testing.T) {
	items := func(second string) map[string]any {
		return map[string]any{"items": []map[string]any{{"text": "book the train", "state": "done"}, {"text": "book → the hotel", "state": second}}}
	}
	call := func(tool string, arguments map[string]any) testsuite.Reply {
		return testsuite.Reply{Calls: []testsuite.Call{{Tool: tool, Arguments: arguments}}}
	}
	s := scripted(t, role{
		Definition: agent.Definition{Name: "planner", Tools: []string{agent.TodoTool, agent.AskUserTool}, Default: agent.RulingAllow},
		says: []testsuite.Reply{
			call(agent.TodoTool, items("in_progress")), call(agent.AskUserTool, map[string]any{"question": "Which hotel?"}), {Text: "Booked."},
			call(agent.TodoTool, map[string]any{}), {Text: "One step is left."},
		},
	}).works()
	session := s.session("trip")
	require.Equal(t, 3, s.run("run", "planner", "Plan it", "--session", session).exit)
	shown := s.run("show", session, "--todo")
	require.Zero(t, shown.exit, shown.err)
	require.Contains(t, shown.out, "in_progress  book")
	require.Contains(t, shown.out, "done         book the train")

	require.Zero(t, s.run("answer", session, "the cheap one", "--request", "q-1", "--wait").exit)
	again := s.run("run", "planner", "What is left?", "--session", session)
	require.Zero(t, again.exit, again.err)
	require.Contains(t, again.out, "One step is left.")
	require.Equal(t, 2, strings.Count(s.run("transcript", session).out, "1 of 2 done"), "the second run's model gets the list")
	lines := strings.Split(strings.TrimSpace(s.run("show", session, "--todo", "--json").out), "\n")
	require.Len(t, lines, 2)
	var line todoLine
	require.NoError(t, json.Unmarshal([]byte(lines[1]), &line))
	require.Equal(t, todoLine{V: agent.Version, Type: "todo", TodoItem: agent.TodoItem{Text: "book → the hotel", State: agent.TodoInProgress}}, line)

	none := s.run("show", s.session("nobody"), "--todo")
	require.Equal(t, agent.CodeNotFound.ExitStatus(), none.exit)
}
