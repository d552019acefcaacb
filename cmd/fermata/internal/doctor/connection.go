package doctor

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
)

// checkConnection checks how the server is reached, and as which client. It does one more
// TLS handshake itself, which may fail if only a proxy or a resolver leads to the server.
func (d *examination) checkConnection(ctx context.Context) {
	profile, err := d.ClientProfile()
	if err != nil || d.server.Embedded != nil { // reported with the server, or plain on loopback
		return
	}
	o, err := connect.OptionsOf(profile)
	if err != nil {
		return
	}
	if profile.APIKey != "" {
		d.checkKey(profile.APIKey)
	}
	config := connect.TLSOf(o)
	if config == nil {
		d.checkPlain()
		return
	}
	state, err := connect.Handshake(ctx, d.server.Addr, config)
	switch {
	case err != nil:
		d.found("tls", Warning, "the connection works, but the server's certificate could not be read: "+err.Error(), "")
	case config.InsecureSkipVerify:
		d.found("tls", Warning, "any host can pretend to be the server: its certificate is not verified", "unset TEMPORAL_TLS_DISABLE_HOST_VERIFICATION")
	default:
		d.lasting("tls", "the server is "+nameOf(state.PeerCertificates[0]), state.PeerCertificates[0].NotAfter)
	}
	// The first certificate is the client's own; the rest are its issuers.
	for _, c := range config.Certificates {
		if leaf, err := x509.ParseCertificate(c.Certificate[0]); err == nil {
			d.lasting("identity", "this client is "+nameOf(leaf), leaf.NotAfter)
		}
	}
}

// checkPlain warns of a connection without TLS, unless it is on loopback.
func (d *examination) checkPlain() {
	host, _, err := net.SplitHostPort(d.server.Addr)
	if err != nil {
		host = d.server.Addr
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return
	}
	d.found("tls", Warning, "the connection is not encrypted: anyone on the network path can read it, and pretend to be the server", "let the server speak TLS, and set TEMPORAL_TLS=true")
}

// checkKey says how long an API key is valid, if it tells: Temporal Cloud's keys do.
func (d *examination) checkKey(key string) {
	if until, ok := expiryOf(key); ok {
		d.lasting("identity", "this client has an API key", until)
		return
	}
	d.found("identity", OK, "this client has an API key", "")
}

// expiryOf returns when a JSON Web Token expires. It does not verify the signature, which
// needs a key that only the server has.
func expiryOf(token string) (until time.Time, ok bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return until, false
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct{ Exp float64 }
	if err != nil || json.Unmarshal(text, &claims) != nil || claims.Exp <= 0 {
		return until, false
	}
	return time.Unix(int64(claims.Exp), 0), true
}

// lasting adds a finding for something that expires.
func (d *examination) lasting(what, text string, until time.Time) {
	text = fmt.Sprintf("%s, until %s", text, until.UTC().Format(time.RFC3339))
	switch left := time.Until(until); {
	case left <= 0:
		d.failed(what, agent.Errorf(agent.CodeDenied, "%s, which has passed", text), "renew it")
	case left < connect.ExpiryWarning:
		d.found(what, Warning, text, "renew it")
	default:
		d.found(what, OK, text, "")
	}
}

// nameOf returns whom a certificate is for, and who issued it.
func nameOf(c *x509.Certificate) string {
	names := c.DNSNames
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	for _, u := range c.URIs {
		names = append(names, u.String())
	}
	if c.Subject.CommonName != "" {
		names = []string{c.Subject.CommonName}
	}
	return fmt.Sprintf("%s, as %s says", strings.Join(names, ", "), cmp.Or(c.Issuer.CommonName, c.Issuer.String()))
}
