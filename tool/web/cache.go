package web

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

const (
	maxKept      = 64 << 20 // bytes of pages that are kept
	maxKeptPages = 2000
	// Without a word of the server, a page is kept so long: a long one is read in parts.
	briefly = time.Minute
	// No page is taken for fresh for longer, whatever its server says.
	longest = 24 * time.Hour
	// A longer ETag or Last-Modified is not kept.
	maxValidator = 1 << 10
)

// kept is a page that was fetched, and until when it need not be asked for again.
type kept struct {
	page           *page
	until          time.Time
	etag, modified string
}

// cache keeps pages by the URL that was asked for. It is safe for concurrent use.
type cache struct {
	mu    sync.Mutex
	pages *simplelru.LRU[string, *kept]
	bytes int
}

func newCache() *cache {
	c := &cache{}
	c.pages, _ = simplelru.NewLRU(maxKeptPages, func(_ string, k *kept) { c.bytes -= k.size() }) // fails only for sizes below 1
	return c
}

func (k *kept) size() int {
	return len(k.page.text) + len(k.page.file) + len(k.page.url) + len(k.page.about) + len(k.etag) + len(k.modified) + 1<<10
}

// validator returns a value of an answer's header that later asks whether the page has changed.
func validator(h http.Header, name string) string {
	if value := h.Get(name); len(value) <= maxValidator {
		return value
	}
	return ""
}

func (c *cache) get(url string) *kept {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, _ := c.pages.Get(url)
	return k
}

// put keeps a page, or forgets the one before if k is nil.
func (c *cache) put(url string, k *kept) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// Adding over an entry would not report the old one as evicted.
	c.pages.Remove(url)
	if k == nil || k.size() > maxKept/8 {
		return
	}
	c.bytes += k.size()
	c.pages.Add(url, k)
	for c.bytes > maxKept {
		c.pages.RemoveOldest()
	}
}

// validators returns the header that asks whether a page has changed.
func (k *kept) validators() http.Header {
	h := http.Header{}
	if k.etag != "" {
		h.Set("If-None-Match", k.etag)
	}
	if k.modified != "" {
		h.Set("If-Modified-Since", k.modified)
	}
	return h
}

// fresh returns until when an answer need not be asked for again, and whether it may be
// kept at all (RFC 9111). All sessions of a worker share what is kept, so a page for one
// reader is not.
func fresh(h http.Header, now time.Time) (until time.Time, keep bool) {
	said := directives(h.Values("Cache-Control"))
	has := func(name string) bool { _, ok := said[name]; return ok }
	if has("no-store") || has("private") || strings.Contains(strings.Join(h.Values("Vary"), ","), "*") {
		return now, false
	}
	age := seconds(h.Get("Age"))
	for _, name := range []string{"s-maxage", "max-age"} {
		if has(name) && !has("no-cache") {
			return now.Add(min(max(seconds(said[name])-age, 0), longest)), true
		}
	}
	if has("no-cache") {
		return now, true
	}
	if expires, err := http.ParseTime(h.Get("Expires")); err == nil {
		return now.Add(min(max(expires.Sub(now), 0), longest)), true
	}
	return now.Add(briefly), true
}

// directives reads the values of a Cache-Control header.
func directives(values []string) map[string]string {
	said := map[string]string{}
	for part := range strings.SplitSeq(strings.Join(values, ","), ",") {
		name, value, _ := strings.Cut(part, "=")
		said[strings.ToLower(strings.TrimSpace(name))] = strings.Trim(strings.TrimSpace(value), `"`)
	}
	return said
}

// seconds reads a number of seconds; what is no such number is zero.
func seconds(text string) time.Duration {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0
	}
	return time.Duration(n) * time.Second
}
