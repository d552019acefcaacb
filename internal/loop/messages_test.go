package loop

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/remembered"
)

// A message that steers is for the next turn, one that is queued for the end of the work;
// the order stays.
func TestMessagesAreTakenInTheirTime(t *testing.T) {
	m := Messages{}
	say := func(id string, mode agent.SendMode) {
		m.add(PendingMessage{Message: agent.Message{ID: id}, Mode: mode, Size: 10})
	}
	ids := func(list []PendingMessage) (ids string) {
		for _, p := range list {
			ids += p.Message.ID
		}
		return ids
	}
	say("a", agent.SendQueue)
	say("b", agent.SendSteer)
	say("c", agent.SendQueue)
	require.Equal(t, "b", ids(m.take(false)))
	require.Equal(t, 20, m.PendingSize)
	m.addFirst(PendingMessage{Message: agent.Message{ID: "d"}, Mode: agent.SendSteer, Size: 10})
	require.Equal(t, "dac", ids(m.take(true)))
	require.Zero(t, m.PendingSize)
}

// A session knows its last messages by their ids, and events that wait.
func TestMessagesAreKnownByTheirID(t *testing.T) {
	m := Messages{}
	for _, id := range []string{"", "a", "b", "c"} {
		m.addReceipt(remembered.Receipt{ID: id, Run: "r1"}, 2)
	}
	m.queue(agent.EmitCommand{CommandHeader: agent.CommandHeader{ID: "e"}})
	for id, run := range map[string]string{"": "", "a": "", "b": "r1", "c": "r1", "e": "r2"} {
		p, _ := m.receipt(id, "r2")
		require.Equal(t, run, p.Run, id)
	}
	m.takeEvent(0)
	_, ok := m.receipt("e", "r2")
	require.False(t, ok)
	require.Zero(t, m.EmittedSize)
}
