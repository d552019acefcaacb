package nats

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	broker "github.com/nats-io/nats.go"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/keyring"
	"github.com/fermata-agents/fermata/live"
)

// Live is a sink and a source of live events on a NATS connection. It is safe for
// concurrent use.
type Live struct {
	conn    *broker.Conn
	o       Options
	waiting *queue
	done    chan struct{} // closed when the sender has ended
}

// Options configure a [Live] or [Holds]; nil means all defaults.
type Options struct {
	// Prefix begins the subjects, without a dot at its end; empty means "fermata.live".
	// Groups that share a broker, but no sessions, each need their own.
	Prefix string
	// Keys encrypt with the first key and decrypt with all. Readers need the workers'
	// keys: with others, or none, they receive nothing. A reader with keys ignores what
	// is not encrypted. Nil means no encryption.
	Keys *keyring.Ring
	// Unreadable is called once for a subscription, with the reason why it cannot decrypt
	// an event. It must return at once. It may be nil.
	Unreadable func(session string, err error)
}

// MaxMessage is the size of the largest message, in bytes. A larger event is dropped. It
// is well below NATS's default limit of 1 MB.
const MaxMessage = 256 << 10

// New returns a sink and source on a connection. The connection stays the caller's, with
// its authentication and its reconnects. Close what New returns before the connection.
func New(conn *broker.Conn, o *Options) *Live {
	l := &Live{conn: conn, waiting: newQueue(), done: make(chan struct{})}
	if o != nil {
		l.o = *o
	}
	l.o.Prefix = cmp.Or(l.o.Prefix, "fermata.live")
	go l.send()
	return l
}

// Close stops sending, after the connection has what was published. Do not publish after
// it. Subscriptions are closed by their readers.
func (l *Live) Close() {
	l.waiting.close()
	<-l.done
}

// Publish implements [live.Sink]. It never waits. What cannot be sent is dropped, the
// newest first, and readers get the count.
func (l *Live) Publish(e live.Event) { l.waiting.put(e) }

// send passes events to the connection, which may wait for the broker.
func (l *Live) send() {
	defer close(l.done)
	for {
		list, open := l.waiting.take()
		for _, e := range list {
			data, err := l.encode(e)
			if err == nil {
				err = l.conn.Publish(l.subject(e.Session), data)
			}
			if err != nil {
				l.waiting.drop(e)
			}
		}
		if !open {
			return
		}
	}
}

// purpose returns what an event is encrypted for. So an event of one session cannot be
// passed off as another's.
func purpose(session string) string { return "live/" + session }

func (l *Live) encode(e live.Event) ([]byte, error) {
	data, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	if l.o.Keys.Primary() != "" {
		data = l.o.Keys.Encrypt(purpose(e.Session), data)
	}
	// Encryption makes it larger, so the size is known only now.
	if len(data) > MaxMessage {
		return nil, broker.ErrMaxPayload
	}
	return data, nil
}

func (l *Live) decode(session string, data []byte) (e live.Event, err error) {
	switch encrypted := keyring.KeyID(data) != ""; {
	case encrypted:
		data, err = l.o.Keys.Decrypt(purpose(session), data)
	case l.o.Keys.Primary() != "":
		err = agent.Errorf(agent.CodeBadSignature, "the event is not encrypted, and this process has keys")
	}
	if err == nil {
		err = json.Unmarshal(data, &e)
	}
	if err == nil && e.Session != session {
		err = agent.Errorf(agent.CodeBadSignature, "the event belongs to another session")
	}
	return e, err
}

// subject returns the subject of a session's events.
func (l *Live) subject(session string) string {
	if l.o.Keys.Primary() != "" {
		// Names of sessions may be private; subjects are never encrypted.
		return fmt.Sprintf("%s.%x", l.o.Prefix, sha256.Sum256([]byte(session)))
	}
	var token strings.Builder
	for _, b := range []byte(session) {
		switch {
		case b >= '0' && b <= '9', b >= 'A' && b <= 'Z', b >= 'a' && b <= 'z', b == '-', b == '_':
			token.WriteByte(b)
		default: // a dot or a wildcard would change who receives it
			fmt.Fprintf(&token, "%%%02X", b)
		}
	}
	return l.o.Prefix + "." + token.String()
}

// soon is how long Subscribe waits until the broker knows the subscription.
const soon = 2 * time.Second

// Subscribe implements [live.Source]. If the broker is away, the subscription receives
// what comes after its return. The error is [agent.CodeUnreachable], if the connection is
// closed or the context is over.
func (l *Live) Subscribe(ctx context.Context, session string) (*live.Subscription, error) {
	var subscribed *broker.Subscription
	s := live.NewSubscription(func() { _ = subscribed.Unsubscribe() }) // a closed connection has no subscriptions
	var once sync.Once
	subscribed, err := l.conn.Subscribe(l.subject(session), func(m *broker.Msg) {
		e, err := l.decode(session, m.Data)
		if err == nil {
			s.Put(e)
			return
		}
		if l.o.Unreadable != nil {
			once.Do(func() { l.o.Unreadable(session, err) })
		}
	})
	if err != nil {
		return nil, agent.Errorf(agent.CodeUnreachable, "subscribing to session %s over NATS: %w", session, err)
	}
	known, cancel := context.WithTimeout(ctx, soon)
	defer cancel()
	_ = l.conn.FlushWithContext(known) // after an error, the client subscribes again when it reconnects
	if err := ctx.Err(); err != nil {
		s.Close()
		return nil, agent.Errorf(agent.CodeUnreachable, "subscribing to session %s over NATS: %w", session, err)
	}
	return s, nil
}
