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

// PrepareOptions says what a connection to Temporal does with what it carries; nil means
// every default.
type PrepareOptions struct {
	// Keyring encrypts every payload that goes to the server and decrypts what comes; nil
	// means that nothing is encrypted, and that what is can't be read.
	Keyring *keyring.Ring
	// PlainUntil is until when plain payloads are taken though there are keys, by the
	// server's clock: of runs that began before there were keys, or by the plain temporal
	// command. The zero time takes none. It is the same in every process, and never earlier
	// than it was: what was taken once is taken again when a history is replayed.
	PlainUntil time.Time
}

// Prepare makes the options of a Temporal client ready, before it is dialled: that of a
// worker as well as that of a [Client]. What a prepared client can't decrypt it refuses
// with [agent.CodeNotSetUp], and a worker over it takes no work then. With keys a payload that is plain,
// or was encrypted for another place, is refused with [agent.CodeBadSignature].
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

// Codec encrypts and decrypts as [Prepare] does, wherever a payload stands, as Temporal's own tools take it: a codec
// server for its UI and its command line is converter.NewPayloadCodecHTTPHandler(Codec(ring)).
func Codec(ring *keyring.Ring) converter.PayloadCodec { return durable.Codec{Keyring: ring} }
