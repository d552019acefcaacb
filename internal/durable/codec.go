package durable

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"
	commonpb "go.temporal.io/api/common/v1"
	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/api/proxy"
	updatepb "go.temporal.io/api/update/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/keyring"
)

// Codec encrypts payloads with the first key of a ring and decrypts them with all.
// What is worth it is compressed before. Without a key it encrypts nothing, and
// refuses what is encrypted. What is plain is read as it is.
type Codec struct{ Keyring *keyring.Ring }

// Of an encrypted payload people and tools see this much: the names are those of
// Temporal's own samples.
const (
	encodingEncrypted = "binary/encrypted"
	metadataKey       = "encryption-key-id"
)

// unread begins the message of whatever can't be decrypted. Where it has passed a
// connection to Temporal, which knows nothing of our codes, it is known by that.
const unread = "reading a payload"

// payloadPurpose is what payloads are encrypted for. A payload does not know where it stands.
const payloadPurpose = "payload"

// The first byte of what is encrypted says how the payload is packed behind it.
const (
	asItIs = iota
	zstdPacked
)

// worthPacking is from where a payload is compressed, in bytes; maxUnpacked bounds
// what becomes of one: twice what the server takes.
const (
	worthPacking = 512
	maxUnpacked  = 8 << 20
)

var (
	packer   = sync.OnceValue(func() *zstd.Encoder { e, _ := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest)); return e })
	unpacker = sync.OnceValue(func() *zstd.Decoder { d, _ := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxUnpacked)); return d })
)

// Encode implements [converter.PayloadCodec].
func (c Codec) Encode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	id := c.Keyring.Writes()
	if id == "" {
		return payloads, nil
	}
	out := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		if encrypted(p) { // by a caller that did it for itself
			out[i] = p
			continue
		}
		plain, err := proto.Marshal(p)
		if err != nil {
			return nil, agent.Errorf(agent.Internal, "encoding a payload: %w", err)
		}
		out[i] = &commonpb.Payload{
			Metadata: map[string][]byte{converter.MetadataEncoding: []byte(encodingEncrypted), metadataKey: []byte(id)},
			Data:     c.Keyring.Encrypt(payloadPurpose, pack(plain)),
		}
	}
	return out, nil
}

func pack(plain []byte) []byte {
	if len(plain) >= worthPacking {
		if packed := packer().EncodeAll(plain, []byte{zstdPacked}); len(packed) < len(plain) {
			return packed
		}
	}
	return append([]byte{asItIs}, plain...)
}

func unpack(packed []byte) ([]byte, error) {
	if len(packed) > 0 && packed[0] == asItIs {
		return packed[1:], nil
	}
	if len(packed) > 0 && packed[0] == zstdPacked {
		return unpacker().DecodeAll(packed[1:], nil)
	}
	return nil, errors.New("it is packed in a way that this build does not know")
}

// Decode implements [converter.PayloadCodec]. Its errors are those of [keyring.Ring.Decrypt].
func (c Codec) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	out := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		if out[i] = p; !encrypted(p) {
			continue
		}
		packed, err := c.Keyring.Decrypt(payloadPurpose, p.GetData())
		if err != nil {
			return nil, Within(unread, err)
		}
		plain, err := unpack(packed)
		if err == nil {
			out[i] = &commonpb.Payload{}
			err = proto.Unmarshal(plain, out[i])
		}
		if err != nil {
			return nil, Within(unread, agent.Errorf(agent.Incompatible, "%w", err))
		}
	}
	return out, nil
}

func encrypted(p *commonpb.Payload) bool {
	return string(p.GetMetadata()[converter.MetadataEncoding]) == encodingEncrypted
}

// Unreadable is the error of a payload that nobody has decrypted: the program that
// reads it has no codec, or not its key. It is nil for every other payload.
func Unreadable(p *commonpb.Payload) error {
	if !encrypted(p) {
		return nil
	}
	return Within(unread, (*keyring.Ring)(nil).Lacks(string(p.GetMetadata()[metadataKey])))
}

// Interceptors encrypt whatever a connection to Temporal carries: payloads wherever they
// are, with the messages and the stacks of failures.
func (c Codec) Interceptors() ([]grpc.UnaryClientInterceptor, error) {
	words := converter.GetDefaultDataConverter()
	failures, err := proxy.NewFailureVisitorInterceptor(proxy.FailureVisitorInterceptorOptions{
		Outbound: &proxy.VisitFailuresOptions{Visitor: func(at *proxy.VisitFailuresContext, f *failurepb.Failure) error {
			if _, refused := at.Parent.(*updatepb.Rejection); refused {
				return nil // it stands in no history, and who was refused may have no more than the temporal command
			}
			return converter.EncodeCommonFailureAttributes(words, f)
		}},
		Inbound: &proxy.VisitFailuresOptions{Visitor: func(_ *proxy.VisitFailuresContext, f *failurepb.Failure) error {
			converter.DecodeCommonFailureAttributes(words, f)
			return nil
		}},
	})
	if err != nil {
		return nil, err
	}
	payloads, err := converter.NewPayloadCodecGRPCClientInterceptor(converter.PayloadCodecGRPCClientInterceptorOptions{Codecs: []converter.PayloadCodec{c}})
	if err != nil {
		return nil, err
	}
	chain := []grpc.UnaryClientInterceptor{(&latch{}).intercept, payloads}
	if c.Keyring.Writes() != "" {
		chain = []grpc.UnaryClientInterceptor{chain[0], failures, payloads}
	}
	return chain, nil
}

// latch keeps a process that lacks a key from taking work: a task that a worker has
// taken and can't read waits until it times out. After the first one no poll reaches
// the server any more, and the SDK's worker ends for want of an answer to them.
type latch struct{ bad atomic.Pointer[status.Status] }

func (l *latch) intercept(ctx context.Context, method string, in, out any, conn *grpc.ClientConn, call grpc.UnaryInvoker, o ...grpc.CallOption) error {
	polls := strings.HasSuffix(method, "/PollWorkflowTaskQueue") || strings.HasSuffix(method, "/PollActivityTaskQueue")
	if bad := l.bad.Load(); polls && bad != nil {
		return bad.Err()
	}
	err := call(ctx, method, in, out, conn, o...)
	var unread *agent.Error
	if !errors.As(err, &unread) {
		return err
	}
	// An invalid argument is what the SDK does not try again.
	bad := status.New(codes.InvalidArgument, unread.Message)
	if polls {
		l.bad.Store(bad)
	}
	return bad.Err()
}
