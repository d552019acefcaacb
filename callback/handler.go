package callback

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
)

// Prefix begins the path of every callback.
const Prefix = "/callback/"

// By begins the name under which a callback is recorded, before the name that [Authenticate]
// returned. So a sender can't be mistaken for a person.
const By = "callback:"

// Limits of a callback.
const (
	// MaxBody is how many bytes a body may have. An event may have 64 kB, as every emit.
	MaxBody = 1 << 20
	// atOnce bounds the bodies that are read at once, and so their memory, and apart from them the
	// callbacks that wait for their runs.
	atOnce = 128
	// smallBody is the most bytes of a body that is read without a slot. It costs no more than the
	// headers that everybody may send. So slow bodies of strangers shut out only large callbacks.
	smallBody = 16 << 10
	// bodyWithin is how long a body may take, and runWithin how long the run may.
	bodyWithin = 10 * time.Second
	runWithin  = 10 * time.Second
	// writeWithin is how long the sender may take to read the answer.
	writeWithin = 10 * time.Second
	// maxName limits the sender's name, in bytes.
	maxName = 200
	// maxLogged limits a path in the log, in bytes. No path of a callback is longer.
	maxLogged = 1000
)

// Options configures a [Handler]. Authenticate or AllowUnauthenticated is required.
type Options struct {
	// Authenticate says who sends a request, or refuses it. [Bearer] and [Signed] make one.
	Authenticate Authenticate
	// AllowUnauthenticated takes callbacks from anybody who reaches the handler, if there is no
	// Authenticate.
	AllowUnauthenticated bool
	// Hosts are the values of the Host header that are served, each with its port if senders
	// write one: "hooks.example.com", "10.0.0.7:7280". Empty means localhost, 127.0.0.1 and [::1]
	// with the server's own port.
	Hosts []string
	// Logger gets a line for each callback, and for each request that was refused before it
	// reached a run; nil means none. The worker's audit has each verb as well.
	Logger *slog.Logger
}

// Handler is the endpoint of callbacks. It serves [Prefix] and everything below it, and is safe for
// concurrent use.
type Handler struct {
	client     *client.Client
	o          Options
	reading    slots
	delivering slots
	// bodyWithin is how long a body may take. Tests shorten it.
	bodyWithin time.Duration
}

// New returns the endpoint for the sessions of a client's task queue. Senders that authenticate may
// reach each of them. Without Authenticate and without
// AllowUnauthenticated the error is [agent.CodeInvalidInput], as it is with both (HX-89).
func New(c *client.Client, o *Options) (*Handler, error) {
	if o == nil {
		o = &Options{}
	}
	switch {
	case c == nil:
		return nil, agent.Errorf(agent.CodeInvalidInput, "callbacks need a client").WithPath("client")
	case o.Authenticate == nil && !o.AllowUnauthenticated:
		return nil, agent.Errorf(agent.CodeInvalidInput, "callbacks need Authenticate, such as callback.Bearer or callback.Signed. AllowUnauthenticated lets anybody wake runs").WithPath("Authenticate")
	case o.Authenticate != nil && o.AllowUnauthenticated:
		return nil, agent.Errorf(agent.CodeInvalidInput, "callbacks are either authenticated or not: set Authenticate or AllowUnauthenticated, not both").WithPath("AllowUnauthenticated")
	}
	return &Handler{client: c, o: *o, reading: make(slots, atOnce), delivering: make(slots, atOnce), bodyWithin: bodyWithin}, nil
}

// ServeHTTP answers one request. Its errors are problem+json with a code and the code's HTTP
// status (docs/wire.md §7), with 409 for 410. Only requests that are no callback at all have statuses
// of HTTP's own: 405, 415 and 421.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	conn := http.NewResponseController(w)
	// Set before anything is refused: the server reads the rest of a refused body, too. It ends with
	// the body: without one it would end the request. Not every ResponseWriter has deadlines; then the
	// server's own must do.
	if r.Body != http.NoBody {
		_ = conn.SetReadDeadline(time.Now().Add(h.bodyWithin))
	}
	done, err := h.serve(w, r)
	h.log(r, done, err)
	_ = conn.SetWriteDeadline(time.Now().Add(writeWithin))
	if err != nil {
		writeProblem(w, err)
		return
	}
	writeJSON(w, "application/json", http.StatusOK, done.Receipt)
}

// delivery is what became of a request, as far as it came.
type delivery struct {
	Receipt
	by   string
	sent string // the sender's id
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request) (d delivery, err error) {
	if err := h.admit(r); err != nil {
		return d, err
	}
	// The sender is known first: only who needs the body for that, to check a signature, reads it.
	read := sync.OnceValues(func() ([]byte, error) { return h.read(w, r) })
	if d.by, err = h.sender(r, read); err != nil {
		return d, err
	}
	body, err := read()
	if err != nil {
		return d, err
	}
	// Only from here on may an answer depend on the session.
	to, err := parse(r)
	if err != nil {
		return d, err
	}
	if err := h.delivering.take(); err != nil {
		return d, err
	}
	defer h.delivering.leave()
	ctx, cancel := context.WithTimeout(r.Context(), runWithin)
	defer cancel()
	if d.sent = idOf(r); !utf8.ValidString(d.sent) { // JSON would make several such ids one
		return d, agent.Errorf(agent.CodeInvalidInput, "the id of the delivery is not UTF-8")
	}
	d.Receipt, err = h.deliver(ctx, to, order{id: d.sent, by: d.by, body: body})
	return d, err
}

// slots bounds what is done at once.
type slots chan struct{}

// take takes a slot. If there is none, the sender is asked to come again: who waited would hold a
// connection.
func (s slots) take() error {
	select {
	case s <- struct{}{}:
		return nil
	default:
		return agent.Errorf(agent.CodeQueueFull, "%d callbacks are in progress already; send it again", cap(s))
	}
}

func (s slots) leave() { <-s }

// admit refuses what is no callback, before its body is read and its sender known.
func (h *Handler) admit(r *http.Request) error {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case !h.serves(r):
		return fault(http.StatusMisdirectedRequest, "the Host header names no host that is served here")
	// Other systems send neither header. A page in a browser near the handler could reach it.
	case r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "":
		return agent.Errorf(agent.CodeDenied, "callbacks come from servers; browsers may not send them")
	case !strings.HasPrefix(r.URL.EscapedPath(), Prefix):
		return agent.Errorf(agent.CodeNotFound, "there is nothing at this path; callbacks are below %s", Prefix)
	case r.Method != http.MethodPost:
		return fault(http.StatusMethodNotAllowed, "a callback is a POST, not a "+r.Method)
	case err != nil || kind != "application/json":
		return fault(http.StatusUnsupportedMediaType, "the Content-Type of a callback is application/json")
	case r.Header.Get("Content-Encoding") != "":
		return fault(http.StatusUnsupportedMediaType, "the body of a callback is not compressed")
	case r.ContentLength > MaxBody:
		return tooLarge()
	}
	return nil
}

// serves reports whether a request is for a host of the handler. Names are compared whole: a prefix
// or a suffix of a name is somebody else's.
func (h *Handler) serves(r *http.Request) bool {
	hosts := h.o.Hosts
	if len(hosts) == 0 {
		at, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		if !ok {
			return false
		}
		_, port, err := net.SplitHostPort(at.String())
		if err != nil {
			return false
		}
		for _, name := range []string{"localhost", "127.0.0.1", "::1"} {
			hosts = append(hosts, net.JoinHostPort(name, port))
		}
	}
	for _, host := range hosts {
		if strings.EqualFold(host, r.Host) {
			return true
		}
	}
	return false
}

// unread is why a body could not be read.
type unread struct{ error }

// Unwrap returns the error with its code.
func (u unread) Unwrap() error { return u.error }

// read reads the body. Its errors are of the type unread.
func (h *Handler) read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.ContentLength < 0 || r.ContentLength > smallBody {
		if err := h.reading.take(); err != nil {
			return nil, unread{err}
		}
		defer h.reading.leave()
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		return nil, unread{tooLarge()}
	case err != nil:
		return nil, unread{agent.Errorf(agent.CodeInvalidInput, "the body broke off, or took longer than %s", h.bodyWithin)}
	}
	return body, nil
}

func tooLarge() error {
	return agent.Errorf(agent.CodeTooLarge, "the body has more than %d bytes", MaxBody)
}

// errUnknownSender is the answer to every request that is not authenticated. It does not say why.
var errUnknownSender = agent.Errorf(agent.CodeDenied, "the sender is not authenticated")

// sender returns the name under which a request is recorded.
func (h *Handler) sender(r *http.Request, body func() ([]byte, error)) (string, error) {
	if h.o.AllowUnauthenticated {
		return By + "unauthenticated", nil
	}
	seen := r.WithContext(r.Context()) // a copy, so that the body is read only by the function
	seen.Body = http.NoBody
	name, err := h.o.Authenticate(seen, body)
	if failed := (unread{}); errors.As(err, &failed) {
		return "", failed
	}
	if err == nil {
		err = checkName(name)
	}
	if err != nil {
		return "", refusedSender{err}
	}
	return By + name, nil
}

// refusedSender is why a sender was refused. Only the log has the reason.
type refusedSender struct{ error }

// Unwrap returns what the sender learns.
func (refusedSender) Unwrap() error { return errUnknownSender }

// log writes what became of a request.
func (h *Handler) log(r *http.Request, d delivery, err error) {
	if h.o.Logger == nil {
		return
	}
	path := r.URL.EscapedPath()
	about := []any{"from", r.RemoteAddr, "path", path[:min(len(path), maxLogged)], "by", d.by, "sent_id", d.sent}
	if err != nil {
		h.o.Logger.Warn("callback refused", append(about, "http", statusOf(err), "code", string(agent.CodeOf(err)), "error", err)...)
		return
	}
	h.o.Logger.Info("callback delivered", append(about, "session", d.Session, "verb", string(d.Verb), "topic", d.Topic, "request", d.Request, "id", d.ID)...)
}
