package web

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/inner"
)

func (f *Fetcher) refuses(t *testing.T, u, why string) {
	t.Helper()
	text, err := f.call(t, map[string]any{"url": u})
	require.ErrorIs(t, err, agent.CodeDenied, "%s: %s", u, text)
	require.ErrorContains(t, err, why, u)
}

// A name that is allowed does not lead inside, whatever its addresses are.
func TestNamesThatLeadInside(t *testing.T) {
	s := newSite(t, says("text/plain", "secret"))
	for _, addrs := range [][]string{
		{"127.0.0.1"}, {"127.1.2.3"}, {"0.0.0.0"}, {"10.0.0.1"}, {"100.64.0.1"}, {"169.254.169.254"}, {"224.0.0.1"}, {"127.0.0.1", "192.168.0.1"},
	} {
		f := fetcher(t, Options{Hosts: []string{"docs.example.com:" + s.port}}, map[string][][]string{"docs.example.com/A": {addrs}})
		f.refuses(t, s.on("docs.example.com", "/"), "not public")
	}
	for _, addr := range []string{"::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "::", "fd00:ec2::254", "fe80::1", "ff02::1"} {
		f := fetcher(t, Options{Hosts: []string{"docs.example.com:" + s.port}}, map[string][][]string{"docs.example.com/AAAA": {{addr}}, "docs.example.com/A": {{}}})
		f.refuses(t, s.on("docs.example.com", "/"), "not public")
	}
	require.Empty(t, s.paths())
}

// A name that changes its address between two requests gains nothing.
func TestNamesThatChange(t *testing.T) {
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		io.WriteString(w, "tea")
	})
	f := fetcher(t, Options{Hosts: []string{"docs.example.com:" + s.port}, IgnoreRobots: true}, map[string][][]string{"docs.example.com/A": {{outside}, {"127.0.0.1"}}})
	f.gets(t, s.on("docs.example.com", "/a"))
	f.refuses(t, s.on("docs.example.com", "/b"), "not public (this machine)")
	require.Equal(t, []string{"/a"}, s.paths())
	require.Equal(t, []string{outside}, s.at)
}

// A private host leads to private networks, and to this machine only by its own address.
func TestPrivateHosts(t *testing.T) {
	s := newSite(t, says("text/plain", "tea"))
	of := map[string][][]string{"wiki.acme.corp/A": {{"127.0.0.1"}}, "a.acme.corp/A": {{"127.0.0.1"}}, "meta.acme.corp/A": {{"169.254.169.254"}}, "docs.example.com/A": {{"10.0.0.1"}}}
	f := fetcher(t, Options{Hosts: []string{"docs.example.com:" + s.port}, Private: []string{"wiki.acme.corp:" + s.port, "*.acme.corp:" + s.port}, IgnoreRobots: true}, of)
	for _, name := range []string{"wiki.acme.corp", "a.acme.corp"} {
		f.refuses(t, s.on(name, "/"), "this machine")
	}
	f.refuses(t, s.on("meta.acme.corp", "/"), "reserved")
	f.refuses(t, s.on("docs.example.com", "/"), "private")
	f.refuses(t, s.on("127.0.0.1", "/"), "may not be fetched")
	require.Empty(t, s.paths())
	for _, name := range []string{"127.0.0.1", "localhost"} {
		f := fetcher(t, Options{Private: []string{name + ":" + s.port}, IgnoreRobots: true}, nil)
		require.Contains(t, f.gets(t, s.on(name, "/")), "> tea")
	}
	f = fetcher(t, Options{Private: []string{"wiki.acme.corp:" + s.port}, IgnoreRobots: true}, of)
	f.kindOf = func(netip.Addr) inner.Kind { return inner.Private } // of another machine
	require.Contains(t, f.gets(t, s.on("wiki.acme.corp", "/")), "> tea")
}

func TestRedirects(t *testing.T) {
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		to := r.URL.Query().Get("to")
		var n int
		if _, err := fmt.Sscanf(r.URL.Path, "/hop/%d", &n); err == nil && n > 0 {
			to = fmt.Sprintf("/hop/%d", n-1)
		}
		if to == "" {
			io.WriteString(w, "tea at "+r.Host)
			return
		}
		w.Header().Set("Set-Cookie", "a=b; Path=/")
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusFound)
	})
	f := outer(t, s, plain, "other.example.com", "inside.example.com")
	f.resolver = (&names{of: map[string][][]string{"docs.example.com/A": {{outside}}, "other.example.com/A": {{outside}}, "inside.example.com/A": {{"127.0.0.1"}}}}).resolver()
	from := func(to string) string { return s.on("docs.example.com", "/?to="+url.QueryEscape(to)) }
	require.Contains(t, f.gets(t, from("//other.example.com:"+s.port+"/x")), "["+s.on("other.example.com", "/x")+": text/plain")
	for _, r := range s.seen {
		for _, name := range []string{"Cookie", "Referer", "Authorization"} {
			require.Empty(t, r.Header.Get(name), name)
		}
	}
	require.Contains(t, f.gets(t, s.on("docs.example.com", "/hop/5")), "> tea")
	f.refuses(t, s.on("docs.example.com", "/hop/6"), "more than 5 times")
	f.refuses(t, from("/?to=/"+strings.Repeat("a", maxURL)), "may have at most")
	for to, why := range map[string]string{
		"http://evil.example/": "may not be fetched", s.on("inside.example.com", "/"): "not public", "http://127.0.0.1/": "may not be fetched", "http://169.254.169.254/latest/": "may not be fetched",
		"file:///etc/passwd": "no URL with https", "http://user:x@docs.example.com/": "user or password", "http://docs.example.com:6379/": "may not be fetched", "//[": "no URL", "/" + strings.Repeat("a", maxURL): "more than 2048",
	} {
		if len(to) < maxURL {
			f.refuses(t, from(to), why)
		}
	}
	// What a server writes into a Location is not read whole.
	for _, to := range []string{"//" + strings.Repeat("a", 1000) + "[", "gopher://" + strings.Repeat("a", 1000)} {
		a, err := f.follow(mustURL(t, "http://docs.example.com/"+strings.Repeat("a", 1000)), to)
		require.Nil(t, a)
		require.ErrorIs(t, err, agent.CodeDenied)
		require.Less(t, len(err.Error()), 600)
	}
	for _, at := range s.at {
		require.Equal(t, outside, at)
	}
}

// What was encrypted stays encrypted.
func TestNoDowngrade(t *testing.T) {
	plainSite := newSite(t, says("text/plain", "tea"))
	secure := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, plainSite.on("127.0.0.1", "/"), http.StatusFound)
	}))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	at := strings.TrimPrefix(secure.URL, "https://")
	f := fetcher(t, Options{Private: []string{at, "127.0.0.1:" + plainSite.port}, IgnoreRobots: true}, nil)
	_, err := f.call(t, map[string]any{"url": secure.URL})
	require.EqualError(t, err, at+" can't be read: its certificate is not valid for 127.0.0.1")
	plainly := strings.Replace(plainSite.on("127.0.0.1", "/"), "http:", "https:", 1)
	_, err = f.call(t, map[string]any{"url": plainly})
	require.ErrorContains(t, err, "it does not speak TLS")
	f.sender.TLSClientConfig = &tls.Config{RootCAs: secure.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	f.refuses(t, secure.URL, "not encrypted")
	require.Empty(t, plainSite.paths())
}

// A proxy is used only if the options say so, and names of direct requests are checked
// beside it.
func TestProxy(t *testing.T) {
	proxy := newSite(t, says("text/plain", "by proxy"))
	s := newSite(t, says("text/plain", "tea"))
	t.Setenv("HTTP_PROXY", proxy.URL)
	f := outer(t, s, plain)
	require.Contains(t, f.gets(t, s.on("docs.example.com", "/")), "> tea")
	require.Nil(t, f.sender.Proxy)
	o := plain
	o.Proxy = true
	require.NotNil(t, outer(t, s, o).sender.Proxy)

	f = fetcher(t, Options{Hosts: []string{"docs.example.com:" + s.port, "direct.example.com:" + s.port}, IgnoreRobots: true}, map[string][][]string{"direct.example.com/A": {{"127.0.0.1"}}})
	f.sender = f.transport(func(r *http.Request) (*url.URL, error) {
		if strings.HasPrefix(r.URL.Host, "direct.") {
			return nil, nil
		}
		return mustURL(t, proxy.on("127.0.0.1", "")), nil
	})
	require.Contains(t, f.gets(t, s.on("docs.example.com", "/")), "> by proxy")
	f.refuses(t, s.on("direct.example.com", "/"), "not public")
}
