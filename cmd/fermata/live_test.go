package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/live"
)

// A broker that can't be is told, and no password of it.
func TestWrongBroker(t *testing.T) {
	for _, place := range []string{"nats.acme.com", "kafka://nats.acme.com", "nats://a:hunter2@nats.acme.com,x", "nats://a:hunter2@:x"} {
		t.Setenv(liveVariable, place)
		_, err := newCLI(nil, nil, nil).broker()
		require.ErrorIs(t, err, agent.InvalidInput, place)
		require.NotContains(t, err.Error(), "hunter2")
	}
}

// Nobody waits for a broker that is away: what is live may be lost.
func TestABrokerThatIsAwayHoldsNothingUp(t *testing.T) {
	t.Setenv(liveVariable, "nats://127.0.0.1:1")
	c := newCLI(nil, nil, nil)
	b, err := c.broker()
	require.NoError(t, err)
	again, err := c.broker()
	require.NoError(t, err)
	require.Same(t, b, again, "an invocation has one connection")
	b.Publish(live.Event{V: 1, Type: agent.DeltaText, Session: "s"})
	s, err := c.hears(t.Context(), live.NewHub(), "s")
	require.NoError(t, err)
	s.Close()
	c.pieces.close()
}

func TestAWrongBucket(t *testing.T) {
	for place, why := range map[string]string{
		"s3://acme?what=ever": "unknown query parameter",
		"gs://acme":           "postgres://",
	} {
		r := inProcess(t, "store", "check", "--store", place)
		require.Equal(t, 2, r.exit, r.err)
		require.Contains(t, r.err, "[invalid_input]")
		require.Contains(t, r.err, why)
	}
}
