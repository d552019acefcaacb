package model

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// Endpoint is the address that an adapter calls over HTTP. It makes the faults that all
// such adapters share, so that their messages read the same. It alone keeps the adapter's
// secrets, and printing it shows none.
type Endpoint struct {
	name   string
	base   string // without the password
	addr   string
	usable bool // the base URL is an HTTP URL
	// hide replaces the secrets in a message. It alone knows them.
	hide func(message string) string
}

// NewEndpoint returns an Endpoint; an adapter's New calls it. name is the provider's name
// in messages. base is the base URL: [Endpoint.WrongURL] checks it. No message shows the
// secrets, nor the password in the base URL.
func NewEndpoint(name, base string, secrets ...string) *Endpoint {
	e := &Endpoint{name: name, base: RedactedURL(base)}
	if u, err := url.Parse(base); err == nil {
		password, _ := u.User.Password()
		// A copy: the list belongs to the caller.
		secrets = append(secrets[:len(secrets):len(secrets)], password)
		e.addr = address(u)
		e.usable = u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
	}
	e.hide = hiding(secrets)
	return e
}

// Addr returns the host and port, for messages.
func (e *Endpoint) Addr() string { return e.addr }

// Faultf returns a [Fault] with a message on one line and without the endpoint's secrets.
// The message may quote a whole page. Adapters make all their faults with it, or with the
// methods below.
func (e *Endpoint) Faultf(kind agent.FaultKind, status int, after time.Duration, format string, args ...any) error {
	return Fault(kind, status, after, e.hide(strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")))
}

// WrongURL returns a fault if the base URL is no HTTP URL, else nil. Adapters return it
// from their first call. form is the right form of a URL, and fix is the variable to
// set.
func (e *Endpoint) WrongURL(form, fix string) error {
	if e.usable {
		return nil
	}
	return e.Faultf(agent.FaultBadRequest, 0, 0,
		"%s: the base URL %q is not of the form %s; correct %s where the worker runs", e.name, e.base, form, fix)
}

// NoKey returns the fault of a missing key. Adapters return it from their first call if
// the provider needs a key. set is the variable to set.
func (e *Endpoint) NoKey(set string) error {
	return e.Faultf(agent.FaultAuth, 0, 0, "%s: there is no API key; set %s in the worker's environment", e.name, set)
}

// Unreachable returns the fault of a request that got no answer. check says what people
// should look at.
func (e *Endpoint) Unreachable(err error, check string) error {
	if own, ok := errors.AsType[*agent.Error](err); ok && own.Provider != nil { // the error of the client in [Extra.Client]
		return e.Faultf(own.Provider.Kind, 0, 0, "%s was not asked: %s", e.name, own.Message)
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // the rest is the URL
	}
	kind := timeoutOr(err, agent.FaultTransient)
	// Not a timeout of the model: it was never asked.
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		kind = agent.FaultTransient
	}
	fault := e.Faultf(kind, 0, 0, "%s gave no answer at %s: %v; check %s", e.name, e.addr, err, check)
	// Nothing was sent, so the call costs nothing.
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		if f, ok := errors.AsType[*agent.Error](fault); ok {
			f.Provider.Unsent = true
		}
	}
	return fault
}

// Truncated returns the fault of an answer that broke off after some bytes (see [Body]).
// err is nil if it ended without an error. An answer that was too long ([Body], [Events])
// gets [agent.CodeBadOutput] and is not retried.
func (e *Endpoint) Truncated(status int, bytes int64, err error) error {
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	if errors.Is(err, errTooLong) {
		fault := e.Faultf(agent.FaultBadRequest, status, 0, "%s: reading the answer stopped after %d bytes: %v", e.name, bytes, err)
		if f, ok := errors.AsType[*agent.Error](fault); ok {
			f.Code = agent.CodeBadOutput
		}
		return fault
	}
	return e.Faultf(timeoutOr(err, agent.FaultTransient), status, 0, "%s: the stream broke off after %d bytes: %v", e.name, bytes, err)
}

// Cancelled returns the error of a call whose context has ended. It is no fault of the
// provider: the caller ended the call, or its deadline passed.
func (e *Endpoint) Cancelled(err error) error { return fmt.Errorf("asking %s: %w", e.name, err) }

func timeoutOr(err error, kind agent.FaultKind) agent.FaultKind {
	if t, ok := errors.AsType[net.Error](err); ok && t.Timeout() {
		return agent.FaultTimeout
	}
	return kind
}

// address returns the host and port of a URL.
func address(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = "443"
		if u.Scheme == "http" {
			port = "80"
		}
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// RedactedURL returns a URL without its password, for printing.
func RedactedURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "(not a URL)"
	}
	return u.Redacted()
}

// HTTPClient returns the client that an adapter uses: a copy of base, or a new one if
// base is nil. The new one has no timeout, because the context of a call has one. If the
// client has no policy for redirects, it follows none: else another host could get the
// key.
func HTTPClient(base *http.Client) *http.Client {
	c := &http.Client{}
	if base != nil {
		*c = *base
	}
	if c.CheckRedirect == nil {
		c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	return c
}

// RetryAfter returns how long a provider asks to wait, at most a day. Adapters pass it to
// the fault of a failed call. It reads the standard headers: milliseconds, seconds or a
// date. Without them it returns the longest of resets: how long until each used-up limit
// is full again, from the provider's own headers.
func RetryAfter(h http.Header, now time.Time, resets ...time.Duration) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("retry-after-ms"), 64); err == nil {
		return wait(ms, time.Millisecond)
	}
	if s, err := strconv.ParseFloat(h.Get("retry-after"), 64); err == nil {
		return wait(s, time.Second)
	}
	if t, err := http.ParseTime(h.Get("retry-after")); err == nil {
		return wait(t.Sub(now).Seconds(), time.Second)
	}
	var longest time.Duration
	for _, d := range resets {
		longest = max(longest, wait(d.Seconds(), time.Second))
	}
	return longest
}

// wait returns n units, between zero and a day.
func wait(n float64, unit time.Duration) time.Duration {
	const most = 24 * time.Hour
	if math.IsNaN(n) || n <= 0 {
		return 0
	}
	// Limited before the conversion: a huge number would overflow.
	return time.Duration(min(n, float64(most/unit)) * float64(unit))
}

const (
	// maxStream is the largest answer, in bytes. The longest replies of today's models
	// take about 50 MB, because an event of several hundred bytes surrounds each token.
	maxStream = 128 << 20
	// maxWhole is the most that is read into memory at once: a line or an event of a
	// stream, or a whole answer. Decoded, it takes many times that.
	maxWhole = 16 << 20
)

// errTooLong is the error of an answer that is longer than any real reply.
var errTooLong = errors.New("it is too long")

// Body counts the bytes of an answer. Each piece that it reads is emitted as a sign of
// life, so a stream of comments alone counts as alive. It reads at most 128 MiB.
type Body struct {
	io.ReadCloser
	n    int64
	emit func(Delta)
}

// WatchBody replaces an answer's body by a [Body]. Adapters call it before they read a
// reply.
func WatchBody(res *http.Response, emit func(Delta)) *Body {
	b := &Body{ReadCloser: res.Body, emit: emit}
	res.Body = b
	return b
}

// Read reads, counts the bytes, and emits a sign of life.
func (b *Body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n += int64(n)
	if n > 0 {
		b.emit(Delta{})
	}
	// Checked on the way, since a server may send for ever.
	if b.n > maxStream {
		return n, errTooLong
	}
	return n, err
}

// Unemitted counts the bytes of an answer that an adapter keeps but does not emit, such
// as arguments and signatures. The runtime limits only what is emitted.
type Unemitted int

// keptPart is about how much memory a part takes beside its content, in bytes.
const keptPart = 300

// AddPart counts a part with size bytes of content.
func (k *Unemitted) AddPart(size int) { k.AddBytes(keptPart + size) }

// AddBytes counts size bytes that are added to a part.
func (k *Unemitted) AddBytes(size int) { *k += Unemitted(size) }

// Check returns an error if there are more than 16 MiB. The adapter then stops reading:
// see [Endpoint.Truncated].
func (k *Unemitted) Check() error {
	if *k > maxWhole {
		return errTooLong
	}
	return nil
}

// Whole reads an answer that is not a stream, at most 16 MiB.
func (b *Body) Whole() ([]byte, error) {
	// One byte more than allowed, to tell an answer that is too long from one that just fits.
	data, err := io.ReadAll(io.LimitReader(b, maxWhole+1))
	if err == nil && len(data) > maxWhole {
		return nil, errTooLong
	}
	return data, err
}

// Bytes returns how many bytes have arrived, for [Endpoint.Truncated].
func (b *Body) Bytes() int64 { return b.n }
