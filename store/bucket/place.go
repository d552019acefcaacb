package bucket

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"gocloud.dev/blob"
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
	// versionBits are those of a place that count versions; the others count lives.
	versionBits = 40
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

// goneKey is where a session's lives are remembered when nothing else is left of it.
func goneKey(session string) string {
	return fmt.Sprintf("%s%x", goneFolder, sha256.Sum256([]byte(session)))
}

// place is one version of a session's head: an object, or where one may be created.
type place struct {
	session       string
	life, version int64
	size          int64     // of the object, in bytes
	put           time.Time // when it was written, by the service's clock
}

// grave is what an object of a deleted head has in it. A head is always longer.
const grave = "gone"

func (p place) dead() bool { return p.size == int64(len(grave)) }

func (p place) key() string {
	return headPrefix(p.session) + mark + fmt.Sprintf("%0*x", placeDigits, ^uint64(p.life<<versionBits|p.version))
}

// placeOf reads a place off an object; ok tells whether it is one.
func placeOf(o *blob.ListObject) (p place, ok bool) {
	name, number, _ := strings.Cut(strings.TrimPrefix(o.Key, headFolder), mark)
	session, err := hex.DecodeString(strings.ReplaceAll(name, pieceEnd, ""))
	if err != nil || len(number) != placeDigits {
		return p, false
	}
	n, err := strconv.ParseUint(number, 16, 64)
	n = ^n
	return place{string(session), int64(n >> versionBits), int64(n & (1<<versionBits - 1)), o.Size, o.ModTime}, err == nil
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

// next is the place of the next version, and version that of the head that is there,
// 0 where none is.
func (s *Store) next(ctx context.Context, session string, list []place) (next place, version int64, err error) {
	next = place{session: session, life: 1, version: 1}
	switch {
	case len(list) == 0:
		next.life, err = s.lives(ctx, session)
		next.life++
	case list[0].dead():
		next.life = list[0].life + 1
	default:
		next.life, next.version = list[0].life, list[0].version+1
	}
	return next, next.version - 1, err
}

// lives is how many lives a session had of which nothing else is left.
func (s *Store) lives(ctx context.Context, session string) (int64, error) {
	data, err := s.read(ctx, goneKey(session))
	if missing(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(string(data), 10, 64)
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
		if err := s.write(ctx, goneKey(top.session), strconv.AppendInt(nil, top.life, 10)); err != nil {
			return err
		}
		return s.remove(ctx, top.key())
	}
	return nil
}
