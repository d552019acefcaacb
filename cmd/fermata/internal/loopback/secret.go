package loopback

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net/http"
	"time"
)

// name is the host name in the endpoint's certificate.
const name = "live.fermata.internal"

// certificate makes a key that lives as long as the endpoint, and a certificate for it.
func certificate() (tls.Certificate, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	// Long enough for any process; clients trust this one certificate anyway.
	const year = 365 * 24 * time.Hour
	// An hour back, in case a clock was set back meanwhile.
	about := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(10 * year)}
	raw, err := x509.CreateCertificate(rand.Reader, about, about, public, private)
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: private}, err
}

// caller returns an HTTP client that trusts only this endpoint.
func caller(p place) (*http.Client, error) {
	known := x509.NewCertPool()
	cert, err := x509.ParseCertificate(p.Certificate)
	if err != nil {
		return nil, err
	}
	known.AddCert(cert)
	return &http.Client{Transport: &http.Transport{
		Proxy:           nil, // no proxy of the environment may see the token
		MaxIdleConns:    4,
		TLSClientConfig: &tls.Config{RootCAs: known, ServerName: name, MinVersion: tls.VersionTLS13},
	}}, nil
}
