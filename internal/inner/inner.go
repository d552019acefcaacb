package inner

import (
	"net/netip"
	"slices"
)

// Kind says where an address leads.
type Kind int

// The kinds of addresses.
const (
	// Outer is an address of the internet.
	Outer Kind = iota
	// Private is an address of a private network, or of a carrier's.
	Private
	// Loopback is this machine.
	Loopback
	// Reserved leads to no host that a page is on: link-local, multicast, metadata of a
	// cloud, and what hides an IPv4 address in a way that nobody needs any more.
	Reserved
)

// metadata are the addresses of clouds' metadata that look like private or public ones.
var metadata = []netip.Addr{
	netip.MustParseAddr("100.100.100.200"),    // Alibaba Cloud
	netip.MustParseAddr("168.63.129.16"),      // Azure
	netip.MustParseAddr("fd00:ec2::254"),      // AWS
	netip.MustParseAddr("fd20:ce::254"),       // Google Cloud
	netip.MustParseAddr("fd00:c1::a9fe:a9fe"), // Oracle Cloud
	netip.MustParseAddr("fd00:42::42"),        // Scaleway
	netip.MustParseAddr("fd00:a9fe:a9fe::1"),  // Linode
}

// carrier is the network of carriers (RFC 6598), which VPNs use too.
var carrier = netip.MustParsePrefix("100.64.0.0/10")

// reserved are networks that the standard library takes for global ones. Some of IPv6
// embed an IPv4 address, which may be an inner one.
var reserved = []netip.Prefix{
	netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("2002::/16"),
	netip.MustParsePrefix("2001::/32"), netip.MustParsePrefix("::/96"), netip.MustParsePrefix("fec0::/10"),
}

// translated is the network that embeds IPv4 addresses for IPv6-only networks (RFC 6052).
var translated = netip.MustParsePrefix("64:ff9b::/96")

// KindOf returns where an address leads. An IPv4 address within one of IPv6 counts as
// itself.
func KindOf(ip netip.Addr) Kind {
	ip = ip.Unmap().WithZone("")
	if raw := ip.As16(); translated.Contains(ip) {
		ip = netip.AddrFrom4([4]byte(raw[12:]))
	}
	switch {
	case ip.IsLoopback():
		return Loopback
	case slices.Contains(metadata, ip):
		return Reserved
	case ip.IsPrivate() || carrier.Contains(ip):
		return Private
	case !ip.IsGlobalUnicast() || slices.ContainsFunc(reserved, func(p netip.Prefix) bool { return p.Contains(ip) }):
		return Reserved
	}
	return Outer
}
