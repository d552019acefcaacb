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

// Live is both ends of live events on a connection to NATS. It may be used from many
// goroutines at once, by many workers and readers.
type Live struct {
	conn    *broker.Conn
	o       Options
	waiting *queue
	done    chan struct{} // closed when the sender has ended
}

// Options are optional; nil means all defaults.
type Options struct {
	// Prefix begins the subjects, without a dot at its end; empty means "fermata.live".
	// Those who share a broker and not their sessions each have their own.
	Prefix string
	// Keys encrypt events, by the first key, and read them by all. Readers need the
	// keys of the workers: without any, or with others, they hear nothing. What is not
	// encrypted is not heard by those who have keys. Nil means no encryption.
	Keys *keyring.Ring
	// Unreadable hears why a subscription can't read what comes, once. It must not
	// wait. Nil means nobody wants to know.
	Unreadable func(session string, err error)
}

// MaxMessage is the size of the largest message, in bytes; an event that does not fit
// is dropped. It is well below what NATS takes without being told (1 MB).
const MaxMessage = 256 << 10

// New returns both ends on a connection, which stays the caller's: it authenticates,
// and reconnects as it was told to. The caller closes what New returns before it.
func New(conn *broker.Conn, o *Options) *Live {
	l := &Live{conn: conn, waiting: newQueue(), done: make(chan struct{})}
	if o != nil {
		l.o = *o
	}
	l.o.Prefix = cmp.Or(l.o.Prefix, "fermata.live")
	go l.send()
	return l
}

// Close ends the sending, when what was published is handed to the connection. Nothing
// may be published any more. Subscriptions are closed by whoever has them.
func (l *Live) Close() {
	l.waiting.close()
	<-l.done
}

// Publish implements [live.Sink]. It never waits: what can't be sent is dropped, the
// latest first, and readers are told how much.
func (l *Live) Publish(e live.Event) { l.waiting.put(e) }

// send hands events to the connection, which may have to wait for the broker.
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

// purpose is what an event is encrypted for: that of one session is none of another's.
func purpose(session string) string { return "live/" + session }

func (l *Live) encode(e live.Event) ([]byte, error) {
	data, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	if l.o.Keys.Primary() != "" {
		data = l.o.Keys.Encrypt(purpose(e.Session), data)
	}
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
		err = agent.Errorf(agent.CodeBadSignature, "it is not encrypted, and this process has keys")
	}
	if err == nil {
		err = json.Unmarshal(data, &e)
	}
	if err == nil && e.Session != session {
		err = agent.Errorf(agent.CodeBadSignature, "it is of another session")
	}
	return e, err
}

// subject is where a session's events are.
func (l *Live) subject(session string) string {
	if l.o.Keys.Primary() != "" {
		return fmt.Sprintf("%s.%x", l.o.Prefix, sha256.Sum256([]byte(session)))
	}
	var token strings.Builder
	for _, b := range []byte(session) {
		switch {
		case b >= '0' && b <= '9', b >= 'A' && b <= 'Z', b >= 'a' && b <= 'z', b == '-', b == '_':
			token.WriteByte(b)
		default:
			fmt.Fprintf(&token, "%%%02X", b)
		}
	}
	return l.o.Prefix + "." + token.String()
}

// soon is how long a subscription waits for the broker to know of it.
const soon = 2 * time.Second

// Subscribe implements [live.Source]. Where the broker is away, the subscription hears
// what comes after its return. The error is [agent.CodeUnreachable], where the connection
// was closed or the context is over.
func (l *Live) Subscribe(ctx context.Context, session string) (*live.Subscription, error) {
	var subscribed *broker.Subscription
	s := live.NewSubscription(func() { _ = subscribed.Unsubscribe() }) // a connection that was closed has no subscriptions
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
		return nil, agent.Errorf(agent.CodeUnreachable, "hearing session %s over NATS: %w", session, err)
	}
	known, cancel := context.WithTimeout(ctx, soon)
	defer cancel()
	_ = l.conn.FlushWithContext(known) // else the broker hears of it when it is back
	if err := ctx.Err(); err != nil {
		s.Close()
		return nil, agent.Errorf(agent.CodeUnreachable, "hearing session %s over NATS: %w", session, err)
	}
	return s, nil
}
