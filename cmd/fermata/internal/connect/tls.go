package connect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fermata-agents/fermata/agent"
)

const (
	// ExpiryWarning is how long before its expiry a certificate or a key gets a warning.
	ExpiryWarning = 14 * 24 * time.Hour
	// handshakeWait is how long a server may take to reject a client's certificate. With
	// TLS 1.3 it does so after the handshake.
	handshakeWait = 300 * time.Millisecond
)

// TLSOf returns the TLS settings of a client; nil if it connects without TLS.
func TLSOf(o client.Options) *tls.Config {
	switch {
	case o.ConnectionOptions.TLS != nil:
		return o.ConnectionOptions.TLS.Clone()
	case o.Credentials != nil && !o.ConnectionOptions.TLSDisabled: // an API key uses TLS by default
		return &tls.Config{}
	}
	return nil
}

// Handshake does a TLS handshake with a server as the client would, and waits for a late
// rejection.
func Handshake(ctx context.Context, addr string, config *tls.Config) (*tls.ConnectionState, error) {
	ctx, cancel := context.WithTimeout(ctx, DialPatience)
	defer cancel()
	// gRPC needs HTTP/2; some servers refuse a handshake that does not offer it.
	config.NextProtos, config.MinVersion = []string{"h2"}, tls.VersionTLS12
	raw, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer raw.Close()
	conn := raw.(*tls.Conn)
	if err := conn.SetReadDeadline(time.Now().Add(handshakeWait)); err != nil {
		return nil, err
	}
	state := conn.ConnectionState()
	// In TLS 1.3 the server rejects a client's certificate only after our side is done.
	_, err = conn.Read(make([]byte, 1))
	var timeout net.Error
	// A timeout means that the server accepted the certificate and waits for a request.
	if err == nil || errors.As(err, &timeout) && timeout.Timeout() {
		return &state, nil
	}
	return nil, err
}

// dialFailed says why a server was not reached, and what to do.
func dialFailed(ctx context.Context, o client.Options, err error) error {
	var denied *serviceerror.PermissionDenied
	// Servers refuse a client in two ways: with an error of Temporal, or of gRPC.
	if errors.As(err, &denied) || status.Code(err) == codes.Unauthenticated {
		return agent.Errorf(agent.CodeDenied, "Temporal at %s refuses this client: %w; see TEMPORAL_API_KEY and the TLS settings of the profile", o.HostPort, err)
	}
	if errors.Is(err, context.DeadlineExceeded) { // nothing answers
		return unanswered(o.HostPort, err)
	}
	if config := TLSOf(o); config == nil {
		// Only to find out whether the server speaks TLS at all; nothing is sent on this
		// connection.
		if _, tlsErr := Handshake(ctx, o.HostPort, &tls.Config{InsecureSkipVerify: true}); tlsErr == nil || strings.Contains(tlsErr.Error(), remoteAlert) {
			return agent.Errorf(agent.CodeUnreachable, "Temporal at %s speaks TLS, and this client does not: set TEMPORAL_TLS=true, with TEMPORAL_API_KEY or TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH if it needs authentication", o.HostPort)
		}
	} else if _, tlsErr := Handshake(ctx, o.HostPort, config); tlsErr != nil {
		if fault := tlsFault(o.HostPort, tlsErr); fault != nil {
			return fault
		}
	}
	return unanswered(o.HostPort, err)
}

func unanswered(addr string, err error) error {
	return agent.Errorf(agent.CodeUnreachable, "Temporal at %s does not answer: %s; start it, or name another server with --address, --profile or TEMPORAL_ADDRESS", addr, inWords(addr, err))
}

// inWords says why a server was not reached, without gRPC's wording.
func inWords(addr string, err error) string {
	text := strings.TrimPrefix(err.Error(), "failed reaching server: ")
	// gRPC's wording around the cause says nothing about what to do.
	if _, cause, dialed := strings.Cut(text, "Error while dialing: "); dialed {
		return strings.TrimSuffix(cause, `"`)
	}
	if host, _, wrong := net.SplitHostPort(addr); wrong == nil && strings.Contains(text, "no children to pick from") {
		return "the name " + host + " has no address"
	}
	return text
}

// tlsFault says what is wrong with a handshake; nil if the handshake is not the problem.
func tlsFault(addr string, err error) error {
	var (
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
		record    tls.RecordHeaderError
	)
	switch {
	// First: the alert also matches the general one below.
	case refusesCertificate(err):
		return agent.Errorf(agent.CodeDenied, "Temporal at %s needs another certificate of this client: %w; set TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH", addr, err)
	case errors.As(err, &authority):
		return agent.Errorf(agent.CodeUnreachable, "Temporal at %s has a certificate of an authority that is not known here: %w; name the authority's certificate in TEMPORAL_TLS_SERVER_CA_CERT_PATH", addr, err)
	case errors.As(err, &host):
		return agent.Errorf(agent.CodeUnreachable, "Temporal at %s has a certificate for another name: %w; set TEMPORAL_TLS_SERVER_NAME", addr, err)
	case errors.As(err, &invalid):
		return agent.Errorf(agent.CodeUnreachable, "Temporal at %s has a certificate that is not valid: %w", addr, err)
	case strings.Contains(err.Error(), remoteAlert):
		return agent.Errorf(agent.CodeUnreachable, "Temporal at %s ends the handshake of TLS: %w; is that its gRPC port?", addr, err)
	case errors.As(err, &record):
		return agent.Errorf(agent.CodeUnreachable, "Temporal at %s does not speak TLS, and this client does: set TEMPORAL_TLS=false", addr)
	}
	return nil
}

// refusals are the alerts with which a server rejects a client's certificate, or its
// absence. crypto/tls has no type for alerts of the other side.
var refusals = []string{"certificate", "access denied", "handshake failure"}

func refusesCertificate(err error) bool {
	_, alert, ok := strings.Cut(err.Error(), remoteAlert)
	return ok && slices.ContainsFunc(refusals, func(r string) bool { return strings.Contains(alert, r) })
}

// remoteAlert starts an alert of the other side. Only a side that speaks TLS sends one.
const remoteAlert = "remote error: tls: "
