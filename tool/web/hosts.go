package web

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/idna"

	"github.com/fermata-agents/fermata/internal/inner"
	"github.com/fermata-agents/fermata/tool"
)

// maxURL is how many bytes a URL may have.
const maxURL = 2048

// host is an entry of [Options.Hosts] or [Options.Private].
type host struct {
	name    string     // in ASCII and lower case; empty for every host
	addr    netip.Addr // if the entry is an address
	port    string     // empty for 80 and 443
	below   bool       // it stands for all names below name
	private bool
}

// parseHost reads an entry: a name, an address, "*.NAME" or "*", with or without a port.
func parseHost(entry string, private bool) (host, error) {
	name, h := entry, host{private: private}
	// A port follows the last colon, unless that colon belongs to an IPv6 address.
	if before, port, ok := cutPort(entry); ok {
		if !isPort(port) {
			return h, fmt.Errorf("%q is no host: write a name such as docs.example.com, with a port from 1 to 65535 or none", entry)
		}
		name, h.port = before, port
	}
	if name == "*" {
		if private {
			return h, fmt.Errorf("%q would stand for every private host: name them", entry)
		}
		h.below = true
		return h, nil
	}
	name, h.below = strings.CutPrefix(name, "*.")
	var err error
	if h.name, h.addr, err = cleanHost(strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")); err != nil {
		return h, fmt.Errorf("%q is no host: write a name such as docs.example.com, *.example.com or an address, with or without a port", entry)
	}
	if h.addr.IsValid() {
		switch kind := inner.KindOf(h.addr); {
		case h.below:
			return h, fmt.Errorf("%q has no names below it", entry)
		case kind == inner.Reserved:
			return h, fmt.Errorf("%q can't be fetched: no page is at such an address", entry)
		case kind != inner.Outer && !private:
			return h, fmt.Errorf("%q is not a public address: if that is right, name it under private", entry)
		}
	}
	return h, nil
}

// cutPort cuts the port off an entry.
func cutPort(entry string) (name, port string, ok bool) {
	i := strings.LastIndexByte(entry, ':')
	// Without brackets, several colons are an IPv6 address.
	if i < 0 || strings.Count(entry, ":") > 1 && !strings.HasPrefix(entry[i-1:], "]") {
		return entry, "", false
	}
	return entry[:i], entry[i+1:], true
}

func isPort(s string) bool {
	n := 0
	for _, c := range []byte(s) {
		if c < '0' || c > '9' || n > 65535 {
			return false
		}
		n = 10*n + int(c-'0')
	}
	return n > 0 && n <= 65535 && s[0] != '0'
}

// cleanHost returns a host in the one form in which hosts are compared.
func cleanHost(text string) (string, netip.Addr, error) {
	if addr, err := netip.ParseAddr(text); err == nil {
		if addr.Zone() != "" {
			return "", netip.Addr{}, fmt.Errorf("%q has a zone", text)
		}
		return addr.Unmap().String(), addr.Unmap(), nil
	}
	name, err := idna.Lookup.ToASCII(strings.TrimSuffix(text, "."))
	if err != nil {
		return "", netip.Addr{}, err
	}
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return "", netip.Addr{}, fmt.Errorf("%q is no name", text)
		}
	}
	// C libraries read 2130706433, 0x7f.1 and 127.1 as addresses. No public name ends so.
	if last := labels[len(labels)-1]; strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") || len(name) > 253 {
		return "", netip.Addr{}, fmt.Errorf("%q is no name", text)
	}
	return name, netip.Addr{}, nil
}

// matches reports whether an entry stands for a host and a port. An address is fetched
// only if it is named.
func (h host) matches(name string, addr netip.Addr, port string) bool {
	switch {
	case h.port != port && (h.port != "" || port != "80" && port != "443"):
		return false
	case h.below && addr.IsValid():
		return false
	case h.name == "":
		return true
	case h.below:
		return strings.HasSuffix(name, "."+h.name)
	}
	return h.name == name
}

// thisMachine reports whether an entry names this machine.
func (h host) thisMachine() bool {
	return h.private && !h.below && (h.name == "localhost" || h.addr.IsValid() && inner.KindOf(h.addr) == inner.Loopback)
}

// permit returns what a host may be at: any of these kinds of addresses. Nothing means
// that the host may not be fetched.
func (f *Fetcher) permit(name, port string) (kinds []inner.Kind) {
	name, addr, err := cleanHost(name)
	if err != nil {
		return nil
	}
	for _, h := range f.hosts {
		if !h.matches(name, addr, port) {
			continue
		}
		kinds = append(kinds, inner.Outer)
		if h.private {
			kinds = append(kinds, inner.Private)
		}
		if h.thisMachine() {
			kinds = append(kinds, inner.Loopback)
		}
	}
	return kinds
}

// check reads a URL that a model or a server has written, and refuses it if it may not be
// fetched.
func (f *Fetcher) check(text string) (*url.URL, error) {
	if len(text) > maxURL {
		return nil, tool.Refuse("a URL may have at most %d bytes", maxURL)
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, tool.Refuse("%q is no URL", brief(text))
	case u.Scheme != "https" && u.Scheme != "http" || u.Opaque != "":
		return nil, tool.Refuse("%q is no URL with https:// or http://", brief(text))
	case u.User != nil:
		return nil, tool.Refuse("the URL has a user or password, which are never sent")
	}
	name, _, err := cleanHost(u.Hostname())
	if err != nil {
		return nil, tool.Refuse("%q names no host", brief(text))
	}
	port := cmp.Or(u.Port(), ownPort(u.Scheme))
	if !isPort(port) || len(f.permit(name, port)) == 0 {
		return nil, tool.Refuse("%s may not be fetched; the operator names what may be, under web.hosts of the agents file: %s", net.JoinHostPort(name, port), f.allowed)
	}
	u.Host, u.Fragment, u.RawFragment = hostPort(name, port, u.Scheme), "", ""
	u.RawQuery = encoded(u.RawQuery)
	if u.Path == "" {
		u.Path = "/"
	}
	return u, nil
}

func ownPort(scheme string) string {
	return map[string]string{"https": "443", "http": "80"}[scheme]
}

// hostPort returns a URL's host, without the port if it is the scheme's own.
func hostPort(name, port, scheme string) string {
	switch {
	case port != ownPort(scheme):
		return net.JoinHostPort(name, port)
	case strings.Contains(name, ":"):
		return "[" + name + "]"
	}
	return name
}

// follow returns where a page at a URL redirects to.
func (f *Fetcher) follow(from *url.URL, location string) (*url.URL, error) {
	if len(location) > maxURL {
		return nil, tool.Refuse("%s redirects to a URL with more than %d bytes", brief(from.String()), maxURL)
	}
	to, err := from.Parse(location)
	if err != nil {
		return nil, tool.Refuse("%s redirects to %q, which is no URL", brief(from.String()), brief(location))
	}
	next, err := f.check(to.String())
	if err != nil {
		return nil, tool.Refuse("%s redirects: %w", brief(from.String()), err)
	}
	if from.Scheme == "https" && next.Scheme == "http" {
		return nil, tool.Refuse("%s redirects to %s, which is not encrypted", brief(from.String()), brief(next.String()))
	}
	return next, nil
}

// parseHosts reads all entries.
func parseHosts(hosts, private []string) (list []host, err error) {
	for i, entry := range slices.Concat(hosts, private) {
		h, err := parseHost(entry, i >= len(hosts))
		if err != nil {
			return nil, err
		}
		list = append(list, h)
	}
	return list, nil
}
