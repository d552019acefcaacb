package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/proxy"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/fermata-agents/fermata/devserver"
)

// secured is a Temporal server as Temporal Cloud has it: behind TLS, for those with a
// certificate of its authority or an API key, and without an operator service.
type secured struct {
	addr string
	ca   *authority
}

const (
	apiKey = "key-that-nobody-sees"
	// bareNamespace has no search attributes of fermata's.
	bareNamespace = "bare"
)

func startSecured(t *testing.T, wantsCertificate bool) *secured {
	t.Helper()
	s, err := devserver.Start(t.Context(), &devserver.Options{InMemory: true})
	require.NoError(t, err)
	t.Cleanup(s.Stop)
	c, err := s.Dial(t.Context(), client.Options{})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	_, err = c.WorkflowService().RegisterNamespace(t.Context(), &workflowservice.RegisterNamespaceRequest{
		Namespace: bareNamespace, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
	require.NoError(t, err)
	require.Eventually(t, func() bool { // a server takes a moment to know it
		_, err := c.WorkflowService().CountWorkflowExecutions(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{Namespace: bareNamespace})
		return err == nil
	}, patience, 50*time.Millisecond)
	behind, err := proxy.NewWorkflowServiceProxyServer(proxy.WorkflowServiceProxyOptions{Client: c.WorkflowService()})
	require.NoError(t, err)

	out := &secured{ca: newAuthority(t, "example authority")}
	cert, err := tls.X509KeyPair(out.ca.issue(t, "temporal.example", time.Hour))
	require.NoError(t, err)
	config := &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	options := []grpc.ServerOption{grpc.ChainUnaryInterceptor(asStatus)}
	if wantsCertificate {
		config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		config.ClientCAs.AppendCertsFromPEM(out.ca.pem)
	} else {
		options = append(options, grpc.ChainUnaryInterceptor(wantsKey))
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer(append(options, grpc.Creds(credentials.NewTLS(config)))...)
	workflowservice.RegisterWorkflowServiceServer(server, behind)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	out.addr = l.Addr().String()
	return out
}

// asStatus hands on what the server behind says as it said it.
func asStatus(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	out, err := next(ctx, req)
	return out, serviceerror.ToStatus(err).Err()
}

// wantsKey lets those in who have the key.
func wantsKey(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	if got := md.Get("authorization"); len(got) != 1 || got[0] != "Bearer "+apiKey {
		return nil, status.Error(codes.Unauthenticated, "Request unauthorized.")
	}
	return next(ctx, req)
}

// authority is who vouches for certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &authority{cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

// issue makes a certificate of loopback and its key.
func (a *authority) issue(t *testing.T, name string, lasts time.Duration) (cert, key []byte) {
	t.Helper()
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(lasts),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &own.PublicKey, a.key)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(own)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
}

// hand writes a certificate of the authority and its key into a folder.
func (a *authority) hand(t *testing.T, name string, lasts time.Duration) (cert, key string) {
	t.Helper()
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	c, k := a.issue(t, name, lasts)
	require.NoError(t, os.WriteFile(cert, c, 0o600))
	require.NoError(t, os.WriteFile(key, k, 0o600))
	return cert, key
}

func (a *authority) file(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(path, a.pem, 0o600))
	return path
}

// in is the environment of a test, as NAME=VALUE.
func in(t *testing.T, env ...string) {
	t.Helper()
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		t.Setenv(name, value)
	}
}

// What is wrong with a connection is said by name, with what to do.
func TestAConnectionThatFails(t *testing.T) {
	alone(t)
	certificate, key := startSecured(t, true), startSecured(t, false)
	open, err := devserver.Start(t.Context(), &devserver.Options{InMemory: true})
	require.NoError(t, err)
	t.Cleanup(open.Stop)
	web := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	ca, keyCA := "TEMPORAL_TLS_SERVER_CA_CERT_PATH="+certificate.ca.file(t), "TEMPORAL_TLS_SERVER_CA_CERT_PATH="+key.ca.file(t)
	mine, mineKey := certificate.ca.hand(t, "worker", time.Hour)
	others, othersKey := newAuthority(t, "other").hand(t, "worker", time.Hour)
	for name, c := range map[string]struct {
		addr string
		env  []string
		exit int
		says string
	}{
		"plain to TLS":         {certificate.addr, nil, 5, " speaks TLS, and this client does not: set TEMPORAL_TLS=true, with "},
		"TLS to plain":         {open.Addr(), []string{"TEMPORAL_TLS=true"}, 5, " does not speak TLS, and this client does: set TEMPORAL_TLS=false"},
		"unknown authority":    {certificate.addr, []string{"TEMPORAL_TLS=true"}, 5, " has a certificate of an authority that is not known here: "},
		"another name":         {certificate.addr, []string{ca, "TEMPORAL_TLS_SERVER_NAME=temporal.internal"}, 5, " has a certificate for another name: "},
		"no certificate":       {certificate.addr, []string{ca}, 6, " needs another certificate of this client: "},
		"another certificate":  {certificate.addr, []string{ca, "TEMPORAL_TLS_CLIENT_CERT_PATH=" + others, "TEMPORAL_TLS_CLIENT_KEY_PATH=" + othersKey}, 6, " needs another certificate of this client: "},
		"key of another":       {certificate.addr, []string{ca, "TEMPORAL_TLS_CLIENT_CERT_PATH=" + mine, "TEMPORAL_TLS_CLIENT_KEY_PATH=" + othersKey}, 2, "private key does not match public key"},
		"certificate, no key":  {certificate.addr, []string{ca, "TEMPORAL_TLS_CLIENT_CERT_PATH=" + mine}, 2, "if either client cert or key path is present, other must be present too"},
		"no API key":           {key.addr, []string{keyCA}, 6, " refuses this client: "},
		"another API key":      {key.addr, []string{keyCA, "TEMPORAL_API_KEY=stolen-key"}, 6, "; see TEMPORAL_API_KEY and the TLS settings of the profile"},
		"another protocol":     {web.Listener.Addr().String(), []string{"TEMPORAL_TLS_DISABLE_HOST_VERIFICATION=true"}, 5, " ends the handshake of TLS: "},
		"nobody there, by TLS": {"127.0.0.1:1", []string{"TEMPORAL_TLS=true"}, 5, " does not answer: "},
		"certificate for key":  {key.addr, []string{keyCA, "TEMPORAL_TLS_CLIENT_CERT_PATH=" + mine, "TEMPORAL_TLS_CLIENT_KEY_PATH=" + mineKey}, 6, " refuses this client: "},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, append(c.env, "TEMPORAL_ADDRESS="+c.addr)...)
			for _, command := range []string{"doctor", "ls"} {
				r := inProcess(t, command)
				require.Equal(t, c.exit, r.exit, r.out+r.err)
				require.Contains(t, r.out+r.err, c.says, command)
				require.NotContains(t, r.out+r.err, "stolen-key")
			}
		})
	}
}

// A run over a connection that both sides vouch for, as a profile of temporal.toml
// says, and what doctor finds of it.
func TestARunOverMutualTLS(t *testing.T) {
	alone(t)
	s := startSecured(t, true)
	cert, key := s.ca.hand(t, "worker", 90*24*time.Hour)
	writeFile(t, "temporal.toml", fmt.Sprintf(`
[profile.prod]
address = %q
[profile.prod.tls]
client_cert_path = %q
client_key_path = %q
server_ca_cert_path = %q
`, s.addr, cert, key, s.ca.file(t)))
	in(t, "TEMPORAL_CONFIG_FILE=temporal.toml")
	writeFile(t, "fermata.yaml", "agents: {a: {model: \"script:s.yaml\"}}\n")
	writeFile(t, "s.yaml", "replies: [{text: Hello.}]\n")
	r := inProcess(t, "run", "a", "x", "--profile", "prod")
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.out, "Hello.\ncompleted")

	r = inProcess(t, "doctor", "--profile", "prod")
	require.Zero(t, r.exit, r.out)
	require.Contains(t, r.out, "warn tls         the server is temporal.example, as example authority says, until ")
	require.Contains(t, r.out, "ok   identity    this client is worker, as example authority says, until ")
}

// As Temporal Cloud has it: an API key, and nobody but its own tools adds search attributes.
func TestARunWithAnAPIKey(t *testing.T) {
	alone(t)
	s := startSecured(t, false)
	in(t, "TEMPORAL_ADDRESS="+s.addr, "TEMPORAL_TLS_SERVER_CA_CERT_PATH="+s.ca.file(t), "TEMPORAL_API_KEY="+apiKey)
	writeFile(t, "fermata.yaml", "agents: {a: {model: \"script:s.yaml\"}}\n")
	writeFile(t, "s.yaml", "replies: [{text: Hello.}]\n")
	r := inProcess(t, "run", "a", "x")
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.out, "Hello.\ncompleted")
	require.NotContains(t, r.out+r.err, apiKey)

	r = inProcess(t, "doctor")
	require.Zero(t, r.exit, r.out)
	require.Contains(t, r.out, "ok   identity    this client has an API key\n")
	require.NotContains(t, r.out+r.err, apiKey)

	r = inProcess(t, "setup", "--namespace", bareNamespace)
	require.Equal(t, 5, r.exit, r.err)
	require.Contains(t, r.out, "tcld namespace search-attributes add --namespace bare --search-attribute \"FermataAgent=Keyword\"\n")
	require.Contains(t, r.err, "[not_set_up] namespace bare lacks FermataAgent, ")
}

// What could be better about a connection is told.
func TestWhatAConnectionLacks(t *testing.T) {
	alone(t)
	s := startSecured(t, false)
	in(t, "TEMPORAL_ADDRESS="+s.addr, "TEMPORAL_TLS_DISABLE_HOST_VERIFICATION=true", "TEMPORAL_API_KEY="+apiKey)
	require.Contains(t, inProcess(t, "doctor").out, "warn tls         any host can pretend to be the server: its certificate is not verified\n")
}
