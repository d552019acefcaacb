package inner_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/internal/inner"
)

func TestKindOf(t *testing.T) {
	for kind, list := range map[inner.Kind][]string{
		inner.Outer:    {"93.184.216.34", "2606:2800:220:1::", "::ffff:93.184.216.34", "64:ff9b::5db8:d822"},
		inner.Private:  {"10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "fd12::1", "::ffff:10.0.0.1", "64:ff9b::a00:1"},
		inner.Loopback: {"127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1"},
		inner.Reserved: {
			"0.0.0.0", "0.1.2.3", "::", "169.254.169.254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "2002:a9fe:a9fe::", "2002:7f00:1::", "2001:0:1::1", "::127.0.0.1", "::169.254.169.254",
			"fe80::1", "fe80::1%eth0", "fec0::1", "224.0.0.1", "ff02::1", "255.255.255.255", "240.0.0.1", "100.100.100.200", "192.0.0.192", "198.18.0.1", "fd00:ec2::254", "fd20:ce::254", "168.63.129.16", "::ffff:168.63.129.16", "fd00:c1::a9fe:a9fe", "fd00:42::42", "fd00:a9fe:a9fe::1",
		},
	} {
		for _, addr := range list {
			require.Equal(t, kind, inner.KindOf(netip.MustParseAddr(addr)), addr)
		}
	}
}
