package journal_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/journal"
)

// A run that continues with one of another cluster is in the middle of that one's
// turn: its calls are found, its counters continue, and nothing is begun there anew.
func TestAnImportedRunGoesOnInATurn(t *testing.T) {
	b := &book{}
	b.run("there", nil, "go")
	b.calls("pay", agent.CallOK, nil)
	b.begin()
	call := &agent.ToolCall{ID: "t2.1", Tool: "pay"}
	b.add(agent.Event{Type: agent.EventMessage, Message: &agent.Message{Role: agent.RoleAssistant, Parts: []agent.Part{{Type: agent.PartToolCall, Call: call}}}})
	at := b.add(agent.Event{Type: agent.EventRunStarted, Started: &agent.Started{Run: "here", Spec: spec, Imported: &agent.Imported{Export: "e", Run: "there"}}})
	b.add(agent.Event{Type: agent.EventCallDone, Call: &agent.CallUpdate{Call: "t2.1", Tool: "pay", Status: agent.CallOK}})
	b.end(nil)
	b.begin()
	b.end(nil)

	v := b.view()
	got, ok := v.Call("t2.1")
	require.True(t, ok)
	require.Equal(t, *call, got)
	points := journal.Checkpoints(v, "s")
	var runs []string
	for i, p := range points {
		runs = append(runs, p.Run)
		require.True(t, i == 0 || p.Usage.Total() > points[i-1].Usage.Total(), "%+v", p)
	}
	require.Equal(t, []string{"there", "there", "here", "here"}, runs)
	_, err := journal.Find(v, "s", agent.CheckpointID("s", at-1))
	require.ErrorIs(t, err, agent.CodeNotFound, "a call is open there")
	list := journal.Runs(v.Events())
	require.Len(t, list, 2)
	require.Equal(t, []any{agent.StatusCancelled, agent.ReasonExported, list[1].Started}, []any{list[0].Status, list[0].Reason, list[0].Ended}, "as where it was exported")
	require.Equal(t, agent.StatusRunning, list[1].Status)
	require.Equal(t, []int{2, 3}, []int{list[0].Turns, list[1].Turns}, "it goes on with the turns of the first")
}
