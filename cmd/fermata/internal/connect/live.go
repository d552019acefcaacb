package connect

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	broker "github.com/nats-io/nats.go"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/loopback"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/secret"
	"github.com/fermata-agents/fermata/live"
	"github.com/fermata-agents/fermata/live/nats"
)

// brokerConn is an invocation's connection to the broker. The zero value has none.
type brokerConn struct {
	*nats.Live
	holds *nats.Holds
	conn  *broker.Conn
}

// close closes the connection after what was published is sent.
func (b brokerConn) close() {
	if b.Live != nil {
		b.Live.Close()
		_ = b.conn.FlushTimeout(time.Second) // what the broker does not take by then is lost
		b.conn.Close()
	}
}

// Broker returns both ends of live events over the broker that the environment names; nil
// if it names none. Nothing waits for a broker that is away, since live events may be
// lost.
func (c *Connector) Broker() (*nats.Live, error) {
	place, err := secret.Get(env.Live)
	if c.brokerConn.Live != nil || place == "" || err != nil {
		return c.brokerConn.Live, err
	}
	if err := CheckBrokers(place); err != nil {
		return nil, err
	}
	ring, err := env.Keyring()
	if err != nil {
		return nil, err
	}
	// It never gives up: a broker may come and go while a worker runs.
	conn, err := broker.Connect(place, broker.Name("fermata"), broker.MaxReconnects(-1), broker.RetryOnFailedConnect(true), broker.Timeout(DialPatience),
		broker.ErrorHandler(func(_ *broker.Conn, _ *broker.Subscription, err error) { c.Notify("live events: %v", err) }))
	if err != nil {
		return nil, agent.Errorf(agent.CodeInvalidInput, "the broker that %s names: %w", env.Live, err)
	}
	c.brokerConn = brokerConn{conn: conn, holds: nats.NewHolds(conn, &nats.Options{Keys: ring}), Live: nats.New(conn, &nats.Options{Keys: ring, Unreadable: func(session string, err error) {
		c.Notify("live events of session %s can't be read: %v", session, err)
	}})}
	return c.brokerConn.Live, nil
}

// CheckBrokers refuses a text that names no broker. The error quotes nothing of it, since
// it may contain a password.
func CheckBrokers(place string) error {
	for one := range strings.SplitSeq(place, ",") {
		u, err := url.Parse(strings.TrimSpace(one))
		if err != nil || u.Host == "" || !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme) {
			return agent.Errorf(agent.CodeInvalidInput, "%s can't be read: write nats://HOST:PORT or tls://USER:PASSWORD@HOST, several with commas between them", env.Live)
		}
	}
	return nil
}

// LiveEnds is both ends of live events.
type LiveEnds interface {
	live.Sink
	live.Source
}

// LiveEnds returns the ends that reach other processes: the broker that the environment
// names, else the loopback endpoint of the process with the embedded server. It returns
// nil if there is none.
func (c *Connector) LiveEnds(s *Server) (LiveEnds, error) {
	b, err := c.Broker()
	switch {
	case err != nil:
		return nil, err
	case b != nil:
		return b, nil
	case s.live != nil:
		return s.live, nil
	}
	if c.local == nil {
		dir, err := c.DataDir()
		if err != nil {
			return nil, nil // a server elsewhere needs no data directory
		}
		c.local = loopback.Find(dir, s.Addr)
	}
	if c.local == nil {
		return nil, nil
	}
	return c.local, nil
}

// openLiveEndpoint opens the endpoint of live events beside an embedded server of this
// process, unless a broker is used. If that fails, runs continue and are shown without
// pieces.
func (c *Connector) openLiveEndpoint(s *Server, dir string) {
	// With a broker, events go through it; with another process's server, through its endpoint.
	if secret.IsSet(env.Live) || !s.InProcess() {
		return
	}
	var err error
	if s.live, err = loopback.Open(dir, s.Addr); err != nil {
		c.Notify("fermata: other processes can't show replies while they stream: %v", err)
	}
}

// Subscribe subscribes to a session's live events, from other processes or within this
// one.
func (c *Connector) Subscribe(ctx context.Context, s *Server, here *live.Hub, session string) (*live.Subscription, error) {
	far, err := c.LiveEnds(s)
	switch {
	case err != nil:
		return nil, err
	// The other process has the open turn from its start, which the own hub lacks.
	case far != nil:
		return far.Subscribe(ctx, session)
	}
	return here.Subscribe(ctx, session)
}
