package loop

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// A parked run waits for the earliest of its times and for events that fit; what came
// first ends it.
func TestWhatAParkWaitsFor(t *testing.T) {
	at := time.Unix(100, 0)
	p := &Park{Conditions: agent.Conditions{Any: []agent.Condition{
		{At: at.Add(time.Hour)}, {At: at}, {Event: &agent.EventCondition{Topic: "paid", Match: json.RawMessage(`{"required":["order"]}`)}},
	}}}
	require.Equal(t, at, p.due())
	for payload, waits := range map[string]bool{`{"order":1}`: true, `{}`: false} {
		require.Equal(t, waits, p.waitsFor(agent.EmitOrder{Topic: "paid", Payload: json.RawMessage(payload)}), payload)
	}
	require.False(t, p.waitsFor(agent.EmitOrder{Topic: "other", Payload: json.RawMessage(`{"order":1}`)}))
	require.Equal(t, agent.OwnedByRuntime, p.reasons().owner())
	met := metBy(agent.EmitOrder{Topic: "paid"})
	p.Met = &met
	require.Zero(t, p.due())
	require.False(t, p.waitsFor(agent.EmitOrder{Topic: "paid", Payload: json.RawMessage(`{"order":2}`)}))

	var none *Park
	require.Zero(t, none.due())
	require.Empty(t, none.reasons())
	require.Equal(t, agent.OwnedByOperator, (&Park{}).reasons().owner(), "only somebody's resume ends it")
}

// Whoever emits learns whether the run waits for another topic or for another payload.
func TestWhyAnEventIsNotTaken(t *testing.T) {
	p := played(t, `begin go`, `opened {"tools":["await_resumption"]}`, `calls await_resumption {"reason":"not paid","conditions":{"event":{"topic":"paid","match":{"type":"object"}}}}`, `sealed`)
	for _, c := range []struct{ event, path, says string }{
		{`{"topic":"paid","payload":"118"}`, "payload", "with another payload"},
		{`{"topic":"lost"}`, "topic", "does not wait for topic lost; it waits for paid"},
	} {
		p.line("emit " + c.event)
		require.ErrorIs(t, p.wrong, agent.Stale)
		require.ErrorContains(t, p.wrong, c.says)
		require.Equal(t, c.path, asError(p.wrong).Path)
	}
	p.lines("pause {}", `emit {"topic":"paid","payload":{}}`)
	p.line(`emit {"topic":"paid","payload":{}}`)
	require.ErrorContains(t, p.wrong, "has come already")
}
