package nats_test

import (
	"bufio"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	broker "github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/keyring"
	"github.com/fermata-agents/fermata/live"
	"github.com/fermata-agents/fermata/live/nats"
)

// patience bounds what a test waits for. Nothing takes nearly as long.
const patience = time.Minute

// serve starts a broker at a port, or any with -1.
func serve(t *testing.T, port int) *server.Server {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: port, NoSigs: true, NoLog: true})
	require.NoError(t, err)
	s.Start()
	require.True(t, s.ReadyForConnections(patience))
	t.Cleanup(s.Shutdown)
	return s
}

func dial(t *testing.T, url string) *broker.Conn {
	t.Helper()
	conn, err := broker.Connect(url, broker.MaxReconnects(-1), broker.ReconnectWait(10*time.Millisecond), broker.ReconnectJitter(0, 0))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	return conn
}

// end is one end on a connection of its own.
func end(t *testing.T, url string, o *nats.Options) *nats.Live {
	t.Helper()
	l := nats.New(dial(t, url), o)
	t.Cleanup(l.Close)
	return l
}

func subscribe(t *testing.T, from live.Source, session string) *live.Subscription {
	t.Helper()
	s, err := from.Subscribe(t.Context(), session)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

func text(session, s string) live.Event {
	return live.Event{V: 1, Type: agent.EventDeltaText, Time: time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC), Session: session, Run: "01a1", Turn: 1, Data: live.Data{Text: s}}
}

// hear takes n events.
func hear(t *testing.T, s *live.Subscription, n int) (all []live.Event) {
	t.Helper()
	for timeout := time.After(patience); len(all) < n; {
		select {
		case <-s.Ready():
			all = append(all, s.Take()...)
		case <-timeout:
			require.Len(t, all, n, "what was heard")
		}
	}
	return all
}

func TestWhatOnePublishesAnotherHears(t *testing.T) {
	at := serve(t, -1).ClientURL()
	worker, reader := end(t, at, nil), end(t, at, nil)
	names := []string{"trip-42", "trip", "a.b", "a", "b", "a.*", ">", "*", "a/b-1", "a%2Fb-1", "ä", "x y", strings.Repeat("z", 255)}
	var subs []*live.Subscription
	for _, name := range names {
		subs = append(subs, subscribe(t, reader, name))
	}
	again := subscribe(t, reader, "a")
	for _, name := range names {
		worker.Publish(text(name, "Hello "))
		worker.Publish(text(name, name))
	}
	for i, name := range names {
		require.Equal(t, []live.Event{text(name, "Hello "), text(name, name)}, hear(t, subs[i], 2), "session %q", name)
	}
	require.Len(t, hear(t, again, 2), 2, "another reader of the same session")
	for i, name := range names {
		require.Empty(t, subs[i].Take(), "session %q hears another's", name)
	}
	again.Close()
	worker.Publish(text("a", "more"))
	hear(t, subs[3], 1)
	require.Empty(t, again.Take())
}

func TestThoseWithAnotherPrefixHearNothing(t *testing.T) {
	at := serve(t, -1).ClientURL()
	worker, other := end(t, at, &nats.Options{Prefix: "acme.live"}), end(t, at, nil)
	ours, theirs := subscribe(t, worker, "s"), subscribe(t, other, "s")
	worker.Publish(text("s", "1"))
	hear(t, ours, 1)
	other.Publish(text("s", "2"))
	require.Equal(t, "2", hear(t, theirs, 1)[0].Data.Text)
}

// A broker that goes away and comes back takes nobody's subscription with it.
func TestReadersSurviveTheBrokersRestart(t *testing.T) {
	s := serve(t, -1)
	worker, reader := end(t, s.ClientURL(), nil), end(t, s.ClientURL(), nil)
	before := subscribe(t, reader, "s")
	worker.Publish(text("s", "1"))
	hear(t, before, 1)

	port, err := strconv.Atoi(s.ClientURL()[strings.LastIndexByte(s.ClientURL(), ':')+1:])
	require.NoError(t, err)
	s.Shutdown()
	s.WaitForShutdown()
	during := subscribe(t, reader, "s") // while nobody is there
	worker.Publish(text("s", "2"))
	serve(t, port)
	for _, sub := range []*live.Subscription{before, during} {
		require.Eventually(t, func() bool {
			worker.Publish(text("s", "3")) // some may be lost
			for _, e := range sub.Take() {
				if e.Data.Text == "3" {
					return true
				}
			}
			return false
		}, patience, 10*time.Millisecond)
	}
}

func TestASlowReaderLosesTheOldestAndIsTold(t *testing.T) {
	at := serve(t, -1).ClientURL()
	conn := dial(t, at)
	reader := nats.New(conn, nil)
	t.Cleanup(reader.Close)
	slow, quick := subscribe(t, reader, "s"), subscribe(t, reader, "s")
	worker := end(t, at, nil)
	const many = 3000
	for i := range many {
		worker.Publish(text("s", strconv.Itoa(i)))
	}
	for last := ""; last != strconv.Itoa(many-1); {
		list := hear(t, quick, 1)
		last = list[len(list)-1].Data.Text
	}
	heard := make(chan struct{})
	require.NoError(t, conn.Barrier(func() { close(heard) }))
	<-heard
	list := slow.Take()
	require.Equal(t, agent.EventDeltaDropped, list[0].Type)
	require.Equal(t, many, list[0].Data.Dropped+len(list)-1)
	require.Equal(t, strconv.Itoa(many-1), list[len(list)-1].Data.Text)
}

// stuck is a broker that takes a connection, and then nothing more, until it is freed.
func stuck(t *testing.T) (url string, free func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	freed := make(chan struct{})
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		fmt.Fprintf(conn, "INFO {\"server_id\":\"stuck\",\"version\":\"2.10.0\",\"max_payload\":1048576}\r\n")
		lines := bufio.NewScanner(conn)
		for lines.Scan() && lines.Text() != "PING" {
		}
		fmt.Fprint(conn, "PONG\r\n")
		<-freed
	}()
	return "nats://" + l.Addr().String(), func() { close(freed) }
}

// Model calls are waiting (OA-110).
func TestAPublisherNeverWaits(t *testing.T) {
	at, free := stuck(t)
	conn, err := broker.Connect(at, broker.NoReconnect())
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	worker := nats.New(conn, nil)
	t.Cleanup(worker.Close)
	t.Cleanup(free) // the first: it lets the others end
	done := make(chan struct{})
	go func() {
		defer close(done)
		piece := strings.Repeat("x", 10_000)
		for range 10_000 {
			worker.Publish(text("s", piece))
		}
	}()
	select {
	case <-done:
	case <-time.After(5 * time.Second): // the connection's own patience is longer
		t.Fatal("who publishes waits for the broker")
	}
}

func TestWhatIsTooLargeIsDroppedAndTold(t *testing.T) {
	at := serve(t, -1).ClientURL()
	worker, reader := end(t, at, nil), end(t, at, nil)
	s := subscribe(t, reader, "s")
	worker.Publish(text("s", "1"))
	hear(t, s, 1)
	worker.Publish(text("s", strings.Repeat("x", nats.MaxMessage)))
	lost := 0
	require.Eventually(t, func() bool {
		worker.Publish(text("s", "2")) // it is told with what comes next
		for _, e := range s.Take() {
			require.Less(t, len(e.Data.Text), 2)
			lost += e.Data.Dropped
		}
		return lost > 0
	}, patience, 10*time.Millisecond)
	require.Equal(t, 1, lost)
}

func ring(t *testing.T, ids ...string) *keyring.Ring {
	t.Helper()
	var list []string
	for _, id := range ids {
		key, err := keyring.New(id)
		require.NoError(t, err)
		list = append(list, key)
	}
	r, err := keyring.Parse(strings.Join(list, ","))
	require.NoError(t, err)
	return r
}

// Who reads along learns neither what is said nor in which session, and who writes
// makes nobody believe anything.
func TestTheBrokerLearnsNothing(t *testing.T) {
	at := serve(t, -1).ClientURL()
	keys := ring(t, "k1")
	var mu sync.Mutex
	var trouble []string
	unreadable := func(session string, err error) {
		mu.Lock()
		defer mu.Unlock()
		trouble = append(trouble, session+": "+err.Error())
	}
	worker, reader := end(t, at, &nats.Options{Keys: keys}), end(t, at, &nats.Options{Keys: keys, Unreadable: unreadable})
	stranger := end(t, at, &nats.Options{Keys: ring(t, "k2"), Unreadable: unreadable})
	s, none := subscribe(t, reader, "secret-session"), subscribe(t, stranger, "secret-session")

	tap := dial(t, at)
	tapped, err := tap.SubscribeSync(">")
	require.NoError(t, err)
	require.NoError(t, tap.Flush())
	worker.Publish(text("secret-session", "a secret word"))
	require.Equal(t, []live.Event{text("secret-session", "a secret word")}, hear(t, s, 1))
	m, err := tapped.NextMsg(patience)
	require.NoError(t, err)
	require.NotContains(t, m.Subject+string(m.Data), "secret")

	forged := `{"v":1,"type":"delta.text","session":"secret-session","run":"01a1","data":{"text":"forged"}}`
	require.NoError(t, tap.Publish(m.Subject, []byte(forged)))
	require.NoError(t, tap.Publish(strings.Replace(m.Subject, "live.", "live.x", 1), m.Data))
	require.NoError(t, tap.Publish(m.Subject, m.Data)) // an echo is believed
	require.Equal(t, "a secret word", hear(t, s, 1)[0].Data.Text)
	require.Eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(trouble) == 2
	}, patience, 10*time.Millisecond)
	require.ElementsMatch(t, []string{
		"secret-session: it is encrypted with key k1, and this process has k2: give it that key (FERMATA_ENCRYPTION_KEYS)",
		"secret-session: the event is not encrypted, and this process has keys",
	}, trouble)
	require.Empty(t, none.Take())
}

func TestASubscriptionOnAClosedConnectionIsRefused(t *testing.T) {
	conn := dial(t, serve(t, -1).ClientURL())
	l := nats.New(conn, nil)
	conn.Close()
	_, err := l.Subscribe(t.Context(), "s")
	require.ErrorIs(t, err, agent.CodeUnreachable)
	l.Publish(text("s", "nobody hears it"))
	l.Close()
}
