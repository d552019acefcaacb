package nats

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/live"
)

func piece(session, text string) live.Event {
	return live.Event{Type: agent.EventDeltaText, Session: session, Run: "01a1", Turn: 1, Data: live.Data{Text: text}}
}

// What is dropped is told in its place: behind what its session has said, and before
// what it says next.
func TestAFullQueueTellsWhatItDropped(t *testing.T) {
	q := newQueue()
	for range maxEvents {
		q.put(piece("a", "x"))
	}
	for range 3 {
		q.put(piece("a", "x"))
	}
	q.put(piece("b", "x"))
	list, open := q.take()
	require.True(t, open)
	require.Len(t, list, maxEvents+2)
	lost := map[string]int{}
	for _, e := range list[maxEvents:] {
		require.Equal(t, agent.EventDeltaDropped, e.Type)
		require.Equal(t, "01a1", e.Run)
		lost[e.Session] = e.Data.Dropped
	}
	require.Equal(t, map[string]int{"a": 3, "b": 1}, lost)

	q.drop(list[0])
	q.drop(live.Event{Type: agent.EventDeltaDropped, Session: "a", Data: live.Data{Dropped: 3}}) // that could not be sent
	q.put(piece("a", "next"))
	told, _ := q.take()
	require.Len(t, told, 2)
	require.Equal(t, 4, told[0].Data.Dropped)
	require.Equal(t, "next", told[1].Data.Text)
}

func TestAQueueIsBoundedInBytes(t *testing.T) {
	q := newQueue()
	for range 10 {
		q.put(piece("a", strings.Repeat("x", maxBytes/4)))
	}
	list, _ := q.take()
	require.Len(t, list, 4+1)
	require.Equal(t, 6, list[4].Data.Dropped)
	q.put(piece("a", "x"))
	q.close()
	list, open := q.take()
	require.False(t, open)
	require.Len(t, list, 1)
}
