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

// Encrypted is a store that keeps nothing but what is encrypted in another one.
//
// A chunk's name there has a dot and the id of its key behind it, so that one under
// a new key stands beside the old one until that is deleted. Envelopes stay plain, of
// chunks and of heads, and so do edges, which have nothing else. A plain chunk or head is
// [agent.CodeChunkDamaged] if there are keys: anybody could have written it. Only
// [Encrypted.Rekey] takes what was stored before there were keys, and only if asked to.
type Encrypted struct {
	inner Store
	ring  *keyring.Ring
}

// Encrypt returns a store over another one that writes with the first key of a ring
// and reads with all of them. Without a key it reads and writes what is plain, and
// refuses what is encrypted with [agent.CodeNotSetUp].
func Encrypt(s Store, ring *keyring.Ring) *Encrypted { return &Encrypted{s, ring} }

// IsEncrypted reports whether what is put into a store is encrypted, and nothing plain is read
// from it.
func IsEncrypted(s Store) bool {
	e, ok := s.(*Encrypted)
	return ok && e.refusesPlain()
}

// Inner is the store that keeps what is encrypted.
func (e *Encrypted) Inner() Store { return e.inner }

// PutIfAbsent implements [Store]: keys do not make another store of it.
func (e *Encrypted) PutIfAbsent(ctx context.Context, key, value string) (string, error) {
	return e.inner.PutIfAbsent(ctx, key, value)
}

// PutChunk implements [Store].
func (e *Encrypted) PutChunk(ctx context.Context, name string, data []byte) error {
	key := e.ring.Primary()
	if key == "" || isEdge(name) {
		return e.inner.PutChunk(ctx, name, data)
	}
	outside, inside := apart(data)
	return e.inner.PutChunk(ctx, nameOf(name, key), append(outside, e.ring.Encrypt(chunkPurpose+name, inside)...))
}

// apart divides a stored form into what stays plain, an envelope and its line feed, and
// the rest. What has no envelope is all rest.
func apart(data []byte) (outside, inside []byte) {
	if n := bytes.IndexByte(data[:min(len(data), maxEnvelope)], '\n'); n >= 0 && bytes.HasPrefix(data, []byte(mark)) {
		return slices.Clip(data[:n+1]), data[n+1:]
	}
	return nil, data
}

// What is encrypted for one chunk or session is no other's.
const (
	chunkPurpose = "chunk/"
	headPurpose  = "head/"
)

// nameOf is the name of a chunk under a key; one without a key has its digest alone.
func nameOf(digest, key string) string {
	if key == "" {
		return digest
	}
	return digest + "." + key
}

// names are those that a chunk may have, the likeliest first.
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

// Chunk implements [Store]. The first name is tried once more: the chunk may just
// have been encrypted anew.
func (e *Encrypted) Chunk(ctx context.Context, name string) ([]byte, error) {
	data, err := e.first(name, func(name string) ([]byte, error) { return e.inner.Chunk(ctx, name) })
	if err != nil {
		return nil, err
	}
	return e.decrypt(name, data)
}

// first reads a chunk under the first of its names that is there.
func (e *Encrypted) first(name string, read func(name string) ([]byte, error)) (data []byte, err error) {
	names := e.names(name)
	if len(names) > 1 {
		names = append(names, names[0])
	}
	for _, stored := range names {
		data, err = read(stored)
		switch {
		case errors.Is(err, agent.CodeChunkMissing):
		case err == nil && stored == name && e.refusesPlain() && !isEdge(name):
			return nil, plain("chunk " + name)
		default:
			return data, err
		}
	}
	return nil, err
}

// refusesPlain reports whether what is plain was written by somebody without a key.
func (e *Encrypted) refusesPlain() bool { return e.ring.Primary() != "" }

// plain is the error of what is not encrypted and has to be.
func plain(what string) error {
	return agent.Errorf(agent.CodeChunkDamaged, "%s is plain, and this process has keys: somebody without a key may have written it. If it was stored before there were keys, stop the workers, set FERMATA_ENCRYPTION_PLAIN_UNTIL to the present time and run fermata store rekey --plain; else restore it from a backup of the store", what)
}

// ChunkStart implements [Store].
func (e *Encrypted) ChunkStart(ctx context.Context, name string, most int) ([]byte, error) {
	data, err := e.first(name, func(name string) ([]byte, error) { return e.inner.ChunkStart(ctx, name, most) })
	if outside, _ := apart(data); err != nil || outside != nil {
		return data, err
	}
	data, err = e.Chunk(ctx, name) // it has no envelope: none of ours
	return data[:min(len(data), most)], err
}

// decrypt reads a chunk's stored form.
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

// damaged makes of what was changed what the store says of it; a key that is not
// there is nothing that the store could mend.
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

// Chunks implements [Store]. What is there under several keys is one chunk.
func (e *Encrypted) Chunks(ctx context.Context, prefix string) iter.Seq2[ChunkInfo, error] {
	return func(yield func(ChunkInfo, error) bool) {
		var last ChunkInfo // not yielded yet; edges stand apart, so that all names of one chunk stand together
		for c, err := range e.inner.Chunks(ctx, prefix) {
			if err != nil {
				yield(ChunkInfo{}, err)
				return
			}
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

// DeleteChunk implements [Store]. It is gone when it is gone under every key.
func (e *Encrypted) DeleteChunk(ctx context.Context, digest string, before time.Time) (bool, error) {
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
	if err := h.standsAt(session); err != nil {
		return Head{Session: session}, err
	}
	return e.open(h)
}

// open reads a stored head. What is plain of it is also in what is encrypted: who has no
// key can change neither.
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
	if h.Version != stored.Version {
		return Head{Session: stored.Session}, agent.Errorf(agent.CodeChunkDamaged, "%s is damaged: it was version %d and stands as version %d; restore it from a backup of the store", what, h.Version, stored.Version)
	}
	if stored.Encrypted = nil; !reflect.DeepEqual(asStored(h.envelope()), asStored(stored)) {
		return Head{Session: stored.Session}, agent.Errorf(agent.CodeChunkDamaged, "%s is damaged: its envelope was changed; restore it from a backup of the store", what)
	}
	return h, nil
}

// asStored makes heads comparable: a time may come back in another zone.
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

// Decrypts reports whether one of the first chunks under a key, at most so many, can be
// read: then the key is right, and heads that can't be read are damaged. Errors count as no.
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
