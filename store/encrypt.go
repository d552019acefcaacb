package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/keyring"
)

// Encrypted is a store that encrypts everything into another store.
//
// The other store names a chunk with a dot and the id of its key at the end. So the chunk
// under a new key is stored beside the old one until that is deleted. The envelopes of
// chunks and heads stay plain, and so do edges, which have nothing else. If there are
// keys, a plain chunk or head is [agent.CodeChunkDamaged], because anybody could have
// written it. Only [Encrypted.Rekey] accepts what was stored before there were keys, and
// only if asked to.
type Encrypted struct {
	inner Store
	ring  *keyring.Ring
}

// Encrypt returns a store over another one. It encrypts with the first key of a ring, and
// decrypts with all of them. Without a key it reads and writes plain data, and refuses
// encrypted data with [agent.CodeNotSetUp].
func Encrypt(s Store, ring *keyring.Ring) *Encrypted { return &Encrypted{s, ring} }

// IsEncrypted reports whether a store encrypts what is put, and refuses plain data.
func IsEncrypted(s Store) bool {
	e, ok := s.(*Encrypted)
	return ok && e.refusesPlain()
}

// Inner returns the store that holds the encrypted data.
func (e *Encrypted) Inner() Store { return e.inner }

// PutIfAbsent implements [Store]. The value stays plain, because keys do not make it
// another store.
func (e *Encrypted) PutIfAbsent(ctx context.Context, key, value string) (string, error) {
	return e.inner.PutIfAbsent(ctx, key, value)
}

// PutChunk implements [Store].
func (e *Encrypted) PutChunk(ctx context.Context, name string, data []byte) error {
	key := e.ring.Primary()
	// An edge has only an envelope: there is nothing to encrypt.
	if key == "" || isEdge(name) {
		return e.inner.PutChunk(ctx, name, data)
	}
	// The purpose binds the data to this chunk.
	outside, inside := apart(data)
	return e.inner.PutChunk(ctx, nameOf(name, key), append(outside, e.ring.Encrypt(chunkPurpose+name, inside)...))
}

// apart divides a stored form into an envelope with its line feed, which stays plain, and
// the rest. Without an envelope, everything is rest.
func apart(data []byte) (outside, inside []byte) {
	if n := bytes.IndexByte(data[:min(len(data), maxEnvelope)], '\n'); n >= 0 && bytes.HasPrefix(data, []byte(mark)) {
		return slices.Clip(data[:n+1]), data[n+1:]
	}
	return nil, data
}

// The purposes of encryption. What is encrypted for one chunk or session can't be used as
// another's.
const (
	chunkPurpose = "chunk/"
	headPurpose  = "head/"
)

// nameOf returns the name of a chunk under a key; without a key, the digest alone.
func nameOf(digest, key string) string {
	if key == "" {
		return digest
	}
	return digest + "." + key
}

// names returns the names that a chunk may have, the likeliest first.
func (e *Encrypted) names(digest string) []string {
	if isEdge(digest) {
		return []string{digest}
	}
	names := make([]string, 0, 4)
	for _, id := range e.ring.IDs() {
		names = append(names, nameOf(digest, id))
	}
	return append(names, digest)
}

// Chunk implements [Store]. It tries the first name twice, because the chunk may just
// have been encrypted again.
func (e *Encrypted) Chunk(ctx context.Context, name string) ([]byte, error) {
	data, err := e.first(name, func(name string) ([]byte, error) { return e.inner.Chunk(ctx, name) })
	if err != nil {
		return nil, err
	}
	return e.decrypt(name, data)
}

// first reads a chunk under the first of its names that exists.
func (e *Encrypted) first(name string, read func(name string) ([]byte, error)) (data []byte, err error) {
	names := e.names(name)
	if len(names) > 1 {
		names = append(names, names[0])
	}
	for _, stored := range names {
		data, err = read(stored)
		switch {
		case errors.Is(err, agent.CodeChunkMissing):
		// Plain data could come from anybody who can write to the store.
		case err == nil && stored == name && e.refusesPlain() && !isEdge(name):
			return nil, plain("chunk " + name)
		default:
			return data, err
		}
	}
	return nil, err
}

// refusesPlain reports whether plain data must come from somebody without a key.
func (e *Encrypted) refusesPlain() bool { return e.ring.Primary() != "" }

// plain returns the error for data that should be encrypted and is not.
func plain(what string) error {
	return agent.Errorf(agent.CodeChunkDamaged, "%s is plain, and this process has keys: somebody without a key may have written it. If it was stored before there were keys, stop the workers, set FERMATA_ENCRYPTION_PLAIN_UNTIL to the present time and run fermata store rekey --plain; else restore it from a backup of the store", what)
}

// ChunkStart implements [Store].
func (e *Encrypted) ChunkStart(ctx context.Context, name string, most int) ([]byte, error) {
	data, err := e.first(name, func(name string) ([]byte, error) { return e.inner.ChunkStart(ctx, name, most) })
	if outside, _ := apart(data); err != nil || outside != nil {
		return data, err
	}
	data, err = e.Chunk(ctx, name) // without an envelope it may be encrypted as a whole
	return data[:min(len(data), most)], err
}

// decrypt decrypts a chunk's stored form.
func (e *Encrypted) decrypt(name string, data []byte) ([]byte, error) {
	outside, inside := apart(data)
	switch {
	case keyring.KeyID(inside) != "":
	case e.refusesPlain() && !isEdge(name):
		return nil, plain("chunk " + name)
	default:
		return data, nil
	}
	content, err := e.ring.Decrypt(chunkPurpose+name, inside)
	return append(outside, content...), damaged(err, "chunk "+name)
}

// damaged turns a failed decryption into the error of a damaged chunk or head. A missing
// key stays [agent.CodeNotSetUp], because restoring the store would not help.
func damaged(err error, what string) error {
	var e *agent.Error
	switch {
	case !errors.As(err, &e):
		return err
	case e.Code == agent.CodeNotSetUp:
		return agent.Errorf(agent.CodeNotSetUp, "%s can't be read: %w", what, err)
	}
	return agent.Errorf(agent.CodeChunkDamaged, "%s is damaged: %w; restore it from a backup of the store", what, err)
}

// Chunks implements [Store]. A chunk that is there under several keys is listed once.
func (e *Encrypted) Chunks(ctx context.Context, prefix string) iter.Seq2[ChunkInfo, error] {
	return func(yield func(ChunkInfo, error) bool) {
		var last ChunkInfo // not yielded yet: names of one chunk follow each other, since edges sort apart
		for c, err := range e.inner.Chunks(ctx, prefix) {
			if err != nil {
				yield(ChunkInfo{}, err)
				return
			}
			// The key's id does not belong to the chunk's name.
			c.Name, _, _ = strings.Cut(c.Name, ".")
			if c.Name == last.Name {
				last.Size += c.Size
				last.Put = latest(last.Put, c.Put)
				continue
			}
			if last.Name != "" && !yield(last, nil) {
				return
			}
			last = c
		}
		if last.Name != "" {
			yield(last, nil)
		}
	}
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// DeleteChunk implements [Store]. The chunk is gone when it is gone under every key.
func (e *Encrypted) DeleteChunk(ctx context.Context, digest string, before time.Time) (bool, error) {
	// Every name is tried, even after one is not gone.
	all := true
	for _, name := range e.names(digest) {
		gone, err := e.inner.DeleteChunk(ctx, name, before)
		if err != nil {
			return false, err
		}
		all = all && gone
	}
	return all, nil
}

// Head implements [Store].
func (e *Encrypted) Head(ctx context.Context, session string) (Head, error) {
	h, err := e.inner.Head(ctx, session)
	if err != nil {
		return h, err
	}
	if err := h.checkSession(session); err != nil {
		return Head{Session: session}, err
	}
	return e.open(h)
}

// open decrypts a stored head. The encrypted part repeats the plain part, so nobody
// without a key can change either.
func (e *Encrypted) open(stored Head) (Head, error) {
	what := "the head of session " + stored.Session
	if len(stored.Encrypted) == 0 {
		if e.refusesPlain() {
			return Head{Session: stored.Session}, plain(what)
		}
		return stored, nil
	}
	content, err := e.ring.Decrypt(headPurpose+stored.Session, stored.Encrypted)
	if err != nil {
		return Head{Session: stored.Session}, damaged(err, what)
	}
	var h Head
	if err := json.Unmarshal(content, &h); err != nil {
		return Head{Session: stored.Session}, agent.Errorf(agent.CodeChunkDamaged, "%s is damaged: %w", what, err)
	}
	// An old head could be put back by somebody without a key.
	if h.Version != stored.Version {
		return Head{Session: stored.Session}, agent.Errorf(agent.CodeChunkDamaged, "%s is damaged: it was version %d but is stored as version %d; restore it from a backup of the store", what, h.Version, stored.Version)
	}
	if stored.Encrypted = nil; !reflect.DeepEqual(asStored(h.envelope()), asStored(stored)) {
		return Head{Session: stored.Session}, agent.Errorf(agent.CodeChunkDamaged, "%s is damaged: its envelope was changed; restore it from a backup of the store", what)
	}
	return h, nil
}

// asStored makes heads comparable: times may come back in another zone.
func asStored(h Head) Head {
	h.Updated = h.Updated.UTC()
	return h
}

// PutHead implements [Store].
func (e *Encrypted) PutHead(ctx context.Context, h Head) error {
	if e.ring.Primary() == "" {
		return e.inner.PutHead(ctx, h)
	}
	plain, err := json.Marshal(h)
	if err != nil {
		return agent.Errorf(agent.CodeInternal, "encoding the head of session %s: %w", h.Session, err)
	}
	outside := h.envelope()
	outside.Encrypted = e.ring.Encrypt(headPurpose+h.Session, plain)
	return e.inner.PutHead(ctx, outside)
}

// Heads implements [Store].
func (e *Encrypted) Heads(ctx context.Context, prefix string) iter.Seq2[Head, error] {
	return func(yield func(Head, error) bool) {
		for h, err := range e.inner.Heads(ctx, prefix) {
			if err == nil {
				h, err = e.open(h)
			}
			if !yield(h, err) || err != nil && !errors.Is(err, agent.CodeChunkDamaged) {
				return
			}
		}
	}
}

// Decrypts reports whether at least one of the first encrypted chunks, at most so many,
// can be decrypted. If so, the key is right, and unreadable heads are damaged. Errors
// count as no.
func (e *Encrypted) Decrypts(ctx context.Context, most int) bool {
	for c, err := range e.inner.Chunks(ctx, "") {
		if err != nil || most == 0 {
			return false
		}
		name, _, encrypted := strings.Cut(c.Name, ".")
		if !encrypted {
			continue
		}
		if _, err := e.Chunk(ctx, name); err == nil {
			return true
		}
		most--
	}
	return false
}

// DeleteHead implements [Store].
func (e *Encrypted) DeleteHead(ctx context.Context, session string, version int64) error {
	return e.inner.DeleteHead(ctx, session, version)
}
