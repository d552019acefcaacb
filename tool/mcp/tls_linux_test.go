package mcp_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fermata-agents/fermata/tool/mcp"
	"github.com/stretchr/testify/require"
)

// The certificate of a server is one that this machine trusts, and is for the server's
// name. The file of those that it trusts is read once by a process.
func TestTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(httpHandler(usual(), nil))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "trusted.pem")
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	t.Setenv("SSL_CERT_FILE", file)
	r := reach(t, server.URL, mcp.Options{})
	require.Equal(t, "x\nr/t1.1", r.ok(t, "echo", "x"))

	_, err := reach(t, strings.Replace(server.URL, "127.0.0.1", "localhost", 1), mcp.Options{}).List(t.Context())
	require.ErrorContains(t, err, "the MCP server tickets can't be reached (https://localhost:")
	require.ErrorContains(t, err, "x509: certificate is valid for")

	other := httptest.NewUnstartedServer(httpHandler(usual(), nil))
	other.Config.ErrorLog = log.New(io.Discard, "", 0)
	other.TLS = &tls.Config{Certificates: []tls.Certificate{selfSigned(t)}}
	other.StartTLS()
	t.Cleanup(other.Close)
	_, err = reach(t, other.URL, mcp.Options{}).List(t.Context())
	require.ErrorContains(t, err, "can't be reached")
	require.ErrorContains(t, err, "x509: ")
}

// selfSigned is a certificate for 127.0.0.1 that nobody trusts.
func selfSigned(t *testing.T) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
