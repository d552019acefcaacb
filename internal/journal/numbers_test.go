package journal_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/journal"
	"github.com/fermata-agents/fermata/internal/remembered"
)

// The numbers that a log has used are read from it; those that are known already are
// kept where they are higher, and a hold of a run above is another session's.
func TestNumbersThatALogHasUsed(t *testing.T) {
	b := &book{}
	b.run("r", nil, "go")
	b.add(agent.Event{Type: agent.EventRequestOpened, Request: &agent.Request{ID: "q-12", Suspension: "s-9"}})
	b.add(agent.Event{Type: agent.EventRunSuspended, Suspension: &agent.Suspension{ID: "s-8"}})
	b.add(agent.Event{Type: agent.EventHoldAdded, Hold: &agent.Hold{ID: "h-3", From: agent.HoldOwn}})
	b.add(agent.Event{Type: agent.EventHoldAdded, Hold: &agent.Hold{ID: "h-40", From: agent.HoldInherited}})
	b.add(agent.Event{Type: agent.EventChildStarted, Child: &agent.ChildUpdate{Session: "a/look-out-5"}})
	b.add(agent.Event{Type: agent.EventChildEnded, Child: &agent.ChildUpdate{Session: "a/look-out-4"}})
	require.Equal(t, remembered.Counters{Suspension: 9, Request: 12, Hold: 3, Child: 5}, journal.Counters(remembered.Counters{}, b.events))
	known := remembered.Counters{Suspension: 1, Request: 20, Hold: 3, Child: 6}
	require.Equal(t, remembered.Counters{Suspension: 9, Request: 20, Hold: 3, Child: 6}, journal.Counters(known, b.events))
}
