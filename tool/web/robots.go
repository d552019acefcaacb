package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/fermata-agents/fermata/tool"
)

// agentName is what robots.txt calls this tool.
const agentName = "fermata"

const (
	maxRobots  = 500 << 10 // bytes of a robots.txt that count (RFC 9309, 2.5)
	robotsTime = time.Hour // how long one counts
	robotsKept = 100       // hosts
	// Rules beyond these are ignored, as those beyond maxRobots are: they ask for courtesy and
	// protect nothing, and to refuse the whole host would help nobody.
	maxRules    = 1000
	maxPatterns = 64 << 10 // bytes
)

// robotsOf are the rules of a host.
type robotsOf struct {
	robots
	until time.Time
}

func newRobots() *lru.Cache[string, robotsOf] {
	c, _ := lru.New[string, robotsOf](robotsKept) // fails only for sizes below 1
	return c
}

// robotsAllow returns why a host's robots.txt keeps a page from being fetched; nil if it
// does not.
func (f *Fetcher) robotsAllow(ctx context.Context, u *url.URL) error {
	if !f.polite {
		return nil
	}
	top := &url.URL{Scheme: u.Scheme, Host: u.Host}
	r, ok := f.rules.Get(top.String())
	if !ok || !f.now().Before(r.until) {
		r = robotsOf{until: f.now().Add(robotsTime)}
		a, err := f.visit(ctx, top.JoinPath("robots.txt"), maxRobots, func(*url.URL) error { return nil }, func(*url.URL) http.Header { return nil })
		switch {
		case err != nil:
			return fmt.Errorf("the robots.txt of %s is asked for first: %w", u.Host, err)
		// Nobody knows what a host that fails allows (RFC 9309, 2.3.1.4).
		case a.status >= 500 || a.status == http.StatusTooManyRequests:
			return fmt.Errorf("the robots.txt of %s is asked for first: %w", u.Host, failed(a))
		case a.status == http.StatusOK:
			r.robots = parseRobots(string(a.body))
		}
		f.rules.Add(top.String(), r)
	}
	if !r.allows(u) {
		return tool.Refuse("%s asks programs not to fetch this page (robots.txt); the operator may set web.robots: false in the agents file", u.Host)
	}
	return nil
}

// robots are the rules of a robots.txt that are for this tool.
type robots []robotsRule

type robotsRule struct {
	allow bool
	path  string // a pattern
}

// parseRobots reads a robots.txt as RFC 9309 says. Groups for this tool count, and those
// for everybody only if there are none.
func parseRobots(text string) robots {
	var all, own robotsList
	var forAll, forOwn, named, rules bool
	for line := range strings.Lines(strings.TrimPrefix(text, "\uFEFF")) {
		line, _, _ = strings.Cut(line, "#")
		key, value, _ := strings.Cut(line, ":")
		key, value = strings.ToLower(strings.TrimSpace(key)), strings.TrimSpace(value)
		switch key {
		case "user-agent":
			if rules { // a new group begins
				forAll, forOwn, rules = false, false, false
			}
			name, _, _ := strings.Cut(value, "/")
			mine := strings.EqualFold(strings.TrimSpace(name), agentName)
			forAll, forOwn, named = forAll || value == "*", forOwn || mine, named || mine
		case "allow", "disallow":
			rules = true
			r := robotsRule{key == "allow", encoded(value)}
			if value != "" && forAll {
				all.add(r)
			}
			if value != "" && forOwn {
				own.add(r)
			}
		}
	}
	if named {
		return own.rules
	}
	return all.rules
}

// robotsList collects rules within the bounds.
type robotsList struct {
	rules robots
	bytes int
}

func (l *robotsList) add(r robotsRule) {
	if l.bytes += len(r.path); len(l.rules) < maxRules && l.bytes <= maxPatterns {
		l.rules = append(l.rules, r)
	}
}

// allows reports whether a page may be fetched. The longest pattern that matches decides,
// and allow wins over disallow.
func (r robots) allows(u *url.URL) bool {
	path := encoded(u.RequestURI())
	allow, longest := true, -1
	for _, rule := range r {
		if n := len(rule.path); (n > longest || n == longest && rule.allow) && matches(rule.path, path) {
			allow, longest = rule.allow, n
		}
	}
	return allow || path == "/robots.txt"
}

// matches reports whether a path begins as a pattern says. "*" stands for anything, and
// "$" at the end for the end of the path.
func matches(pattern, path string) bool {
	pattern, whole := strings.CutSuffix(pattern, "$")
	parts := strings.Split(pattern, "*")
	rest, ok := strings.CutPrefix(path, parts[0])
	if !ok {
		return false
	}
	for i, part := range parts[1:] {
		if whole && i == len(parts)-2 {
			return strings.HasSuffix(rest, part)
		}
		at := strings.Index(rest, part)
		if at < 0 {
			return false
		}
		rest = rest[at+len(part):]
	}
	return !whole || rest == ""
}

// encoded escapes spaces and what is no ASCII, as requests have it.
func encoded(path string) string {
	var b strings.Builder
	for _, c := range []byte(path) {
		if c > 0x20 && c < 0x7f {
			b.WriteByte(c)
			continue
		}
		const hex = "0123456789ABCDEF"
		b.WriteString("%" + string(hex[c>>4]) + string(hex[c&15]))
	}
	return b.String()
}
