package durable

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"github.com/klauspost/compress/zstd"
	commonpb "go.temporal.io/api/common/v1"
	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/api/proxy"
	updatepb "go.temporal.io/api/update/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/keyring"
)

// Codec encrypts payloads with the first key of a ring and decrypts with all of them. It
// compresses what is long enough. Without keys it encrypts nothing and refuses what is
// encrypted. With keys it refuses what is not: a payload that was not encrypted, or was
// encrypted for another place, is read as a refusal; see [Refusal].
type Codec struct {
	Keyring *keyring.Ring
	// PlainUntil is the time, by the server's clock, until which payloads were written
	// without encryption. The zero value accepts none.
	PlainUntil time.Time
}

// Metadata of an encrypted payload, which anybody can see. The first two names are those
// of Temporal's samples. The check is the key's ([keyring.Ring.Check]). The place is
// authenticated.
const (
	encodingEncrypted = "binary/encrypted"
	metadataKey       = "encryption-key-id"
	metadataCheck     = "encryption-key-check"
	metadataPlace     = "encrypted-for"
)

// encodingRefused is the encoding of a refused payload. Whoever decodes it as something
// else gets an error, and the worker continues.
const encodingRefused = "fermata/refused"

// readingPayload begins the message of an error for a missing key. A connection to
// Temporal keeps no codes of ours, so the error is recognized by this text.
const readingPayload = "reading a payload"

// payloadPurpose begins the purpose for which payloads are encrypted; their place
// follows.
const payloadPurpose = "payload/"

// The first byte of the encrypted data says how the payload is packed.
const (
	uncompressed = iota
	zstdCompressed
)

// minCompressed is the size from which a payload is compressed. maxDecompressed limits
// its size after decompression: twice what the server accepts. Both are in bytes.
const (
	minCompressed   = 512
	maxDecompressed = 8 << 20
)

var (
	encoder = sync.OnceValue(func() *zstd.Encoder { e, _ := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest)); return e })
	decoder = sync.OnceValue(func() *zstd.Decoder {
		d, _ := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxDecompressed))
		return d
	})
)

// Encode implements [converter.PayloadCodec]. It encrypts for no place, which commands of
// people may do.
func (c Codec) Encode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	return c.encode(payloads, func(int) string { return "" })
}

func (c Codec) encode(payloads []*commonpb.Payload, at func(int) string) ([]*commonpb.Payload, error) {
	id := c.Keyring.Primary()
	if id == "" {
		return payloads, nil
	}
	out := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		if encrypted(p) { // by the caller, or by an earlier attempt of the request
			out[i] = p
			continue
		}
		plain, err := proto.Marshal(p)
		if err != nil {
			return nil, agent.Errorf(agent.CodeInternal, "encoding a payload: %w", err)
		}
		meta := map[string][]byte{converter.MetadataEncoding: []byte(encodingEncrypted), metadataKey: []byte(id), metadataCheck: []byte(c.Keyring.Check(id))}
		if at(i) != "" {
			meta[metadataPlace] = []byte(at(i))
		}
		out[i] = &commonpb.Payload{Metadata: meta, Data: c.Keyring.Encrypt(payloadPurpose+at(i), compress(plain))}
	}
	return out, nil
}

// write encrypts the payloads of a request for their places.
func (c Codec) write(at *proxy.VisitPayloadsContext, payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	p := placeAt(at.Context).field(at.Parent, payloads)
	if p.anyPlace && p.kind == "" {
		return c.Encode(payloads)
	}
	return c.encode(payloads, p.text)
}

// read decrypts the payloads of a response. It returns an error if this process lacks the
// key. A payload that cannot be trusted becomes a refusal. Every process with the keys
// comes to the same refusal, and so does every replay.
//
// A payload that is in no history may also be refused for a missing key. Otherwise one
// update with a wrong key would stop each worker in turn.
func (c Codec) read(at *proxy.VisitPayloadsContext, payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	where := placeAt(at.Context).field(at.Parent, payloads)
	out := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		var err error
		switch claim := string(p.GetMetadata()[metadataPlace]); {
		case !encrypted(p) && c.takesPlain(where.at):
			out[i] = p
		case !encrypted(p):
			out[i] = refused("it is not encrypted, and nothing plain is taken where there are keys")
		case keyring.KeyID(p.GetData()) == "" || keyring.KeyID(p.GetData()) != string(p.GetMetadata()[metadataKey]):
			out[i] = refused("it was changed, or is not what it says") // whatever keys this process has, so every replay decides the same
		case !c.has(p) && where.unrecorded:
			out[i] = refused("it is encrypted with a key that this worker does not have")
		case !c.has(p):
			return nil, c.lacks(p)
		case !where.takes(claim, i):
			out[i] = refused("it was encrypted for another place")
		default:
			if out[i], err = c.decode(p, claim); errors.Is(err, agent.CodeBadSignature) {
				out[i], err = refused("it was changed, or is not what it says"), nil
			}
		}
		if err != nil {
			return nil, Within(readingPayload, err)
		}
	}
	return out, nil
}

// takesPlain reports whether an unencrypted payload of a time is accepted.
func (c Codec) takesPlain(at time.Time) bool {
	if c.Keyring.Primary() == "" || c.PlainUntil.IsZero() {
		return c.Keyring.Primary() == ""
	}
	if at.IsZero() || at.Unix() <= 0 { // the server does not say
		at = time.Now()
	}
	return at.Before(c.PlainUntil)
}

// has reports whether the ring has the key that a payload names, and not another key with
// the same id.
func (c Codec) has(p *commonpb.Payload) bool {
	check := c.Keyring.Check(string(p.GetMetadata()[metadataKey]))
	return check != "" && check == string(p.GetMetadata()[metadataCheck])
}

func refused(why string) *commonpb.Payload {
	return &commonpb.Payload{Metadata: map[string][]byte{converter.MetadataEncoding: []byte(encodingRefused)}, Data: []byte(why)}
}

// Refusal returns the error of a refused payload, [agent.CodeBadSignature]; nil for any
// other payload.
func Refusal(p *commonpb.Payload) *agent.Error {
	if string(p.GetMetadata()[converter.MetadataEncoding]) != encodingRefused {
		return nil
	}
	return agent.Errorf(agent.CodeBadSignature, "the payload is refused: %s", p.GetData())
}

func compress(plain []byte) []byte {
	if len(plain) >= minCompressed {
		if packed := encoder().EncodeAll(plain, []byte{zstdCompressed}); len(packed) < len(plain) {
			return packed
		}
	}
	return append([]byte{uncompressed}, plain...)
}

func decompress(packed []byte) ([]byte, error) {
	if len(packed) > 0 && packed[0] == uncompressed {
		return packed[1:], nil
	}
	if len(packed) > 0 && packed[0] == zstdCompressed {
		return decoder().DecodeAll(packed[1:], nil)
	}
	return nil, errors.New("it is packed in a way that this build does not know")
}

// Decode implements [converter.PayloadCodec]. It decrypts payloads wherever they are.
// Errors are those of [keyring.Ring.Decrypt].
func (c Codec) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	out := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		if out[i] = p; !encrypted(p) {
			continue
		}
		var err error
		if out[i], err = c.decode(p, string(p.GetMetadata()[metadataPlace])); err != nil {
			return nil, Within(readingPayload, err)
		}
	}
	return out, nil
}

func (c Codec) decode(p *commonpb.Payload, claim string) (*commonpb.Payload, error) {
	packed, err := c.Keyring.Decrypt(payloadPurpose+claim, p.GetData())
	if err != nil {
		return nil, err
	}
	plain, err := decompress(packed)
	out := &commonpb.Payload{}
	if err == nil {
		err = proto.Unmarshal(plain, out)
	}
	if err != nil {
		return nil, agent.Errorf(agent.CodeIncompatible, "%w", err)
	}
	return out, nil
}

// encrypted reports whether this codec encrypted a payload. Codecs after Temporal's samples
// use the same encoding, but have no check.
func encrypted(p *commonpb.Payload) bool {
	return string(p.GetMetadata()[converter.MetadataEncoding]) == encodingEncrypted && len(p.GetMetadata()[metadataCheck]) > 0
}

// lacks returns the error of a payload for which the ring has no key.
func (c Codec) lacks(p *commonpb.Payload) error {
	id := string(p.GetMetadata()[metadataKey])
	if c.Keyring.Check(id) != "" {
		return Within(readingPayload, agent.Errorf(agent.CodeNotSetUp, "it is encrypted with another key of the id %s than this process has", id))
	}
	return Within(readingPayload, c.Keyring.MissingKey(id))
}

// Unreadable returns the error of a payload that is still encrypted: the reading program
// has no codec, or not its key. It returns nil for any other payload.
func Unreadable(p *commonpb.Payload) error {
	if !encrypted(p) {
		return nil
	}
	return Codec{}.lacks(p)
}

// Interceptors encrypt whatever a connection to Temporal carries: all payloads, and the
// messages and stacks of failures.
func (c Codec) Interceptors() ([]grpc.UnaryClientInterceptor, error) {
	words := converter.GetDefaultDataConverter()
	failures, err := proxy.NewFailureVisitorInterceptor(proxy.FailureVisitorInterceptorOptions{
		Outbound: &proxy.VisitFailuresOptions{Visitor: func(at *proxy.VisitFailuresContext, f *failurepb.Failure) error {
			if _, refused := at.Parent.(*updatepb.Rejection); refused {
				return nil // it is in no history, and the caller may have only the temporal command to read it
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
	payloads, err := proxy.NewPayloadVisitorInterceptor(proxy.PayloadVisitorInterceptorOptions{
		Outbound: &proxy.VisitPayloadsOptions{Visitor: c.write, ContextHook: enter, SkipSearchAttributes: true},
		Inbound:  &proxy.VisitPayloadsOptions{Visitor: c.read, ContextHook: enter, SkipSearchAttributes: true},
	})
	if err != nil {
		return nil, err
	}
	// First, so that it sees every error that the others return.
	latch := newLatch().intercept
	if c.Keyring.Primary() == "" {
		return []grpc.UnaryClientInterceptor{latch, payloads}, nil
	}
	return []grpc.UnaryClientInterceptor{latch, newQueryTracker(c).intercept, failures, payloads}, nil
}

// queryTracker hides topics and sets the place of each request's payloads. A worker's
// answer to a query names only a task token, so it remembers the session of each query.
type queryTracker struct {
	codec    Codec
	mu       sync.Mutex
	sessions *simplelru.LRU[string, string] // by task token
}

// maxTrackedQueries limits the remembered queries: as many as a process answers at once.
const maxTrackedQueries = 10_000

func newQueryTracker(c Codec) *queryTracker {
	lru, _ := simplelru.NewLRU[string, string](maxTrackedQueries, nil)
	return &queryTracker{codec: c, sessions: lru}
}

func (a *queryTracker) intercept(ctx context.Context, method string, in, out any, conn *grpc.ClientConn, call grpc.UnaryInvoker, o ...grpc.CallOption) error {
	// In place: a retry of the request finds its topics hashed already.
	a.codec.hide(in)
	at := place{session: sessionOf(in)}
	if r, ok := in.(interface{ GetNamespace() string }); ok {
		at.namespace = r.GetNamespace()
	}
	if r, ok := in.(*workflowservice.RespondQueryTaskCompletedRequest); ok {
		a.mu.Lock()
		at.session, _ = a.sessions.Get(string(r.GetTaskToken()))
		a.mu.Unlock()
	}
	err := call(at.in(ctx), method, in, out, conn, o...)
	if r, ok := out.(*workflowservice.PollWorkflowTaskQueueResponse); ok && r.GetQuery() != nil {
		a.mu.Lock()
		a.sessions.Add(string(r.GetTaskToken()), r.GetWorkflowExecution().GetWorkflowId())
		a.mu.Unlock()
	}
	return err
}
