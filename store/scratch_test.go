package store

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// A new run finds only the keys that persist, and the runtime's own (OA-88).
func TestScratchStateIsDropped(t *testing.T) {
	spec := &agent.Spec{}
	spec.PersistState = []string{"paid"}
	set := map[string]json.RawMessage{"paid": json.RawMessage("1"), "scratch": json.RawMessage("1"), agent.TodoKey: json.RawMessage("[]")}
	line := []agent.Event{
		{Seq: 1, Type: agent.EventRunStarted, Started: &agent.Started{Spec: spec}},
		{Seq: 2, Type: agent.EventTurnEnded, Snapshot: &agent.TurnSnapshot{StateChanges: set}},
	}
	require.Len(t, state(line), 3)
	next := append(line, agent.Event{Seq: 3, Type: agent.EventRunStarted, Started: &agent.Started{Spec: spec}})
	require.NotContains(t, state(next), "scratch")
	require.Len(t, state(next), 2)
	require.Len(t, state(append(line, agent.Event{Seq: 3, Type: agent.EventRunStarted, Started: &agent.Started{Spec: &agent.Spec{}}})), 3)
}
