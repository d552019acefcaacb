package connect

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
	"github.com/fermata-agents/fermata/live"
)

// A broker that can't be is told, and no password of it.
func TestWrongBroker(t *testing.T) {
	for _, place := range []string{"nats.acme.com", "kafka://nats.acme.com", "nats://a:hunter2@nats.acme.com,x", "nats://a:hunter2@:x"} {
		t.Setenv(env.Live, place)
		_, err := (&Connector{}).Broker()
		require.ErrorIs(t, err, agent.CodeInvalidInput, place)
		require.NotContains(t, err.Error(), "hunter2")
	}
}

// Nobody waits for a broker that is away: what is live may be lost.
func TestABrokerThatIsAwayHoldsNothingUp(t *testing.T) {
	t.Setenv(env.Live, "nats://127.0.0.1:1")
	c := &Connector{Notify: func(string, ...any) {}}
	b, err := c.Broker()
	require.NoError(t, err)
	again, err := c.Broker()
	require.NoError(t, err)
	require.Same(t, b, again, "an invocation has one connection")
	b.Publish(live.Event{V: 1, Type: agent.EventDeltaText, Session: "s"})
	s, err := c.Subscribe(t.Context(), &Server{}, live.NewHub(), "s")
	require.NoError(t, err)
	s.Close()
	c.Close()
}
