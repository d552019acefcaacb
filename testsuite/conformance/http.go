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

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// HTTPProvider is the [Provider] of an adapter that uses HTTP. It listens, delays
// replies, and cuts or breaks them. Its fields translate the provider's protocol. They
// are called from many goroutines.
type HTTPProvider struct {
	// New returns the adapter. It sends its requests to url, with the key.
	New func(url, key string) model.Model
	// Read decodes a request. An error fails the test.
	Read func(r *http.Request, body []byte) (ProviderRequest, error)
	// Reply encodes Blocks, Finish and Usage as the body of a reply, in the pieces that
	// the provider streams. A provider that does not stream has one piece. The last piece
	// ends the reply.
	Reply func(s ProviderResponse) []string
	// Refuse encodes a failure instead of a reply. The header Retry-After is set already.
	Refuse func(kind agent.FaultKind, message string) (status int, body string)
	// Break encodes the piece of a stream that reports a failure. If it is nil, set
	// Unsupported.Midway.
	Break func(kind agent.FaultKind, message string) string
	// Ping is a sign of life in a stream, such as ": comment\n\n". If it is empty, set
	// Unsupported.Pings.
	Ping string
	// ContentType is the header of replies; empty means "text/event-stream".
	ContentType string
}

// Open implements [Provider].
func (h HTTPProvider) Open(t testing.TB, key string, play func(ProviderRequest) ProviderResponse) model.Model {
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the adapter has disconnected
		}
		asked, err := h.Read(r, body)
		if err != nil {
			t.Errorf("HTTPProvider.Read can't read what the adapter sent: %v: either the adapter does not follow the provider's protocol, or Read does not know all of it; it sent\n%s", err, body)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		asked.Raw = fmt.Sprintf("%v\n%s", r.Header, body)
		h.answer(w, r, play(asked), ended)
	}))
	// Closed first: handlers that wait would keep the server from closing.
	t.Cleanup(func() {
		close(ended)
		server.CloseClientConnections()
		server.Close()
	})
	return h.New(server.URL, key)
}

// answer writes what the response says.
func (h HTTPProvider) answer(w http.ResponseWriter, r *http.Request, s ProviderResponse, ended <-chan struct{}) {
	if s.Silent && !s.hold(r, ended) {
		return
	}
	if s.Cut == 1 {
		// The server closes the connection without an answer.
		panic(http.ErrAbortHandler)
	}
	if s.GatewayStatus != 0 || s.Fail != "" && !s.FailMidway {
		h.refuse(w, s)
		return
	}
	pieces, held := h.pieces(s)
	w.Header().Set("Content-Type", cmp.Or(h.ContentType, "text/event-stream"))
	for i, p := range pieces {
		if i == held && !s.Silent && !s.hold(r, ended) {
			return
		}
		_, _ = io.WriteString(w, p) // an error means that the adapter has disconnected
		// Flushed, because the adapter must see each piece when it is sent.
		w.(http.Flusher).Flush()
	}
	if s.Reset {
		// A normal return would end the stream properly.
		panic(http.ErrAbortHandler)
	}
}

// hold waits as long as the response says. It reports whether the adapter is still
// connected.
// Each of three things ends the wait, so a test never hangs.
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

// pieces returns what to write, and before which piece the reply is held.
func (h HTTPProvider) pieces(s ProviderResponse) (pieces []string, held int) {
	pieces = h.Reply(s)
	switch whole := strings.Join(pieces, ""); {
	case s.Cut > 0:
		return []string{whole[:int(s.Cut*float64(len(whole)))]}, 0
	case s.FailMidway:
		// The full slice expression makes append copy, because pieces is the caller's.
		return append(pieces[:len(pieces)/2:len(pieces)/2], h.Break(s.Fail, s.FailMessage)), 0
	case s.Ping:
		return append([]string{h.Ping}, pieces...), 1
	}
	return pieces, len(pieces) - 1
}

// refuse writes the failure of the provider, or of a gateway in front of it.
func (h HTTPProvider) refuse(w http.ResponseWriter, s ProviderResponse) {
	if s.GatewayStatus != 0 {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(s.GatewayStatus)
		_, _ = fmt.Fprintf(w, "<html>\n<h1>%s</h1>\n</html>\n", http.StatusText(s.GatewayStatus))
		return
	}
	if s.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(s.RetryAfter.Seconds())))
	}
	status, body := h.Refuse(s.Fail, s.FailMessage)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}
