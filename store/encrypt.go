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
// chunks and of heads, and so do edges, which have nothing else. What was stored before
// there were keys is read as it is.
type Encrypted struct {
	inner Store
	ring  *keyring.Ring
}

// Encrypt returns a store over another one that writes with the first key of a ring
// and reads with all of them. Without a key it reads and writes what is plain, and
// refuses what is encrypted with [agent.NotSetUp].
func Encrypt(s Store, ring *keyring.Ring) *Encrypted { return &Encrypted{s, ring} }

// Inner is the store that keeps what is encrypted.
func (e *Encrypted) Inner() Store { return e.inner }

// PutChunk implements [Store].
func (e *Encrypted) PutChunk(ctx context.Context, name string, data []byte) error {
	key := e.ring.Writes()
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
	for _, name := range names {
		if data, err = read(name); !errors.Is(err, agent.ChunkMissing) {
			return data, err
		}
	}
	return nil, err
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

// decrypt reads a chunk's stored form, which may be plain.
func (e *Encrypted) decrypt(name string, data []byte) ([]byte, error) {
	outside, inside := apart(data)
	if keyring.KeyOf(inside) == "" {
		return data, nil
	}
	plain, err := e.ring.Decrypt(chunkPurpose+name, inside)
	return append(outside, plain...), damaged(err, "chunk "+name)
}

// damaged makes of what was changed what the store says of it; a key that is not
// there is nothing that the store could mend.
func damaged(err error, what string) error {
	var e *agent.Error
	switch {
	case !errors.As(err, &e):
		return err
	case e.Code == agent.NotSetUp:
		return agent.Errorf(agent.NotSetUp, "%s can't be read: %w", what, err)
	}
	return agent.Errorf(agent.ChunkDamaged, "%s is damaged: %w; restore it from a backup of the store", what, err)
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
	return e.open(h)
}

// open reads a stored head, which may be plain.
func (e *Encrypted) open(stored Head) (Head, error) {
	if len(stored.Encrypted) == 0 {
		return stored, nil
	}
	what := "the head of session " + stored.Session
	plain, err := e.ring.Decrypt(headPurpose+stored.Session, stored.Encrypted)
	if err != nil {
		return Head{Session: stored.Session}, damaged(err, what)
	}
	var h Head
	if err := json.Unmarshal(plain, &h); err != nil {
		return Head{Session: stored.Session}, agent.Errorf(agent.ChunkDamaged, "%s is damaged: %w", what, err)
	}
	if h.Version != stored.Version {
		return Head{Session: stored.Session}, agent.Errorf(agent.ChunkDamaged, "%s is damaged: it was version %d and stands as version %d; restore it from a backup of the store", what, h.Version, stored.Version)
	}
	if stored.Encrypted = nil; !reflect.DeepEqual(asStored(h.envelope()), asStored(stored)) {
		return Head{Session: stored.Session}, agent.Errorf(agent.ChunkDamaged, "%s is damaged: its envelope was changed; restore it from a backup of the store", what)
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
	if e.ring.Writes() == "" {
		return e.inner.PutHead(ctx, h)
	}
	plain, err := json.Marshal(h)
	if err != nil {
		return agent.Errorf(agent.Internal, "encoding the head of session %s: %w", h.Session, err)
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
			if !yield(h, err) || err != nil && !errors.Is(err, agent.ChunkDamaged) {
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

// Rekeyed is what became of a store that was encrypted anew.
type Rekeyed struct {
	Key    string `json:"key"`    // that writes
	Chunks int    `json:"chunks"` // encrypted anew
	Heads  int    `json:"heads"`  // encrypted anew
	// Left is what could not be, for it was written meanwhile: the next time finds it.
	Left int `json:"left"`
}

// Rekey encrypts anew, with the first key of the ring, whatever is plain or under
// another key. It may be called while sessions are written, by processes that have the
// key, and again after it was interrupted. What was done before an error is told beside
// it: [agent.NotSetUp] without a key, or for what is under a key that the ring lacks, and
// those of the store.
func (e *Encrypted) Rekey(ctx context.Context) (Rekeyed, error) {
	done := Rekeyed{Key: e.ring.Writes()}
	if done.Key == "" {
		return done, agent.Errorf(agent.NotSetUp, "there is no key to encrypt with: set FERMATA_ENCRYPTION_KEYS")
	}
	// Heads first: what they name is then under a key that their readers have.
	for h, err := range e.inner.Heads(ctx, "") {
		if err != nil {
			return done, err
		}
		if err := e.rekeyHead(ctx, h, &done); err != nil {
			return done, err
		}
	}
	for c, err := range e.inner.Chunks(ctx, "") {
		if err != nil {
			return done, err
		}
		if err := e.rekeyChunk(ctx, c, &done); err != nil {
			return done, err
		}
	}
	return done, nil
}

func (e *Encrypted) rekeyHead(ctx context.Context, stored Head, done *Rekeyed) error {
	if keyring.KeyOf(stored.Encrypted) == done.Key {
		return nil
	}
	h, err := e.open(stored)
	if err != nil {
		return err
	}
	h.Version++ // a run that writes it next finds its own and goes on from there
	switch err := e.PutHead(ctx, h); {
	case errors.Is(err, agent.Stale):
		done.Left++
	case err != nil:
		return err
	default:
		done.Heads++
	}
	return nil
}

func (e *Encrypted) rekeyChunk(ctx context.Context, c ChunkInfo, done *Rekeyed) error {
	digest, key, _ := strings.Cut(c.Name, ".")
	if key == done.Key || isEdge(c.Name) {
		return nil
	}
	if key != "" && !slices.Contains(e.ring.IDs(), key) {
		return damaged(e.ring.Lacks(key), "chunk "+digest)
	}
	data, err := e.inner.Chunk(ctx, c.Name)
	if errors.Is(err, agent.ChunkMissing) { // collected meanwhile
		return nil
	}
	if err == nil {
		data, err = e.decrypt(digest, data)
	}
	if err == nil {
		err = e.PutChunk(ctx, digest, data)
	}
	if err != nil {
		return err
	}
	gone, err := e.inner.DeleteChunk(ctx, c.Name, c.Put.Add(time.Millisecond))
	switch {
	case err != nil:
		return err
	case gone:
		done.Chunks++
	default: // put again by a process that writes with an older key
		done.Left++
	}
	return nil
}
