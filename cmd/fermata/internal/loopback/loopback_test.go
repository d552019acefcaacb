package loopback

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/live"
)

const (
	temporal = "127.0.0.1:7233"
	patience = 30 * time.Second
)

func piece(session string, turn int, s string) live.Event {
	return live.Event{V: 1, Type: agent.EventDeltaText, Session: session, Run: "01a1", Turn: turn, Data: live.Data{Text: s}}
}

func opened(t *testing.T, dir string) *Server {
	t.Helper()
	s, err := Open(dir, temporal)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

func found(t *testing.T, dir string) *Client {
	t.Helper()
	c := Find(dir, temporal)
	require.NotNil(t, c)
	t.Cleanup(c.Close)
	return c
}

func hears(t *testing.T, from live.Source, session string) *live.Subscription {
	t.Helper()
	s, err := from.Subscribe(t.Context(), session)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// until reads texts until they end so, and returns them.
func until(t *testing.T, s *live.Subscription, end string) string {
	t.Helper()
	var all strings.Builder
	for timeout := time.After(patience); !strings.HasSuffix(all.String(), end); {
		select {
		case <-s.Ready():
			for _, e := range s.Take() {
				all.WriteString(e.Data.Text)
			}
		case <-timeout:
			t.Fatalf("no %q after %q", end, all.String())
		}
	}
	return all.String()
}

// A reader in another process hears the open turn from its beginning, whoever tells it.
func TestAReaderThatComesLateHearsTheOpenTurn(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir)
	s.Publish(piece("a", 1, "before"))
	s.Publish(piece("a", 2, "The text "))
	s.Publish(piece("a", 2, "so far, "))
	s.Publish(piece("b", 1, "another session"))
	near, far := hears(t, s, "a"), hears(t, found(t, dir), "a")
	require.Equal(t, "The text so far, ", until(t, near, "far, "))
	require.Equal(t, "The text so far, ", until(t, far, "far, "))
	elsewhere := found(t, dir) // a worker in another process
	elsewhere.Publish(piece("a", 2, "and more."))
	require.Equal(t, "and more.", until(t, near, "."))
	require.Equal(t, "and more.", until(t, far, "."))
	s.Publish(live.Event{V: 1, Type: agent.EventDeltaReset, Session: "a", Run: "01a1", Turn: 2})
	s.Publish(piece("a", 2, "Again."))
	require.Equal(t, "Again.", until(t, hears(t, s, "a"), "."))
}

// Pieces that follow each other are joined. Those of a reply that begins again, or after a
// gap, are not.
func TestOnlyPiecesThatFollowAreJoined(t *testing.T) {
	var events []numbered
	for i, at := range []int{1, 3, 1, 5} {
		e := piece("a", 1, "ab")
		e.Data.At = at
		events = append(events, numbered{int64(i + 1), e})
	}
	var got []live.Data
	for _, n := range joined(events) {
		got = append(got, n.Event.Data)
	}
	require.Equal(t, []live.Data{{Text: "abab", At: 1}, {Text: "ab", At: 1}, {Text: "ab", At: 5}}, got)
}

// A connection that is cut tells nothing twice, and a new endpoint is found.
func TestAReaderThatComesBackIsToldNothingTwice(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir)
	wire, err := net.Listen("tcp", "127.0.0.1:0") // between the two, where it can be cut
	require.NoError(t, err)
	t.Cleanup(func() { wire.Close() })
	between := s.place
	between.Addr = wire.Addr().String()
	require.NoError(t, between.write(s.file))
	conns := make(chan net.Conn, 10)
	go relay(wire, s.place.Addr, conns)
	far := hears(t, found(t, dir), "a")
	s.Publish(piece("a", 1, "One, "))
	require.Equal(t, "One, ", until(t, far, ", "))
	require.NoError(t, (<-conns).Close())
	s.Publish(piece("a", 1, "two, "))
	require.Equal(t, "two, ", until(t, far, "two, "))
	s.Close()
	opened(t, dir).Publish(piece("a", 1, "three."))
	require.Equal(t, "three.", until(t, far, "three."))
}

// relay hands connections on to an address.
func relay(l net.Listener, addr string, conns chan<- net.Conn) {
	for {
		in, err := l.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", addr)
		if err != nil {
			in.Close()
			continue
		}
		conns <- in
		go copyAll(in, out)
		go copyAll(out, in)
	}
}

func copyAll(to, from net.Conn) {
	defer to.Close()
	buffer := make([]byte, 1<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// Only who can read the file gets in, and the token goes to nobody else.
func TestOthersOfTheMachineHearNothing(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, FileName)
	require.NoError(t, os.WriteFile(file, nil, 0o644)) // as one that lay there
	s := opened(t, dir)
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	host, _, err := net.SplitHostPort(s.place.Addr)
	require.NoError(t, err)
	require.True(t, net.ParseIP(host).IsLoopback())
	to, err := caller(s.place)
	require.NoError(t, err)
	for _, token := range []string{"", "Bearer ", "Bearer " + strings.Repeat("A", len(s.place.Token))} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			r, err := http.NewRequestWithContext(t.Context(), method, "https://"+s.place.Addr+path+"?session=a&after=0", strings.NewReader("{}"))
			require.NoError(t, err)
			r.Header.Set("Authorization", token)
			w, err := to.Do(r)
			require.NoError(t, err)
			require.NoError(t, w.Body.Close())
			require.Equal(t, http.StatusUnauthorized, w.StatusCode)
		}
	}

	// Somebody else listens at the port of an endpoint that crashed.
	other := opened(t, t.TempDir())
	stale := s.place
	stale.Addr = other.place.Addr
	require.NoError(t, stale.write(file))
	require.ErrorContains(t, found(t, dir).post([]live.Event{piece("a", 1, "secret")}), "certificate")
	stale.Addr = "192.0.2.1:80"
	require.NoError(t, stale.write(file))
	require.Nil(t, Find(dir, temporal), "it is not on loopback")
	s.Close()
	require.NoFileExists(t, file)
	require.Nil(t, Find(dir, temporal))
}

// What is kept is bounded, for one turn and for all sessions, and readers are told what
// was dropped.
func TestWhatIsKeptIsBounded(t *testing.T) {
	turns := newTurns()
	long := strings.Repeat("x", 1<<20)
	for range 6 {
		turns.put(piece("a", 1, long))
	}
	require.LessOrEqual(t, turns.bytes, maxTurn)
	list, _ := turns.take("a", 0)
	require.Equal(t, []any{agent.EventDeltaDropped, 3}, []any{list[0].Event.Type, list[0].Event.Data.Dropped})
	require.Len(t, list, 4)
	list, _ = turns.take("a", list[3].Seq)
	require.Empty(t, list)
	for i := range 100 {
		turns.put(piece("s-"+strconv.Itoa(i), 1, long))
	}
	require.LessOrEqual(t, turns.bytes, maxAll)
	require.Less(t, len(turns.sessions), 40, "sessions that nobody hears are forgotten")
	for i := range 2_000 { // and many words are few events
		turns.put(piece("b", 1, strconv.Itoa(i)+" "))
	}
	list, _ = turns.take("b", 0)
	require.Len(t, list, 1)
	turns.enter("nobody")
	turns.leave("nobody")
	require.NotContains(t, turns.sessions, "nobody")
}

// A reader that does not read holds up neither workers nor other readers.
func TestAReaderThatDoesNotReadHoldsNobodyUp(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir)
	to, err := caller(s.place)
	require.NoError(t, err)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+s.place.Addr+path+"?session=a&after=0", nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+s.place.Token)
	w, err := to.Do(r)
	require.NoError(t, err)
	defer w.Body.Close()
	far := hears(t, found(t, dir), "a")
	begun, long := time.Now(), strings.Repeat("x", 100<<10)
	for range 200 {
		s.Publish(piece("a", 1, long))
	}
	s.Publish(piece("a", 2, "The end."))
	require.Less(t, time.Since(begun), blocked/2)
	require.True(t, strings.HasSuffix(until(t, far, "The end."), "The end."))
	var first numbered
	require.NoError(t, json.NewDecoder(w.Body).Decode(&first), "it is served yet")
}
