package client

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/grpc"

	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/keyring"
)

// PrepareOptions configures the payloads of a connection to Temporal; nil means all
// defaults.
type PrepareOptions struct {
	// Keyring encrypts every payload that goes to the server and decrypts what comes
	// back. If it is nil, nothing is encrypted, and encrypted payloads can't be read.
	Keyring *keyring.Ring
	// PlainUntil is until when plain payloads are accepted although there are keys, by
	// the server's clock. It serves runs that began before there were keys, and the plain
	// temporal command. The zero time accepts none. Set the same time in every process,
	// and never move it back: a replay has to accept what was accepted before.
	PlainUntil time.Time
}

// Prepare sets up the options of a Temporal client before it is dialled. Call it for the
// client of a worker and for that of a [Client]. A prepared client refuses payloads that
// it can't decrypt with [agent.CodeNotSetUp], and a worker with it does not accept the
// task. With keys, a payload that is plain or was encrypted for another place is refused
// with [agent.CodeBadSignature].
func Prepare(o *client.Options, p *PrepareOptions) error {
	if p == nil {
		p = &PrepareOptions{}
	}
	chain, err := durable.Codec{Keyring: p.Keyring, PlainUntil: p.PlainUntil}.Interceptors()
	if err != nil {
		return fmt.Errorf("preparing a Temporal client: %w", err)
	}
	o.ConnectionOptions.DialOptions = append(o.ConnectionOptions.DialOptions, grpc.WithChainUnaryInterceptor(chain...))
	return nil
}

// Codec returns a payload codec that encrypts and decrypts as [Prepare] does. Temporal's
// own tools use it: converter.NewPayloadCodecHTTPHandler(Codec(ring)) is a codec server
// for Temporal's UI and command line.
func Codec(ring *keyring.Ring) converter.PayloadCodec { return durable.Codec{Keyring: ring} }
