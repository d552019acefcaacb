package store

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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
	Events []agent.Event `json:"events"`
}

// maxPlain bounds what is unpacked from a chunk, so that a planted one can't
// exhaust memory. A chunk of ours has about 1 MB.
const maxPlain = 64 << 20

var (
	packer   = sync.OnceValue(func() *zstd.Encoder { e, _ := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest)); return e })
	unpacker = sync.OnceValue(func() *zstd.Decoder { d, _ := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxPlain)); return d })
)

// seal returns a chunk's stored form and the digest of its plain form.
func seal(c Chunk) (digest string, data []byte, err error) {
	plain, err := json.Marshal(c)
	if err != nil {
		return "", nil, agent.Errorf(agent.Internal, "encoding a chunk of session %s: %w", c.Session, err)
	}
	return digestOf(plain), packer().EncodeAll(plain, nil), nil
}

// open checks a chunk's stored form against its digest and decodes it. size is
// the length of the plain form.
func open(digest string, data []byte) (c Chunk, size int, err error) {
	plain, err := unpacker().DecodeAll(data, nil)
	if err != nil {
		return c, 0, agent.Errorf(agent.ChunkDamaged, "chunk %s is damaged: %w; restore it from a backup of the store", digest, err)
	}
	if got := digestOf(plain); got != digest {
		return c, 0, agent.Errorf(agent.ChunkDamaged, "chunk %s is damaged: its content has the digest %s; restore it from a backup of the store", digest, got)
	}
	if err := json.Unmarshal(plain, &c); err != nil {
		return c, 0, agent.Errorf(agent.Incompatible, "chunk %s can't be read by this version: %w", digest, err)
	}
	if c.V > agent.Version {
		return c, 0, agent.Errorf(agent.Incompatible, "chunk %s has version %d; this build reads up to %d", digest, c.V, agent.Version)
	}
	return c, len(plain), nil
}

func digestOf(plain []byte) string {
	sum := sha256.Sum256(plain)
	return hex.EncodeToString(sum[:])
}
