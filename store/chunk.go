package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"sync"

	"github.com/fermata-agents/fermata/agent"
	"github.com/klauspost/compress/zstd"
)

// Chunk is a sealed part of a session's log.
type Chunk struct {
	V       int    `json:"v"`
	Session string `json:"session"` // of the run that wrote it: forks share chunks
	Run     string `json:"run"`
	// Prev names the chunk before it; empty for a session's first.
	Prev   string        `json:"prev,omitempty"`
	Events []agent.Event `json:"events"` // the last field: see follow
}

// maxPlain bounds what is unpacked from a chunk, so that a planted one can't
// exhaust memory. A chunk of ours has about 1 MB.
const maxPlain = 64 << 20

var (
	packer   = sync.OnceValue(func() *zstd.Encoder { e, _ := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest)); return e })
	unpacker = sync.OnceValue(func() *zstd.Decoder { d, _ := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxPlain)); return d })
)

// seal returns a chunk's stored form, and the digest and the length of its plain form.
func seal(c Chunk) (digest string, data []byte, size int, err error) {
	plain, err := json.Marshal(c)
	if err != nil {
		return "", nil, 0, agent.Errorf(agent.Internal, "encoding a chunk of session %s: %w", c.Session, err)
	}
	return digestOf(plain), packer().EncodeAll(plain, nil), len(plain), nil
}

// open checks a chunk's stored form against its digest and decodes it. size is
// the length of the plain form.
func open(digest string, data []byte) (c Chunk, size int, err error) {
	plain, err := unpack(digest, data)
	if err == nil {
		err = decode(digest, plain, &c, &c.V)
	}
	if err != nil {
		return c, 0, err
	}
	// What is read is what is kept from collection, whoever made the chunk.
	if prev, err := follow(digest, plain); err != nil || prev != c.Prev {
		return c, 0, agent.Errorf(agent.ChunkDamaged, "chunk %s is damaged: it does not say one thing of the chunk before it; restore it from a backup of the store", digest)
	}
	return c, len(plain), nil
}

// link is open for what only follows the chain.
func link(digest string, data []byte) (prev string, err error) {
	plain, err := unpack(digest, data)
	if err != nil {
		return "", err
	}
	return follow(digest, plain)
}

// follow reads the digest of the chunk before. Most of a chunk are its events,
// which are not decoded: they stand last, and no text before them has a quote.
func follow(digest string, plain []byte) (prev string, err error) {
	top, _, _ := bytes.Cut(plain, []byte(`,"events":`))
	var c Chunk
	err = decode(digest, append(slices.Clip(top), '}'), &c, &c.V)
	return c.Prev, err
}

// unpack returns the plain form of a chunk, if it is what has the digest.
func unpack(digest string, data []byte) ([]byte, error) {
	plain, err := unpacker().DecodeAll(data, nil)
	if err != nil {
		return nil, agent.Errorf(agent.ChunkDamaged, "chunk %s is damaged: %w; restore it from a backup of the store", digest, err)
	}
	if got := digestOf(plain); got != digest {
		return nil, agent.Errorf(agent.ChunkDamaged, "chunk %s is damaged: its content has the digest %s; restore it from a backup of the store", digest, got)
	}
	return plain, nil
}

// decode reads a plain form, whose version is then in v.
func decode(digest string, plain []byte, into any, v *int) error {
	if err := json.Unmarshal(plain, into); err != nil {
		return agent.Errorf(agent.Incompatible, "chunk %s can't be read by this version: %w", digest, err)
	}
	if *v > agent.Version {
		return agent.Errorf(agent.Incompatible, "chunk %s has version %d; this build reads up to %d", digest, *v, agent.Version)
	}
	return nil
}

func digestOf(plain []byte) string {
	sum := sha256.Sum256(plain)
	return hex.EncodeToString(sum[:])
}
