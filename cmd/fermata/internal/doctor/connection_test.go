package doctor

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
)

// A connection in plain matters where others are on the way.
func TestAPlainConnection(t *testing.T) {
	for addr, found := range map[string]int{"127.0.0.1:7233": 0, "localhost:7233": 0, "[::1]:7233": 0, "temporal.internal:7233": 1, "10.0.0.7:7233": 1} {
		d := examination{server: &connect.Server{Addr: addr}}
		d.checkPlain()
		require.Len(t, d.findings, found, addr)
	}
	require.Equal(t, "10.0.0.7, as example authority says", nameOf(&x509.Certificate{IPAddresses: []net.IP{net.IPv4(10, 0, 0, 7)}, Issuer: pkix.Name{CommonName: "example authority"}}))
}

// How long a key lasts is told, where it says so itself.
func TestHowLongAnAPIKeyLasts(t *testing.T) {
	for lasts, says := range map[time.Duration]string{
		-time.Minute:        "FAIL identity    this client has an API key, until ",
		24 * time.Hour:      "warn identity    this client has an API key, until ",
		90 * 24 * time.Hour: "ok   identity    this client has an API key, until ",
	} {
		key := "e30." + base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"sub":"a","exp":%d}`, time.Now().Add(lasts).Unix())) + ".c2ln"
		var d examination
		d.checkKey(key)
		require.Len(t, d.findings, 1)
		f := d.findings[0]
		require.Contains(t, fmt.Sprintf("%-5s%-12s%s", f.Verdict, f.What, f.Text), says)
		require.NotContains(t, f.Text, key)
	}
	for _, key := range []string{"", "opaque", "a.b.c", "e30.e30.c2ln", "e30." + base64.RawURLEncoding.EncodeToString([]byte(`{"exp":"soon"}`)) + ".x"} {
		var d examination
		d.checkKey(key)
		require.Equal(t, "this client has an API key", d.findings[0].Text)
	}
}
