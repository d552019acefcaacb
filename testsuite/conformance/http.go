package conformance

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/testsuite"
)

// HTTP is the [Provider] of an adapter that speaks HTTP. It listens, counts,
// holds, cuts and breaks; the author only says how the provider writes a reply
// and a failure, and how it reads a request. The functions are called from many
// goroutines.
type HTTP struct {
	// New makes the adapter: it asks at url, where the stand-in is, with a key.
	New func(url, key string) model.Model
	// Read reads a request. An error fails the test.
	Read func(r *http.Request, body []byte) (ProviderRequest, error)
	// Reply writes Blocks, Finish and Usage of a scene as the body of an answer: in
	// the pieces in which the provider streams it, each of which is written by
	// itself; one piece where it does not stream. The last of them ends the reply.
	Reply func(s ProviderResponse) []string
	// Refuse writes a failure instead of a reply: the status of the
	// answer, which is f.HTTP where that is set, and its body. RetryAfter is sent in
	// the header of that name by the stand-in.
	Refuse func(f testsuite.Failure) (status int, body string)
	// Break writes a failure in the midst of a stream: the piece that tells it. Nil
	// where the protocol has none, which [Unsupported] says too.
	Break func(f testsuite.Failure) string
	// Ping is a sign of life within a stream, ": comment\n\n"; empty if the
	// protocol has none, which [Unsupported] says too.
	Ping string
	// ContentType is of replies; empty means "text/event-stream".
	ContentType string
}

// Open implements [Provider].
func (h HTTP) Open(t testing.TB, key string, play func(ProviderRequest) ProviderResponse) model.Model {
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the asker has left
		}
		asked, err := h.Read(r, body)
		if err != nil {
			t.Errorf("HTTP.Read can't read what the adapter sent: %v: either the adapter writes what is not the provider's protocol, or Read does not know all of it; it sent\n%s", err, body)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		asked.Raw = fmt.Sprintf("%v\n%s", r.Header, body)
		h.answer(w, r, play(asked), ended)
	}))
	t.Cleanup(func() {
		close(ended)
		server.CloseClientConnections()
		server.Close()
	})
	return h.New(server.URL, key)
}

// answer does what a scene says.
func (h HTTP) answer(w http.ResponseWriter, r *http.Request, s ProviderResponse, ended <-chan struct{}) {
	if s.Silent && !s.hold(r, ended) {
		return
	}
	if s.Cut == 1 {
		panic(http.ErrAbortHandler)
	}
	if s.Fail != nil && !s.FailMidway {
		h.refuse(w, *s.Fail)
		return
	}
	pieces, held := h.pieces(s)
	w.Header().Set("Content-Type", cmp.Or(h.ContentType, "text/event-stream"))
	for i, p := range pieces {
		if i == held && !s.Silent && !s.hold(r, ended) {
			return
		}
		_, _ = io.WriteString(w, p) // who has left reads nothing
		w.(http.Flusher).Flush()
	}
	if s.Reset {
		panic(http.ErrAbortHandler)
	}
}

// hold waits as long as the scene says; false if nobody waits for the rest.
func (s ProviderResponse) hold(r *http.Request, ended <-chan struct{}) bool {
	if s.Wait == nil {
		return true
	}
	select {
	case <-s.Wait:
		return true
	case <-r.Context().Done():
		if s.OnDisconnect != nil {
			s.OnDisconnect()
		}
	case <-ended:
	}
	return false
}

// pieces are what is written, and before which of them the reply is held.
func (h HTTP) pieces(s ProviderResponse) (pieces []string, held int) {
	pieces = h.Reply(s)
	switch whole := strings.Join(pieces, ""); {
	case s.Cut > 0:
		return []string{whole[:int(s.Cut*float64(len(whole)))]}, 0
	case s.FailMidway:
		return append(pieces[:len(pieces)/2:len(pieces)/2], h.Break(*s.Fail)), 0
	case s.Ping:
		return append([]string{h.Ping}, pieces...), 1
	}
	return pieces, len(pieces) - 1
}

func (h HTTP) refuse(w http.ResponseWriter, f testsuite.Failure) {
	if f.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(f.RetryAfter.Seconds())))
	}
	if f.Kind == "" {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(f.HTTP)
		_, _ = fmt.Fprintf(w, "<html>\n<h1>%s</h1>\n</html>\n", http.StatusText(f.HTTP))
		return
	}
	status, body := h.Refuse(f)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}
