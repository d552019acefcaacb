package web

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The cases of RFC 9309, 2.2.
func TestRobots(t *testing.T) {
	for _, c := range []struct {
		text, path string
		allows     bool
	}{
		{"", "/a", true},
		{"User-agent: *\nDisallow: /", "/a", false},
		{"User-agent: *\nDisallow: /", "/robots.txt", true},
		{"User-agent: *\nDisallow:", "/a", true},
		{"\uFEFFuser-AGENT : *\r\nDISALLOW:/a # all\r\n", "/a/b", false},
		{"User-agent: other\nDisallow: /", "/a", true},
		{"User-agent: *\nDisallow: /\n\nUser-agent: Fermata/2\nAllow: /", "/a", true},
		{"User-agent: fermata\nDisallow: /a\nUser-agent: *\nDisallow: /b", "/b", true},
		{"User-agent: fermata\nDisallow: /a\nUser-agent: fermata\nDisallow: /b", "/b", false},
		{"User-agent: x\nUser-agent: fermata\nSitemap: y\nDisallow: /a", "/a", false},
		{"User-agent: fermatax\nDisallow: /", "/a", true},
		{"Disallow: /", "/a", true},
		{"User-agent: *\nDisallow: /a\nAllow: /a/b", "/a/b/c", true},
		{"User-agent: *\nAllow: /a/b\nDisallow: /a", "/a/c", false},
		{"User-agent: *\nDisallow: /a\nAllow: /a", "/a", true},
		{"User-agent: *\nDisallow: *.gif$", "/x.gif", false},
		{"User-agent: *\nDisallow: *.gif$", "/x.gif?a", true},
		{"User-agent: *\nDisallow: /a*b*c", "/a1b2c3", false},
		{"User-agent: *\nDisallow: /a*b*c", "/a1c2b3", true},
		{"User-agent: *\nDisallow: /a$", "/a", false},
		{"User-agent: *\nDisallow: /a$", "/ab", true},
		{"User-agent: *\nDisallow: /*?q=", "/x?q=1", false},
		{"User-agent: *\nDisallow: /\u00e9", "/%C3%A9/x", false},
		{"User-agent: *\nDisallow: a", "/a", true},
	} {
		require.Equal(t, c.allows, parseRobots(c.text).allows(mustURL(t, "http://example.com"+c.path)), "%q %s", c.text, c.path)
	}
}

// A host has few rules, however long its robots.txt is.
func TestRobotsAreBounded(t *testing.T) {
	rules := parseRobots("User-agent: *\nDisallow: /secret\n" + strings.Repeat("allow:x\n", 64_000) + "Disallow: /late\n")
	require.Len(t, rules, maxRules)
	require.False(t, rules.allows(mustURL(t, "http://example.com/secret")))
	require.True(t, rules.allows(mustURL(t, "http://example.com/late")), "the rest is ignored")
	rules = parseRobots("User-agent: fermata\n" + strings.Repeat("Disallow: /"+strings.Repeat("x", 999)+"\n", 100))
	require.Len(t, rules, maxPatterns/1000)
}

func TestRobotsAreObeyed(t *testing.T) {
	status, rules := http.StatusOK, "User-agent: *\nDisallow: /secret\n"
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/robots.txt":
			w.Header().Set("Location", "http://evil.example/robots.txt")
			w.WriteHeader(status)
			io.WriteString(w, rules)
		case "/old":
			http.Redirect(w, r, "/secret", http.StatusFound)
		default:
			io.WriteString(w, "tea")
		}
	})
	f := outer(t, s, Options{})
	now := time.Now()
	f.now = func() time.Time { return now }
	on := func(path string) string { return s.on("docs.example.com", path) }
	require.Contains(t, f.gets(t, on("/open")), "> tea")
	f.refuses(t, on("/secret/1"), "web.robots: false")
	f.refuses(t, on("/old"), "web.robots: false")
	require.Equal(t, []string{"/robots.txt", "/open", "/old"}, s.paths())
	require.Contains(t, outer(t, s, plain).gets(t, on("/secret")), "> tea")

	now = now.Add(2 * robotsTime)
	status = http.StatusServiceUnavailable
	_, err := f.call(t, map[string]any{"url": on("/other")})
	require.ErrorContains(t, err, "the robots.txt of docs.example.com:"+s.port+" is asked for first")
	status = http.StatusFound
	f.refuses(t, on("/other"), "evil.example:80 may not be fetched")
	status = http.StatusNotFound
	require.Contains(t, f.gets(t, on("/secret")), "> tea", "a host without rules allows all")
}
