package main

import (
	"context"
	"fmt"
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

// brokerConn is the connection of an invocation to the broker. The zero value has none.
type brokerConn struct {
	*nats.Live
	holds *nats.Holds
	conn  *broker.Conn
}

// close ends it, when what was told is sent.
func (b brokerConn) close() {
	if b.Live != nil {
		b.Live.Close()
		_ = b.conn.FlushTimeout(time.Second) // what nobody takes then is lost
		b.conn.Close()
	}
}

// broker is both ends of live events over the broker that the environment names; nil
// where it names none. A broker that is away is waited for by nobody: what is live may
// be lost.
func (c *cli) broker() (*nats.Live, error) {
	place, err := secret.Get(env.Live)
	if c.brokerConn.Live != nil || place == "" || err != nil {
		return c.brokerConn.Live, err
	}
	if err := checkBrokers(place); err != nil {
		return nil, err
	}
	ring, err := env.Keyring()
	if err != nil {
		return nil, err
	}
	conn, err := broker.Connect(place, broker.Name("fermata"), broker.MaxReconnects(-1), broker.RetryOnFailedConnect(true), broker.Timeout(dialPatience),
		broker.ErrorHandler(func(_ *broker.Conn, _ *broker.Subscription, err error) { c.Note("live events: %v", err) }))
	if err != nil {
		return nil, agent.Errorf(agent.CodeInvalidInput, "the broker that %s names: %w", env.Live, err)
	}
	c.brokerConn = brokerConn{conn: conn, holds: nats.NewHolds(conn, &nats.Options{Keys: ring}), Live: nats.New(conn, &nats.Options{Keys: ring, Unreadable: func(session string, err error) {
		c.Note("what session %s says right now can't be read: %v", session, err)
	}})}
	return c.brokerConn.Live, nil
}

// checkBrokers refuses what names no broker. It quotes nothing: there may be a password.
func checkBrokers(place string) error {
	for one := range strings.SplitSeq(place, ",") {
		u, err := url.Parse(strings.TrimSpace(one))
		if err != nil || u.Host == "" || !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme) {
			return agent.Errorf(agent.CodeInvalidInput, "%s can't be read: its form is nats://HOST:PORT, or tls://USER:PASSWORD@HOST, and several have commas between them", env.Live)
		}
	}
	return nil
}

// liveEnds are both ends of live events.
type liveEnds interface {
	live.Sink
	live.Source
}

// liveEnds are those that reach other processes: the broker that the environment names, or
// else the endpoint on loopback of the process that has the embedded server. Nil if
// there is none.
func (c *cli) liveEnds(s *server) (liveEnds, error) {
	b, err := c.broker()
	switch {
	case err != nil:
		return nil, err
	case b != nil:
		return b, nil
	case s.live != nil:
		return s.live, nil
	}
	if c.local == nil {
		dir, err := c.dataDir()
		if err != nil {
			return nil, nil // a server elsewhere needs none
		}
		c.local = loopback.Find(dir, s.addr)
	}
	if c.local == nil {
		return nil, nil
	}
	return c.local, nil
}

// openLiveEndpoint opens the endpoint of live events beside an embedded server of this
// process, unless a broker does its work. Without it runs go on, and are shown without
// pieces.
func (c *cli) openLiveEndpoint(s *server, dir string) {
	if secret.IsSet(env.Live) || !s.inProcess() {
		return
	}
	var err error
	if s.live, err = loopback.Open(dir, s.addr); err != nil {
		c.Note("fermata: other processes don't hear what models say while they say it: %v", err)
	}
}

// subscribe subscribes to what a session says right now: from other processes, or within
// this one.
func (c *cli) subscribe(ctx context.Context, s *server, here *live.Hub, session string) (*live.Subscription, error) {
	far, err := c.liveEnds(s)
	switch {
	case err != nil:
		return nil, err
	case far != nil:
		return far.Subscribe(ctx, session)
	}
	return here.Subscribe(ctx, session)
}

// checkBroker connects to the broker that the environment names, if it names one.
func (d *doctor) checkBroker() {
	place, err := secret.Get(env.Live)
	if err != nil {
		d.failed("live", err, "correct it, or unset it")
		return
	}
	if place == "" {
		return
	}
	if err := checkBrokers(place); err != nil {
		d.failed("live", err, "correct it, or unset it")
	} else if err := reachBroker(place); err != nil {
		d.found("live", verdictWarning, err.Error(), "start the broker, or correct "+env.Live)
	} else {
		d.found("live", verdictOK, "the broker that "+env.Live+" names answers", "")
	}
}

// reachBroker connects once. The error says nothing of the place, which may have a password.
func reachBroker(place string) error {
	conn, err := broker.Connect(place, broker.Name("fermata-doctor"), broker.Timeout(dialPatience))
	if err != nil {
		return fmt.Errorf("the broker that %s names can't be reached, and who watches runs misses what models say while they say it: %w", env.Live, err)
	}
	defer conn.Close()
	if err := conn.FlushTimeout(dialPatience); err != nil {
		return fmt.Errorf("the broker that %s names does not answer: %w", env.Live, err)
	}
	return nil
}
