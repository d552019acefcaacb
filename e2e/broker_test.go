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
	"github.com/fermata-agents/fermata/internal/testenv"
	"github.com/fermata-agents/fermata/keyring"
	"github.com/fermata-agents/fermata/live/nats"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// natsServer is a broker in this process.
func natsServer(t *testing.T) *server.Server {
	t.Helper()
	at, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, NoSigs: true, NoLog: true})
	require.NoError(t, err)
	at.Start()
	t.Cleanup(at.Shutdown)
	require.True(t, at.ReadyForConnections(patience))
	return at
}

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
	at := natsServer(t)
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

// holdsOver is one end of what is said about holds, on a connection of its own.
func holdsOver(t *testing.T, at *server.Server) *nats.Holds {
	t.Helper()
	conn, err := broker.Connect(at.ClientURL())
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	return nats.NewHolds(conn, nil)
}

// A process that hears of a hold over a broker ends what it has in flight below it, before the run hears of
// anything.
func TestAHoldOverABrokerEndsSteps(t *testing.T) {
	t.Parallel()
	at := natsServer(t)
	works, begun, given := worksUntilStopped()
	s := on(t, shared(t))
	w, err := worker.New(s.temporal, &worker.Options{
		TaskQueue: s.queue, Agents: []agent.Definition{{Name: "tester", Model: "script", Tools: []string{"works"}}}, Tools: []tool.Tool{works}, Store: s.store, Logger: zap.NewNop(),
		Models: map[string]model.Model{"script": testsuite.NewScript(testsuite.Reply{Match: ".*", Calls: call("works", nil)})}, Temporal: stopsSoon, Holds: holdsOver(t, at),
	})
	require.NoError(t, err)
	require.NoError(t, w.Start(t.Context()))
	t.Cleanup(w.Stop)
	run := s.begin(t, "go", nil)
	<-begun
	require.Empty(t, given)
	holdsOver(t, at).Publish(agent.HoldRef{Session: run.Session, N: 7, Verb: agent.VerbInterrupt})
	select {
	case <-given:
	case <-time.After(patience):
		require.Fail(t, "the step goes on")
	}
	_, err = run.Cancel(t.Context(), "enough", nil)
	require.NoError(t, err)
	require.Equal(t, agent.StatusCancelled, s.rest(t, run).Status)
}

// Over a broker, a hold reaches whichever processes work for its tree, of twenty: Temporal is asked for none of
// them, and whoever does nothing for the tree hears nothing.
func TestHoldsOverABroker(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	const agents, tools, processes = 7, 3, 20
	at := natsServer(t)
	f := plant(t, 2, 2)
	f.worker.Stop() // of the stage
	f.first.Stop()
	n := &rpcs{calls: map[string]int{}}
	home := f.temporal
	f.temporal = dialHearing(t, shared(t), n.hear)
	for range processes {
		f.tendOver(t, holdsOver(t, at))
	}
	f.temporal = home
	idle := at.NumSubscriptions()
	run := f.grown(t, agents, tools)
	before := n.all()
	_, err := run.Interrupt(t.Context(), "", nil)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return f.busy.Load() == 0 }, patience, time.Millisecond)
	said, err := at.Varz(nil)
	require.NoError(t, err)
	require.Positive(t, said.OutMsgs, "the broker tells who follows")
	require.LessOrEqual(t, said.OutMsgs, said.InMsgs*(agents+tools), "and nobody else")
	require.Equal(t, before[queries], n.all()[queries], "nobody is asked through the server")
	f.still(t, run, agents, agent.StatusSuspended)
	require.Eventually(t, func() bool { return at.NumSubscriptions() == idle }, patience, 10*time.Millisecond, "nothing is in flight, so nobody follows")
	_, err = run.Resume(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, agent.StatusCompleted, f.rest(t, run).Status)
}
