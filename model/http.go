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

// Endpoint is where an adapter asks over HTTP. It makes the faults that every
// such adapter has in common, so that people read of them in the same words, and
// it alone keeps the adapter's secrets: printing it shows none.
type Endpoint struct {
	name   string
	base   string // without its password
	addr   string
	usable bool // the base URL is one of HTTP
	// hide cuts our secrets out of a message: it alone knows them.
	hide func(message string) string
}

// NewEndpoint is called by an adapter's New, with what the provider is called in
// messages, the base URL (right or wrong, see [Endpoint.WrongURL]) and the keys
// that no message may show. The password of the base URL is a secret, too.
func NewEndpoint(name, base string, secrets ...string) *Endpoint {
	e := &Endpoint{name: name, base: RedactedURL(base)}
	if u, err := url.Parse(base); err == nil {
		password, _ := u.User.Password()
		secrets = append(secrets[:len(secrets):len(secrets)], password)
		e.addr = address(u)
		e.usable = u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
	}
	e.hide = hiding(secrets)
	return e
}

// Addr is the host and port that are asked, for adapters to name in a message.
func (e *Endpoint) Addr() string { return e.addr }

// Faultf is [Fault] with a message of one line, which may quote a whole page, and
// without the endpoint's secrets. Adapters make all their faults by it, or by the
// methods below, which are for the faults of all adapters.
func (e *Endpoint) Faultf(kind agent.FaultKind, status int, after time.Duration, format string, args ...any) error {
	return Fault(kind, status, after, e.hide(strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")))
}

// WrongURL is the fault of a base URL that is not one of HTTP, nil for one that
// is. Adapters return it from their first call. Form is the form that is right,
// mend the variable to set.
func (e *Endpoint) WrongURL(form, mend string) error {
	if e.usable {
		return nil
	}
	return e.Faultf(agent.FaultBadRequest, 0, 0,
		"%s: the base URL %q is not of the form %s; correct %s where the worker runs", e.name, e.base, form, mend)
}

// NoKey is the fault of a missing key: adapters return it from their first call
// where the provider demands one. Set names the variable that has it.
func (e *Endpoint) NoKey(set string) error {
	return e.Faultf(agent.FaultAuth, 0, 0, "%s: there is no API key; set %s in the worker's environment", e.name, set)
}

// Unreachable is the fault of a request without an answer. Check tells people
// what to look at.
func (e *Endpoint) Unreachable(err error, check string) error {
	if own, ok := errors.AsType[*agent.Error](err); ok && own.Provider != nil { // a client's, see Extra
		return e.Faultf(own.Provider.Kind, 0, 0, "%s was not asked: %s", e.name, own.Message)
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // the rest is the URL
	}
	kind := timeoutOr(err, agent.FaultTransient)
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		kind = agent.FaultTransient
	}
	fault := e.Faultf(kind, 0, 0, "%s gave no answer at %s: %v; check %s", e.name, e.addr, err, check)
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		if f, ok := errors.AsType[*agent.Error](fault); ok {
			f.Provider.Unsent = true
		}
	}
	return fault
}

// Truncated is the fault of an answer that ended before its end, after so many bytes
// (see [Body]); err is nil where it ended without an error. An answer that was too long
// ([Body], [Events]) is [agent.CodeBadOutput] and is not asked for again.
func (e *Endpoint) Truncated(status int, bytes int64, err error) error {
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	if errors.Is(err, errTooLong) {
		fault := e.Faultf(agent.FaultBadRequest, status, 0, "%s: the answer was given up after %d bytes: %v", e.name, bytes, err)
		if f, ok := errors.AsType[*agent.Error](fault); ok {
			f.Code = agent.CodeBadOutput
		}
		return fault
	}
	return e.Faultf(timeoutOr(err, agent.FaultTransient), status, 0, "%s: the stream broke off after %d bytes: %v", e.name, bytes, err)
}

// Cancelled is the error of a call whose context has ended. That is the caller's
// own wish, or its deadline, and so no fault of the provider.
func (e *Endpoint) Cancelled(err error) error { return fmt.Errorf("asking %s: %w", e.name, err) }

func timeoutOr(err error, kind agent.FaultKind) agent.FaultKind {
	if t, ok := errors.AsType[net.Error](err); ok && t.Timeout() {
		return agent.FaultTimeout
	}
	return kind
}

// address is the host and port of a URL, as a connection needs them.
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

// RedactedURL is a URL without its password, for an adapter's options to print.
func RedactedURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "(not a URL)"
	}
	return u.Redacted()
}

// HTTPClient is what adapters make their requests with: a copy of the client in
// their options, or one of our own for nil, which has no timeout, since the
// context of a call has one. A client that has no policy for redirects follows
// none, so that no other host is told the key.
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

// RetryAfter is how long a provider asks to wait, at most a day. Adapters give it
// to the fault of an answer that is no reply. It is in milliseconds, in seconds
// or until a date; where no header says it, it is the longest of resets: how long
// it takes until the limits that are used up are filled again, of which every
// provider tells in headers of its own.
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

// wait is a number of units, at least none and at most a day.
func wait(n float64, unit time.Duration) time.Duration {
	const most = 24 * time.Hour
	if math.IsNaN(n) || n <= 0 {
		return 0
	}
	return time.Duration(min(n, float64(most/unit)) * float64(unit))
}

const (
	// maxStream bounds an answer, in bytes. The longest replies of today's models come in
	// some 50 MB: each token has an event of several hundred bytes around it.
	maxStream = 128 << 20
	// maxWhole bounds what is read into memory as one: a line or an event of a stream, or
	// an answer that came at once. Decoded it takes many times that.
	maxWhole = 16 << 20
)

// errTooLong is the error of an answer that is longer than any reply.
var errTooLong = errors.New("it is too long")

// Body is the body of an answer, counted as it comes. Every piece, whatever is in
// it, is a sign of life: a stream in which only comments come is not dead. At most
// 128 MiB are read.
type Body struct {
	io.ReadCloser
	n    int64
	emit func(Delta)
}

// WatchBody puts a [Body] instead of an answer's own. Adapters do so before
// they read a reply.
func WatchBody(res *http.Response, emit func(Delta)) *Body {
	b := &Body{ReadCloser: res.Body, emit: emit}
	res.Body = b
	return b
}

// Read reads, counts and tells.
func (b *Body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n += int64(n)
	if n > 0 {
		b.emit(Delta{})
	}
	if b.n > maxStream {
		return n, errTooLong
	}
	return n, err
}

// Unemitted counts the bytes that an adapter keeps of an answer and emits nothing of, such as
// arguments and signatures. Whoever asks the model bounds what is emitted.
type Unemitted int

// keptPart is about what a part takes in memory beside what is written in it, in bytes.
const keptPart = 300

// AddPart counts a part, with so many bytes in it.
func (k *Unemitted) AddPart(size int) { k.AddBytes(keptPart + size) }

// AddBytes counts bytes that are added to a part.
func (k *Unemitted) AddBytes(size int) { *k += Unemitted(size) }

// Check returns an error if there are more than 16 MiB: the answer is to be given up, see
// [Endpoint.Truncated].
func (k *Unemitted) Check() error {
	if *k > maxWhole {
		return errTooLong
	}
	return nil
}

// Whole reads an answer that comes at once, of at most 16 MiB.
func (b *Body) Whole() ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(b, maxWhole+1))
	if err == nil && len(data) > maxWhole {
		return nil, errTooLong
	}
	return data, err
}

// Bytes is how many have come, for [Endpoint.Truncated].
func (b *Body) Bytes() int64 { return b.n }
