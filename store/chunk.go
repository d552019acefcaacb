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
	Name string // its name in a store
	Envelope
	content
}

// content is the part of a chunk that is compressed and encrypted.
type content struct {
	Run string `json:"run"` // the run of the first events
	// Base is what a model still knows of the events before Knows.From, as events. It is
	// set if this chunk made the model forget the rest.
	Base   []agent.Event `json:"base,omitempty"`
	Events []agent.Event `json:"events"`
}

// maxPlain limits what is unpacked from a chunk, so that a forged one can't exhaust
// memory. Our own chunks have about 1 MB. It also limits what one [Log] unpacks at the
// same time.
const maxPlain = 64 << 20

var (
	packer   = sync.OnceValue(func() *zstd.Encoder { e, _ := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest)); return e })
	unpacker = sync.OnceValue(func() *zstd.Decoder {
		d, _ := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxPlain), zstd.WithDecodeAllCapLimit(true))
		return d
	})
)

// seal completes the envelope of a chunk and returns the chunk's stored form.
func seal(c *Chunk) (data []byte, err error) {
	c.V, c.Kind = ChunkVersion, kindEvents
	if n := len(c.Events); n > 0 {
		c.First, c.Last = c.Events[0].Seq, c.Events[n-1].Seq
	}
	if c.Files, err = filesIn(c.Events); err != nil {
		return nil, err
	}
	if len(c.Files) > maxFiles {
		return nil, agent.Errorf(agent.CodeTooLarge, "a chunk of session %s names %d files; at most %d are read", c.Session, len(c.Files), maxFiles)
	}
	plain, err := json.Marshal(c.content)
	if err != nil {
		return nil, agent.Errorf(agent.CodeInternal, "encoding a chunk of session %s: %w", c.Session, err)
	}
	c.Name, data, err = wrap(&c.Envelope, plain)
	return data, err
}

// open checks a chunk's stored form against its name and decodes it.
func open(name string, data []byte) (*Chunk, error) {
	c := &Chunk{Name: name}
	if err := c.read(name, data); err != nil {
		return nil, err
	}
	if err := c.decode(data); err != nil {
		return nil, err
	}
	return c, nil
}

// decode reads the content of a chunk whose envelope was read.
func (c *Chunk) decode(data []byte) error {
	name := c.Name
	plain, err := c.unwrap(name, data, kindEvents)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(plain, &c.content); err != nil {
		return agent.Errorf(agent.CodeIncompatible, "chunk %s can't be read by this version: %w", name, err)
	}
	// A forged envelope could claim other events, and readers skip by it.
	if n := len(c.Events); n > 0 && (c.Events[0].Seq != c.First || c.Events[n-1].Seq != c.Last) {
		return agent.Errorf(agent.CodeChunkDamaged, "chunk %s is damaged: its envelope names the events %d to %d, but it has %d to %d", name, c.First, c.Last, c.Events[0].Seq, c.Events[n-1].Seq)
	}
	// It keeps files by this list, so none may be missing from it.
	if files, err := filesIn(c.Events); err != nil || !slices.Equal(files, c.Files) {
		return agent.Errorf(agent.CodeChunkDamaged, "chunk %s is damaged: its envelope does not name the files of its events", name)
	}
	return nil
}

// wrap returns the stored form of a content: its envelope, a line feed, and the
// compressed content. The name is the digest of the envelope, which has the digest of the
// content.
func wrap(e *Envelope, plain []byte) (name string, data []byte, err error) {
	e.Size, e.Content = len(plain), digestOf(plain)
	line, err := json.Marshal(e)
	if err != nil {
		return "", nil, agent.Errorf(agent.CodeInternal, "encoding the envelope of a chunk of session %s: %w", e.Session, err)
	}
	// Readers read only this much before they know the rest.
	if len(line) >= maxEnvelope {
		return "", nil, agent.Errorf(agent.CodeTooLarge, "the envelope of a chunk of session %s has %d bytes; at most %d are read", e.Session, len(line), maxEnvelope)
	}
	return ChunkPrefix(e.Session) + ofChunk + digestOf(line), packer().EncodeAll(plain, append(line, '\n')), nil
}

// unwrap returns the content of a stored form, and checks it against the envelope, which
// was read before. It unpacks no more than the envelope says.
func (e *Envelope) unwrap(name string, data []byte, kind string) ([]byte, error) {
	if e.Kind != kind {
		return nil, agent.Errorf(agent.CodeChunkDamaged, "chunk %s has kind %q, not %q", name, e.Kind, kind)
	}
	_, packed, _ := bytes.Cut(data, []byte("\n"))
	// Bounded by the envelope, whose size was checked, and by the decoder's own limit.
	plain, err := unpacker().DecodeAll(packed, make([]byte, 0, e.Size))
	if err != nil {
		return nil, agent.Errorf(agent.CodeChunkDamaged, "chunk %s is damaged: %w; restore it from a backup of the store", name, err)
	}
	if got := digestOf(plain); got != e.Content || len(plain) != e.Size {
		return nil, agent.Errorf(agent.CodeChunkDamaged, "chunk %s is damaged: its content has the digest %s; restore it from a backup of the store", name, got)
	}
	return plain, nil
}

func digestOf(plain []byte) string {
	sum := sha256.Sum256(plain)
	return hex.EncodeToString(sum[:])
}
