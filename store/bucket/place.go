package bucket

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"gocloud.dev/blob"

	"github.com/fermata-agents/fermata/agent"
)

// Keys of heads are heads/SESSION!PLACE.
const (
	headFolder = "heads/"
	goneFolder = "gone/"
	// pieceDigits is the length of the pieces of a name, and pieceEnd separates them:
	// many servers refuse more than 255 bytes between two slashes. The mark sorts before
	// pieceEnd, as a name sorts before a longer one.
	pieceDigits = 200
	pieceEnd    = "~/"
	placeDigits = 16
)

// headPrefix returns the beginning of the keys of all heads whose sessions' names begin
// like this.
func headPrefix(session string) string {
	digits := hex.EncodeToString([]byte(session))
	var key strings.Builder
	key.WriteString(headFolder)
	for len(digits) > pieceDigits {
		key.WriteString(digits[:pieceDigits] + pieceEnd)
		digits = digits[pieceDigits:]
	}
	key.WriteString(digits)
	return key.String()
}

// goneKey returns the key of the last remainder of a deleted session.
func goneKey(session string) string {
	return fmt.Sprintf("%s%x", goneFolder, sha256.Sum256([]byte(session)))
}

// place is one version of a session's head: an object, or the place for one.
type place struct {
	session string
	version int64
	size    int64     // of the object, in bytes
	put     time.Time // when it was written, by the service's clock
}

// tombstone is the content of the place after a deleted head, and later of gone/HASH.
type tombstone struct {
	Version int64       `json:"version"`
	Fence   agent.Fence `json:"fence"`
}

// tombstoneSize is the size of a tombstone in bytes. It tells tombstones from heads, which are
// larger.
const tombstoneSize = 160

// emptied is the content that overwrites the versions of a deleted head.
const emptied = "gone"

func (g tombstone) encode() []byte {
	data, _ := json.Marshal(g) // numbers and a text: it can't fail
	if len(data) > tombstoneSize {
		// Comparing fences ignores By, so a tombstone can do without it.
		g.Fence.By = ""
		data, _ = json.Marshal(g)
	}
	return padded(data, tombstoneSize)
}

// padded appends spaces to JSON up to a size.
func padded(data []byte, size int) []byte {
	return append(data, bytes.Repeat([]byte(" "), max(0, size-len(data)))...)
}

func (p place) deleted() bool { return p.size == tombstoneSize }

func (p place) key() string {
	return headPrefix(p.session) + mark + fmt.Sprintf("%0*x", placeDigits, ^uint64(p.version)) // inverted: lists begin with the smallest key
}

// placeOf returns the place of an object; ok is false if it is none.
func placeOf(o *blob.ListObject) (p place, ok bool) {
	name, number, _ := strings.Cut(strings.TrimPrefix(o.Key, headFolder), mark)
	session, err := hex.DecodeString(strings.ReplaceAll(name, pieceEnd, ""))
	if err != nil || len(number) != placeDigits {
		return p, false
	}
	n, err := strconv.ParseUint(number, 16, 64)
	return place{string(session), int64(^n), o.Size, o.ModTime}, err == nil
}

// places returns the newest places of a session, the newest first.
func (s *Store) places(ctx context.Context, session string, most int) (list []place, err error) {
	objects, _, err := s.b.ListPage(ctx, blob.FirstPageToken, most, &blob.ListOptions{Prefix: headPrefix(session) + mark})
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if err == nil {
		err = ctx.Err() // some buckets do not check it
	}
	for _, o := range objects {
		if p, ok := placeOf(o); ok {
			list = append(list, p)
		}
	}
	return list, err
}

// readTombstone reads a tombstone; it is empty if there is none.
func (s *Store) readTombstone(ctx context.Context, key string) (g tombstone, err error) {
	data, err := s.read(ctx, key)
	if missing(err) {
		return g, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &g)
	}
	return g, err
}

// These times keep a slow writer from creating a version that existed before: see the
// package comment.
const (
	// patience is the longest time of a call from its check to its write.
	patience = time.Minute
	// grace is how long old versions are kept.
	grace = 30 * time.Minute
)

// tidy removes old versions from the places of one session, given newest first. whole
// says that list has all places. What can't be removed stays for the next time.
func (s *Store) tidy(ctx context.Context, list []place, whole bool) error {
	long := s.now().Add(-grace)
	left := false
	for i := len(list) - 1; i > 0; i-- {
		// What counts is when its successor was written: until then it was in use.
		if !list[i-1].put.Before(long) {
			left = true
			continue
		}
		if err := s.remove(ctx, list[i].key()); err != nil {
			return err
		}
	}
	if top := list[0]; whole && !left && top.deleted() && top.put.Before(long) {
		left, err := s.readTombstone(ctx, top.key())
		if err != nil || left.Version == 0 {
			return err
		}
		// Before the tombstone goes: its version and fence must not be lost.
		if err := s.write(ctx, goneKey(top.session), left.encode()); err != nil {
			return err
		}
		return s.remove(ctx, top.key())
	}
	return nil
}
