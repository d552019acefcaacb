package web

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/inner"
	"github.com/fermata-agents/fermata/tool"
)

// FetchTool is the name of the tool.
const FetchTool = "web_fetch"

// Options says what may be fetched. The zero value allows nothing, and New refuses it.
type Options struct {
	// Hosts may be fetched at public addresses: names such as docs.example.com,
	// "*.example.com" for all names below example.com, or "*" for every name. An entry with
	// a port, as in example.com:8443, stands for that port, and others for 80 and 443.
	Hosts []string
	// Private are hosts, written in the same way except for "*", that may be fetched at
	// addresses of private networks too. This machine is fetched only as localhost or by
	// an address that is named here.
	Private []string
	// IgnoreRobots fetches what a robots.txt asks programs not to fetch.
	IgnoreRobots bool
	// Proxy sends requests through the proxy that the environment names (HTTPS_PROXY,
	// HTTP_PROXY, NO_PROXY). The proxy then resolves names, and has to refuse private
	// addresses itself.
	Proxy bool
}

// Fetcher fetches pages. It keeps them for a while, so its calls must be of one tenant. It
// is safe for concurrent use. Close it after use.
type Fetcher struct {
	hosts   []host
	allowed string   // the hosts, for a model
	proxies []string // addresses of proxies
	polite  bool     // robots.txt is obeyed

	sender  *http.Transport
	slots   *slots
	cache   *cache
	rules   *lru.Cache[string, robotsOf] // by scheme and host
	convert chan struct{}

	// Tests replace these.
	resolver   *net.Resolver
	kindOf     func(netip.Addr) inner.Kind
	now        func() time.Time
	answerTime time.Duration
}

// New returns a Fetcher. Without hosts, or with one that can't be read, it returns an
// [agent.CodeInvalidInput] error.
func New(o *Options) (*Fetcher, error) {
	if o == nil || len(o.Hosts)+len(o.Private) == 0 {
		return nil, agent.Errorf(agent.CodeInvalidInput, "%s may fetch nothing: name hosts", FetchTool).WithPath("hosts")
	}
	hosts, err := parseHosts(o.Hosts, o.Private)
	if err != nil {
		return nil, agent.Errorf(agent.CodeInvalidInput, "%w", err).WithPath("hosts")
	}
	f := &Fetcher{
		hosts: hosts, allowed: oneLine(strings.Join(slices.Concat(o.Hosts, o.Private), ", ")), polite: !o.IgnoreRobots,
		slots: newSlots(), cache: newCache(), rules: newRobots(), convert: make(chan struct{}, maxConversions),
		kindOf: kindOf, now: time.Now, answerTime: answerTime,
	}
	var proxy func(*http.Request) (*url.URL, error)
	if o.Proxy {
		proxy = http.ProxyFromEnvironment
	}
	f.sender = f.transport(proxy)
	return f, nil
}

// Close closes idle connections.
func (f *Fetcher) Close() error {
	f.sender.CloseIdleConnections()
	return nil
}

const fetchHelp = "Gets a page of the web by its URL. HTML becomes Markdown; text, JSON and XML stay as they are; images and PDFs are shown; of other files only the type and size are. " +
	"A long page comes in parts: the first line of the answer says how to read on. Lines that begin with \">\" are the page's own words."

type fetchArgs struct {
	URL   string `json:"url" jsonschema:"the page's URL, with https:// or http://"`
	From  int    `json:"from_line,omitempty" jsonschema:"the first line to read, counted from 1"`
	Lines int    `json:"lines,omitempty" jsonschema:"how many lines to read; 2000 if left out"`
}

// Tool returns web_fetch.
func (f *Fetcher) Tool() tool.Tool {
	return tool.New(FetchTool, fetchHelp, f.fetch, &tool.Options{ReadOnly: true, Attempts: 2, Timeout: 2 * time.Minute})
}

func (f *Fetcher) fetch(ctx context.Context, c *tool.Call, in fetchArgs) (string, error) {
	if in.From < 0 || in.Lines < 0 {
		return "", tool.Refuse("from_line and lines count from 1")
	}
	u, err := f.check(in.URL)
	if err != nil {
		return "", err
	}
	p, err := f.page(ctx, u)
	if err != nil {
		return "", err
	}
	if text, shown, err := p.showFile(ctx, c); shown || err != nil {
		return text, err
	}
	most := in.Lines
	if most == 0 {
		most = defaultLines
	}
	return p.show(max(in.From, 1), most)
}

// page returns a page as it is kept, or fetches it.
func (f *Fetcher) page(ctx context.Context, u *url.URL) (*page, error) {
	key := u.String()
	k := f.cache.get(key)
	if k != nil && f.now().Before(k.until) {
		return k.page, nil
	}
	a, err := f.visit(ctx, u, maxBody, func(u *url.URL) error { return f.robotsAllow(ctx, u) }, func(u *url.URL) http.Header {
		if k != nil && k.page.url == u.String() {
			return k.validators()
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	now := f.now()
	until, keep := fresh(a.header, now)
	if a.url.String() != key { // the redirect itself may change
		until = earlier(until, now.Add(briefly))
	}
	var p *page
	switch {
	case a.status == http.StatusNotModified && k != nil:
		p = k.page
	case a.status != http.StatusOK && a.status != http.StatusNonAuthoritativeInfo:
		return nil, failed(a)
	default:
		if p, err = f.read(ctx, a); err != nil {
			return nil, err
		}
		k = nil // its validators are those of the page before
	}
	f.keep(key, p, a.header, k, until, keep)
	return p, nil
}

// keep keeps a page. before is what was kept, if the page has not changed.
func (f *Fetcher) keep(key string, p *page, h http.Header, before *kept, until time.Time, keep bool) {
	if !keep {
		f.cache.put(key, nil)
		return
	}
	k := &kept{page: p, until: until, etag: validator(h, "ETag"), modified: validator(h, "Last-Modified")}
	if before != nil && k.etag == "" {
		k.etag = before.etag
	}
	if before != nil && k.modified == "" {
		k.modified = before.modified
	}
	f.cache.put(key, k)
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// failed returns the error of an answer without a page. Only what may be over soon is
// worth another try.
func failed(a *answer) error {
	text := fmt.Sprintf("%s answers %d %s", brief(a.url.String()), a.status, http.StatusText(a.status))
	switch {
	case a.status >= 500 || a.status == http.StatusTooManyRequests || a.status == http.StatusRequestTimeout:
		return fmt.Errorf("%s", text)
	case a.status == http.StatusUnauthorized || a.status == http.StatusForbidden:
		text += "; this tool never signs in"
	}
	return tool.Refuse("%s", text)
}

// read makes a page of an answer.
func (f *Fetcher) read(ctx context.Context, a *answer) (*page, error) {
	declared := a.header.Get("Content-Type")
	media, note := typeOf(declared, a.body)
	p := &page{url: a.url.String(), about: strings.Join(nonEmpty(media, size(len(a.body), a.cut), note), ", "), shown: textual(media)}
	if !p.shown {
		if !a.cut && isMedia(a.body) {
			p.file = a.body
		}
		return p, nil
	}
	if !isHTML(media) {
		p.text = clean(decode(a.body, declared))
		return p, nil
	}
	text, cut, err := f.markdown(ctx, a.body, declared, a.url)
	if err != nil {
		return nil, err
	}
	if cut {
		p.about += ", its end is left out: it is too long"
	}
	p.text = clean(text)
	return p, nil
}

func nonEmpty(list ...string) (out []string) {
	for _, s := range list {
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}

// size says how large a body is.
func size(n int, cut bool) string {
	switch {
	case cut:
		return "longer than can be read: its first " + size(n, false)
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1000_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1000)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1000_000)
}
