package client

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

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
	// Codecs are your own payload codecs, in the order in which you give them to
	// converter.NewCodecDataConverter. They encode before the Keyring
	// encrypts. Nil means none.
	Codecs []converter.PayloadCodec
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
	if len(p.Codecs) > 0 {
		own, err := converter.NewPayloadCodecGRPCClientInterceptor(converter.PayloadCodecGRPCClientInterceptorOptions{Codecs: p.Codecs})
		if err != nil {
			return fmt.Errorf("preparing a Temporal client: %w", err)
		}
		chain = append([]grpc.UnaryClientInterceptor{ofCopies(own)}, chain...)
	}
	o.ConnectionOptions.DialOptions = append(o.ConnectionOptions.DialOptions, grpc.WithChainUnaryInterceptor(chain...))
	return nil
}

// ofCopies gives an interceptor a copy of each request. The SDK's encodes in place, and so would
// encode once more with each retry.
func ofCopies(next grpc.UnaryClientInterceptor) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, in, out any, conn *grpc.ClientConn, call grpc.UnaryInvoker, o ...grpc.CallOption) error {
		if m, ok := in.(proto.Message); ok {
			in = proto.Clone(m)
		}
		return next(ctx, method, in, out, conn, call, o...)
	}
}

// Codec returns a payload codec that encrypts and decrypts as [Prepare] does. Temporal's
// own tools use it: converter.NewPayloadCodecHTTPHandler(Codec(ring)) is a codec server
// for Temporal's UI and command line.
func Codec(ring *keyring.Ring) converter.PayloadCodec { return durable.Codec{Keyring: ring} }
