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
