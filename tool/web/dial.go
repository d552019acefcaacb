package web

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"syscall"
	"time"

	"github.com/fermata-agents/fermata/internal/inner"
	"github.com/fermata-agents/fermata/tool"
)

const (
	maxHeader = 64 << 10 // bytes of the header of an answer
	dialTime  = 10 * time.Second
)

// transport returns what sends requests, through a proxy unless that is nil. It has no
// cookies and no credentials.
func (f *Fetcher) transport(proxy func(*http.Request) (*url.URL, error)) *http.Transport {
	t := &http.Transport{
		Proxy:                  proxy,
		DialContext:            f.dial,
		TLSHandshakeTimeout:    dialTime,
		ForceAttemptHTTP2:      true,
		MaxResponseHeaderBytes: maxHeader,
		// get unpacks, so that it can count both sizes.
		DisableCompression: true,
		MaxIdleConns:       100,
		IdleConnTimeout:    30 * time.Second,
	}
	if proxy == nil {
		return t
	}
	for _, scheme := range []string{"http", "https"} {
		u, err := proxy(&http.Request{URL: &url.URL{Scheme: scheme, Host: "example.com"}})
		if err == nil && u != nil {
			f.proxies = append(f.proxies, proxyAddr(u))
		}
	}
	return t
}

func proxyAddr(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80", "socks5": "1080", "socks5h": "1080"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// dial connects to a host. Each address is checked when it is known and before anything is
// sent to it: a name may have another address a moment later.
func (f *Fetcher) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	d := &net.Dialer{Timeout: dialTime, Resolver: f.resolver}
	if slices.Contains(f.proxies, addr) {
		return d.DialContext(ctx, network, addr)
	}
	name, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	may := f.permit(name, port)
	d.Control = func(_, at string, _ syscall.RawConn) error {
		ip, err := netip.ParseAddrPort(at)
		if err != nil {
			return err
		}
		if kind := f.kindOf(ip.Addr()); !slices.Contains(may, kind) {
			return tool.Refuse("%s has an address that is not public (%s); if that is right, the operator names it under web.private of the agents file", name, kinds[kind])
		}
		return nil
	}
	return d.DialContext(ctx, network, addr)
}

var kinds = map[inner.Kind]string{inner.Private: "private", inner.Loopback: "this machine", inner.Reserved: "reserved"}

// kindOf returns where an address leads. A public address of this machine's own counts as
// private: what listens there may be closed to others.
func kindOf(ip netip.Addr) inner.Kind {
	kind := inner.KindOf(ip)
	if kind != inner.Outer {
		return kind
	}
	own, err := net.InterfaceAddrs()
	for _, a := range own {
		if p, ok := a.(*net.IPNet); ok && p.IP.Equal(ip.AsSlice()) {
			return inner.Private
		}
	}
	if err != nil {
		return inner.Private
	}
	return inner.Outer
}
