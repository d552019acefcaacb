package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/testsuite"
)

// A real server answers a second update of one update id with the first outcome. What is
// something else under a known id reaches the run all the same, and is refused (HA-95).
func TestAnotherVerbUnderAKnownID(t *testing.T) {
	asks := agent.Definition{Rules: []agent.Rule{{Do: agent.RulingAsk, Tools: []string{"echo"}}}}
	s := setup(t, asks, testsuite.NewScript(
		testsuite.Reply{Calls: append(call("echo", map[string]any{"text": "one"}), call("echo", map[string]any{"text": "two"})...)}, testsuite.Reply{Text: "done"}), echo(nil))
	run := s.begin(t, "go", nil)
	require.Len(t, s.suspended(t, run).Requests, 2)
	approve := agent.ApproveCommand{CommandHeader: agent.CommandHeader{ID: "v-1"}, Request: "q-1"}
	first, err := signals.Update(t.Context(), s.temporal, run.Session, approve)
	require.NoError(t, err)
	_, err = signals.Update(t.Context(), s.temporal, run.Session, agent.RejectCommand{CommandHeader: agent.CommandHeader{ID: "v-1"}, Request: "q-2", Reason: "no"})
	require.ErrorIs(t, err, agent.CodeInvalidInput)
	again, err := signals.Update(t.Context(), s.temporal, run.Session, approve)
	require.NoError(t, err)
	require.Equal(t, first, again)
	require.Len(t, s.suspended(t, run).Requests, 1, "q-2 is still open")
}
