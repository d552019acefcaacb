package bucket

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/fermata-agents/fermata/agent"
)

// Store is a store in a bucket. It is safe for concurrent use, and
// many processes may have one on the same bucket.
type Store struct {
	b    *blob.Bucket
	name string
	now  func() time.Time
	// heeds tells that the service was seen to heed the condition of a write.
	heeds atomic.Bool
}

// Options are optional; nil means all defaults.
type Options struct {
	// Name tells people in errors where the store is; empty means "a bucket".
	Name string
}

// New returns a store in a bucket, which it takes over: closing it closes the
// bucket. Several stores share a bucket by [blob.PrefixedBucket].
func New(b *blob.Bucket, o *Options) *Store {
	if o == nil {
		o = &Options{}
	}
	return &Store{b: b, name: cmp.Or(o.Name, "a bucket"), now: time.Now}
}

// Open opens a bucket by its URL, such as s3://NAME?region=REGION&prefix=FOLDER/, as
// gocloud.dev has it for each service; its package (gocloud.dev/blob/s3blob) has to be
// imported. Nothing is asked of the service yet. The caller closes the store. The
// error is [agent.CodeInvalidInput], for a URL that can't be or whose service is not there.
func Open(ctx context.Context, place string) (*Store, error) {
	u, err := url.Parse(place)
	if err != nil {
		return nil, agent.Errorf(agent.CodeInvalidInput, "the URL of the store's bucket can't be read: %w", errors.Unwrap(err))
	}
	if !blob.DefaultURLMux().ValidBucketScheme(u.Scheme) {
		return nil, agent.Errorf(agent.CodeInvalidInput, "the store can't be in a bucket of %s://: this program has %v", u.Scheme, blob.DefaultURLMux().BucketSchemes())
	}
	b, err := blob.OpenBucket(ctx, place)
	if err != nil {
		return nil, agent.Errorf(agent.CodeInvalidInput, "opening the store in the bucket %s://%s: %w", u.Scheme, u.Host+u.Path, err)
	}
	return New(b, &Options{Name: "the bucket " + u.Scheme + "://" + u.Host + u.Path}), nil
}

// Close gives the bucket back, when the calls in progress are over.
func (s *Store) Close() error { return s.b.Close() }

// String tells where the store is.
func (s *Store) String() string { return s.name }

// unavailable is the error of what may succeed later.
func (s *Store) unavailable(err error, format string, args ...any) error {
	return agent.Errorf(agent.CodeStoreUnavailable, "%s %s: %w", fmt.Sprintf(format, args...), s.name, err)
}

// tries bounds how often a call looks again when others changed what it had found.
const tries = 5

// errBusy is why a call gives up after that.
var errBusy = errors.New("others change it as fast as it is read; try again")

// missing reports whether an object was not there.
func missing(err error) bool {
	if code := codeOf(err); code != "" {
		return code == "NoSuchKey" || code == "NotFound"
	}
	return gcerrors.Code(err) == gcerrors.NotFound
}

// taken reports whether an object was there already that was to be created.
func taken(err error) bool {
	if code := codeOf(err); code != "" {
		return code == "PreconditionFailed"
	}
	code := gcerrors.Code(err)
	return code == gcerrors.FailedPrecondition || code == gcerrors.AlreadyExists
}

// codeOf is what S3 calls an error; empty for that of another service. The Go CDK says
// CodeNotFound for each error of S3 whose text has 301 in it, and so for every one of which
// the request's id has; and for a bucket that is not there.
func codeOf(err error) string {
	var api interface{ ErrorCode() string }
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

// list lists the objects whose keys begin with a prefix, in order of keys.
func (s *Store) list(ctx context.Context, prefix string) iter.Seq2[*blob.ListObject, error] {
	return func(yield func(*blob.ListObject, error) bool) {
		all := s.b.List(&blob.ListOptions{Prefix: prefix})
		for {
			o, err := all.Next(ctx)
			if errors.Is(err, io.EOF) {
				err = ctx.Err() // not every bucket looks at it
				if err != nil {
					yield(nil, err)
				}
				return
			}
			if err = cmp.Or(ctx.Err(), err); !yield(o, err) || err != nil {
				return
			}
		}
	}
}

func (s *Store) read(ctx context.Context, key string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return s.b.ReadAll(ctx, key)
}

// write writes an object, wholly or not at all.
func (s *Store) write(ctx context.Context, key string, data []byte) error {
	return s.b.WriteAll(ctx, key, data, &blob.WriterOptions{ContentType: "application/octet-stream"})
}

// create writes an object if there is none; else the error is one of taken.
func (s *Store) create(ctx context.Context, key string, data []byte) error {
	return s.b.WriteAll(ctx, key, data, &blob.WriterOptions{ContentType: "application/octet-stream", IfNotExist: true})
}

// remove removes an object; one that is not there is removed.
func (s *Store) remove(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.b.Delete(ctx, key); !missing(err) {
		return err
	}
	return nil
}

// PutIfAbsent implements [store.Store]: an object, named as the key.
func (s *Store) PutIfAbsent(ctx context.Context, key, value string) (string, error) {
	for range tries {
		kept, err := s.read(ctx, key)
		found := strings.TrimSpace(string(kept))
		switch {
		case err == nil && found == "":
			return "", agent.Errorf(agent.CodeChunkDamaged, "the store in %s is damaged: its object %s is empty; restore it from a backup of the store", s.name, key)
		case err == nil || missing(err) && value == "":
			return found, nil
		case !missing(err):
			return "", s.unavailable(err, "reading the %s of the store from", key)
		}
		if err := s.heeded(ctx); err != nil {
			return "", err
		}
		if err := s.create(ctx, key, []byte(value+"\n")); err != nil && !taken(err) {
			return "", s.unavailable(err, "writing the %s of the store to", key)
		}
	}
	return "", s.unavailable(errBusy, "reading the %s of the store from", key)
}

// condition is the object that is written to see whether the service heeds conditions.
const condition = "condition"

// heeded makes sure, once a process, that the service heeds the condition of create.
// A server that only looks like S3 may not, and two runs would own a session. The
// error is [agent.CodeNotSetUp] then.
func (s *Store) heeded(ctx context.Context) error {
	if s.heeds.Load() {
		return nil
	}
	for range 2 { // the first time in the store's life it is created
		err := s.create(ctx, condition, []byte(condition))
		if taken(err) {
			s.heeds.Store(true)
			return nil
		}
		if err != nil {
			return s.unavailable(err, "writing to")
		}
	}
	return agent.Errorf(agent.CodeNotSetUp, "%s can't be a store: its server creates an object that is there already, although it was told not to (If-None-Match: *); use a service that heeds this", s.name)
}
