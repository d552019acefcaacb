package web

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/tool"
)

const (
	maxBody      = 5 << 20 // bytes of a page, packed and unpacked
	maxRedirects = 5
	answerTime   = 30 * time.Second
	userAgent    = agentName + "/1 (web_fetch; +https://github.com/fermata-agents/fermata)"
)

// answer is what a server sent.
type answer struct {
	url    *url.URL // after redirects
	status int
	header http.Header
	body   []byte
	cut    bool // the body is longer
}

// visit gets a page and follows its redirects. may is asked about each URL, and more
// returns what is added to a request's header.
func (f *Fetcher) visit(ctx context.Context, u *url.URL, most int, may func(*url.URL) error, more func(*url.URL) http.Header) (*answer, error) {
	for range maxRedirects + 1 {
		if err := may(u); err != nil {
			return nil, err
		}
		a, err := f.get(ctx, u, most, more(u))
		if err != nil {
			return nil, f.explain(ctx, u, err)
		}
		location := a.header.Get("Location")
		if location == "" || !slices.Contains([]int{301, 302, 303, 307, 308}, a.status) {
			return a, nil
		}
		if u, err = f.follow(u, location); err != nil {
			return nil, err
		}
	}
	return nil, tool.Refuse("it redirects more than %d times, at last to %s", maxRedirects, brief(u.String()))
}

// get sends one request. Few requests to one host, and not too many in all, are under way
// at once.
func (f *Fetcher) get(ctx context.Context, u *url.URL, most int, more http.Header) (*answer, error) {
	done, err := f.slots.take(ctx, u.Host)
	if err != nil {
		return nil, err
	}
	defer done()
	ctx, cancel := context.WithTimeoutCause(ctx, f.answerTime, errSlow)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	maps.Copy(req.Header, more)
	req.Header.Set("User-Agent", userAgent)
	req.Header.Set("Accept", "text/markdown, text/html;q=0.9, text/plain;q=0.8, application/json;q=0.8, */*;q=0.5")
	req.Header.Set("Accept-Encoding", "gzip")
	// Not a client: that one follows redirects by itself and says where it comes from.
	resp, err := f.sender.RoundTrip(req)
	if err != nil {
		return nil, errors.Join(err, context.Cause(ctx))
	}
	defer resp.Body.Close()
	a := &answer{url: u, status: resp.StatusCode, header: resp.Header}
	if a.status == http.StatusOK || a.status == http.StatusNonAuthoritativeInfo {
		if a.body, a.cut, err = read(resp, most); err != nil {
			return nil, errors.Join(err, context.Cause(ctx))
		}
	}
	return a, nil
}

var (
	errSlow = errors.New("it takes too long")
	errGzip = errors.New("its gzip data can't be read")
)

// read reads a body up to most bytes. It counts the packed bytes as well: a packed body
// can be endless and hold nothing.
func read(resp *http.Response, most int) (body []byte, cut bool, err error) {
	packed := &io.LimitedReader{R: resp.Body, N: int64(most) + 1}
	var r io.Reader = packed
	switch strings.ToLower(resp.Header.Get("Content-Encoding")) {
	case "", "identity":
	case "gzip", "x-gzip":
		if r, err = gzip.NewReader(packed); err != nil {
			return nil, false, errors.Join(errGzip, err)
		}
	default:
		return nil, false, tool.Refuse("the page is packed in a way that was not asked for")
	}
	body, err = io.ReadAll(io.LimitReader(r, int64(most)+1))
	if packed.N <= 0 {
		err = nil // what was cut off is missing, and that is said
	}
	return body[:min(len(body), most)], len(body) > most || packed.N <= 0, err
}

// explain returns an error in words for a model. These are ours: an error's text may have what
// the server wrote, such as a certificate's names or a line that is no HTTP. What another try
// can't change is refused.
func (f *Fetcher) explain(ctx context.Context, u *url.URL, err error) error {
	var what *agent.Error
	var dns *net.DNSError
	var op *net.OpError
	var certificate *tls.CertificateVerificationError
	var noTLS tls.RecordHeaderError
	switch {
	case errors.As(err, &what):
		return what
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, errSlow):
		return fmt.Errorf("%s did not answer within %s", u.Host, f.answerTime)
	case errors.As(err, &dns) && dns.IsNotFound:
		return tool.Refuse("there is no host %s", u.Host)
	case errors.As(err, &dns):
		return fmt.Errorf("the address of %s can't be found now", u.Host)
	case errors.As(err, &certificate):
		return fmt.Errorf("%s can't be read: its certificate is not valid for %s", u.Host, u.Hostname())
	case errors.As(err, &noTLS) || errors.Is(err, http.ErrSchemeMismatch):
		return fmt.Errorf("%s can't be read: it does not speak TLS", u.Host)
	case errors.Is(err, errGzip):
		return fmt.Errorf("%s can't be read: %w", u.Host, errGzip)
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%s can't be read: its answer breaks off", u.Host)
	case errors.As(err, &op) && op.Err != nil:
		return fmt.Errorf("%s can't be reached: %s", u.Host, op.Err)
	}
	return fmt.Errorf("%s can't be read: it does not speak HTTP, or its header has more than %d kB", u.Host, maxHeader>>10)
}

// brief returns the beginning of a URL: a server may have written it.
func brief(u string) string {
	const most = 200
	if len(u) > most {
		u = strings.ToValidUTF8(u[:most], "") + "…"
	}
	return u
}

// oneLine returns what another program wrote on one line, without what can't be seen.
func oneLine(text string) string {
	const most = 300
	text = strings.Join(strings.Fields(clean(text)), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
