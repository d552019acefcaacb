package web

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/fermata-agents/fermata/internal/inner"
	"github.com/fermata-agents/fermata/tool"
)

// outside stands for the internet: the tests' Fetcher takes this address for a public one.
const outside = "127.0.0.2"

// site is a server that all addresses of this machine lead to.
type site struct {
	*httptest.Server
	port string
	mu   sync.Mutex
	seen []*http.Request
	at   []string // the addresses that were asked
}

func newSite(t *testing.T, h http.HandlerFunc) *site {
	t.Helper()
	s := &site{}
	l, err := net.Listen("tcp", "0.0.0.0:0")
	require.NoError(t, err)
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at, _, _ := net.SplitHostPort(r.Context().Value(http.LocalAddrContextKey).(net.Addr).String())
		s.mu.Lock()
		s.seen, s.at = append(s.seen, r), append(s.at, at)
		s.mu.Unlock()
		h(w, r)
	}))
	s.Listener.Close()
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	s.port = strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	return s
}

// paths are the paths that were asked for.
func (s *site) paths() (list []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.seen {
		list = append(list, r.URL.RequestURI())
	}
	return list
}

// on returns the site's URL under a name.
func (s *site) on(host, path string) string { return "http://" + net.JoinHostPort(host, s.port) + path }

// names answers for names with addresses, each time with the next ones.
type names struct {
	mu sync.Mutex
	of map[string][][]string
}

func (n *names) next(name string) (list []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := n.of[name]
	if len(all) == 0 {
		return nil
	}
	if len(all) > 1 {
		n.of[name] = all[1:]
	}
	return all[0]
}

// resolver is a resolver that asks n.
func (n *names) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go n.serve(theirs)
		return ours, nil
	}}
}

// serve answers one question after another, as over TCP.
func (n *names) serve(c net.Conn) {
	defer c.Close()
	for {
		var size uint16
		if binary.Read(c, binary.BigEndian, &size) != nil {
			return
		}
		raw := make([]byte, size)
		var m dnsmessage.Message
		if _, err := io.ReadFull(c, raw); err != nil || m.Unpack(raw) != nil {
			return
		}
		m.Response, m.RecursionAvailable = true, true
		q := m.Questions[0]
		list := n.next(q.Name.String()[:q.Name.Length-1] + "/" + q.Type.String()[4:])
		if list == nil && q.Type == dnsmessage.TypeA {
			m.RCode = dnsmessage.RCodeNameError
		}
		for _, text := range list {
			r := dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, Type: q.Type}}
			if addr := netip.MustParseAddr(text); q.Type == dnsmessage.TypeA {
				r.Body = &dnsmessage.AResource{A: addr.As4()}
			} else {
				r.Body = &dnsmessage.AAAAResource{AAAA: addr.As16()}
			}
			m.Answers = append(m.Answers, r)
		}
		m.Additionals = nil
		out, err := m.Pack()
		if err != nil || binary.Write(c, binary.BigEndian, uint16(len(out))) != nil {
			return
		}
		if _, err := c.Write(out); err != nil {
			return
		}
	}
}

// fetcher returns a Fetcher that knows names. Each stands for the site's port too.
func fetcher(t testing.TB, o Options, of map[string][][]string) *Fetcher {
	t.Helper()
	f, err := New(&o)
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	f.resolver = (&names{of: of}).resolver()
	f.kindOf = func(ip netip.Addr) inner.Kind {
		if ip.Unmap().String() == outside {
			return inner.Outer
		}
		return kindOf(ip)
	}
	return f
}

// outer returns a Fetcher for a site at docs.example.com, and at any further names.
func outer(t testing.TB, s *site, o Options, more ...string) *Fetcher {
	of := map[string][][]string{}
	for _, name := range append(more, "docs.example.com") {
		o.Hosts = append(o.Hosts, name+":"+s.port)
		of[name+"/A"] = [][]string{{outside}}
	}
	return fetcher(t, o, of)
}

// get calls the tool.
func (f *Fetcher) call(t testing.TB, args map[string]any) (string, error) {
	t.Helper()
	raw, err := json.Marshal(args)
	require.NoError(t, err)
	return f.Tool().Call(t.Context(), &tool.Call{Tool: FetchTool, Arguments: raw})
}

func (f *Fetcher) gets(t testing.TB, u string) string {
	t.Helper()
	text, err := f.call(t, map[string]any{"url": u})
	require.NoError(t, err)
	return text
}

func mustURL(t testing.TB, text string) *url.URL {
	u, err := url.Parse(text)
	require.NoError(t, err)
	return u
}
