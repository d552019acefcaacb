package e2e

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	broker "github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/keyring"
	"github.com/fermata-agents/fermata/live/nats"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/worker"
)

// over is one end of live events, on a connection of its own.
func over(t *testing.T, at string, keys *keyring.Ring) *nats.Live {
	t.Helper()
	conn, err := broker.Connect(at)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	l := nats.New(conn, &nats.Options{Keys: keys})
	t.Cleanup(l.Close)
	return l
}

// What a worker's model says reaches, encrypted, who is connected to the broker and to
// nothing else.
func TestPiecesOverABroker(t *testing.T) {
	t.Parallel()
	const words = "It was a dark and stormy night and the rain fell in torrents."
	at, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, NoSigs: true, NoLog: true})
	require.NoError(t, err)
	at.Start()
	t.Cleanup(at.Shutdown)
	require.True(t, at.ReadyForConnections(patience))
	key, err := keyring.New("k1")
	require.NoError(t, err)
	keys, err := keyring.Parse(key)
	require.NoError(t, err)

	s := on(t, shared(t))
	w, err := worker.New(s.temporal, &worker.Options{
		TaskQueue: s.queue, Agents: []agent.Definition{{Name: "tester", Model: "script"}}, Store: s.store, Logger: zap.NewNop(), Temporal: stopsSoon,
		Models: map[string]model.Model{"script": testsuite.NewScript(testsuite.Reply{Text: words, Stream: time.Millisecond})}, Live: over(t, at.ClientURL(), keys),
	})
	require.NoError(t, err)
	require.NoError(t, w.Start(t.Context()))
	t.Cleanup(w.Stop)

	session := "over." + s.queue
	pieces, err := over(t, at.ClientURL(), keys).Subscribe(t.Context(), session)
	require.NoError(t, err)
	t.Cleanup(pieces.Close)
	_, err = s.Start(t.Context(), "tester", "go", &client.StartOptions{Session: session})
	require.NoError(t, err)
	heard := ""
	require.Eventually(t, func() bool {
		for _, e := range pieces.Take() {
			require.Equal(t, session, e.Session)
			heard += e.Data.Text
		}
		return heard == words
	}, patience, 10*time.Millisecond)
}
