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
	// pieceDigits is how long the pieces of a name are, and pieceEnd what stands
	// between them: what is longer than 255 bytes many servers can't keep between two
	// slashes. The mark is before it in the order, as a name is before a longer one.
	pieceDigits = 200
	pieceEnd    = "~/"
	placeDigits = 16
)

// headPrefix begins the keys of the heads of all sessions whose names begin so.
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

// goneKey says where a session stands when nothing else is left of it.
func goneKey(session string) string {
	return fmt.Sprintf("%s%x", goneFolder, sha256.Sum256([]byte(session)))
}

// place is one version of a session's head: an object, or where one may be created.
type place struct {
	session string
	version int64
	size    int64     // of the object, in bytes
	put     time.Time // when it was written, by the service's clock
}

// grave is what stands where a deleted head's next version would be, and gone/HASH
// after it.
type grave struct {
	Version int64       `json:"version"`
	Fence   agent.Fence `json:"fence"`
}

// graveSize is the length of a grave, by which it is told, in bytes. A head is longer.
const graveSize = 160

// emptied is what is written over the versions of a deleted head.
const emptied = "gone"

func (g grave) encode() []byte {
	data, _ := json.Marshal(g) // numbers and a text
	if len(data) > graveSize {
		g.Fence.By = ""
		data, _ = json.Marshal(g)
	}
	return padded(data, graveSize)
}

// padded makes JSON as long as it has to be.
func padded(data []byte, size int) []byte {
	return append(data, bytes.Repeat([]byte(" "), max(0, size-len(data)))...)
}

func (p place) dead() bool { return p.size == graveSize }

func (p place) key() string {
	return headPrefix(p.session) + mark + fmt.Sprintf("%0*x", placeDigits, ^uint64(p.version))
}

// placeOf reads a place off an object; ok reports whether it is one.
func placeOf(o *blob.ListObject) (p place, ok bool) {
	name, number, _ := strings.Cut(strings.TrimPrefix(o.Key, headFolder), mark)
	session, err := hex.DecodeString(strings.ReplaceAll(name, pieceEnd, ""))
	if err != nil || len(number) != placeDigits {
		return p, false
	}
	n, err := strconv.ParseUint(number, 16, 64)
	return place{string(session), int64(^n), o.Size, o.ModTime}, err == nil
}

// places are the newest places of a session, the newest first.
func (s *Store) places(ctx context.Context, session string, most int) (list []place, err error) {
	objects, _, err := s.b.ListPage(ctx, blob.FirstPageToken, most, &blob.ListOptions{Prefix: headPrefix(session) + mark})
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if err == nil {
		err = ctx.Err() // not every bucket looks at it
	}
	for _, o := range objects {
		if p, ok := placeOf(o); ok {
			list = append(list, p)
		}
	}
	return list, err
}

// buried reads the grave in a place; it is empty if there is none.
func (s *Store) buried(ctx context.Context, key string) (g grave, err error) {
	data, err := s.read(ctx, key)
	if missing(err) {
		return g, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &g)
	}
	return g, err
}

// What keeps a slow writer from creating a version that was there already; see the
// package's text.
const (
	// patience bounds a call from its look to its write.
	patience = time.Minute
	// grace is how long what is over is kept.
	grace = 30 * time.Minute
)

// tidy removes what has been over for long, of the places of one session, the newest
// first. whole tells that the list has all of them. What can't be removed stays for
// the next time.
func (s *Store) tidy(ctx context.Context, list []place, whole bool) error {
	long := s.now().Add(-grace)
	left := false
	for i := len(list) - 1; i > 0; i-- {
		if !list[i-1].put.Before(long) {
			left = true
			continue
		}
		if err := s.remove(ctx, list[i].key()); err != nil {
			return err
		}
	}
	if top := list[0]; whole && !left && top.dead() && top.put.Before(long) {
		left, err := s.buried(ctx, top.key())
		if err != nil || left.Version == 0 {
			return err
		}
		if err := s.write(ctx, goneKey(top.session), left.encode()); err != nil {
			return err
		}
		return s.remove(ctx, top.key())
	}
	return nil
}
