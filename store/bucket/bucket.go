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

// Store is a store in a bucket. It is safe for concurrent use, also by many processes on
// one bucket. Make one with [Open] or [New].
type Store struct {
	b    *blob.Bucket
	name string
	now  func() time.Time
	// conditions is set once the service has obeyed the condition of a write.
	conditions atomic.Bool
}

// Options are optional; nil means all defaults.
type Options struct {
	// Name is the store's place in errors; empty means "a bucket".
	Name string
}

// New returns a store in a bucket. Closing the store closes the bucket. Several stores
// can share a bucket with [blob.PrefixedBucket].
func New(b *blob.Bucket, o *Options) *Store {
	if o == nil {
		o = &Options{}
	}
	return &Store{b: b, name: cmp.Or(o.Name, "a bucket"), now: time.Now}
}

// Open opens a store by its bucket's URL, such as s3://NAME?region=REGION&prefix=FOLDER/,
// in gocloud.dev's form for each service. The program has to import the service's
// package, such as gocloud.dev/blob/s3blob. Open does not call the service yet. The
// caller closes the store. If the URL is invalid or its service is not imported, the
// error is [agent.CodeInvalidInput].
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

// Close closes the bucket once the calls in progress have ended.
func (s *Store) Close() error { return s.b.Close() }

// String returns where the store is.
func (s *Store) String() string { return s.name }

// unavailable returns an error that a later attempt may cure.
func (s *Store) unavailable(err error, format string, args ...any) error {
	return agent.Errorf(agent.CodeStoreUnavailable, "%s %s: %w", fmt.Sprintf(format, args...), s.name, err)
}

// tries is how often a call looks again after others changed what it had found.
const tries = 5

// errBusy is the error after that many tries.
var errBusy = errors.New("others change it as fast as it is read; try again")

// missing reports whether an error means that an object does not exist.
func missing(err error) bool {
	if code := codeOf(err); code != "" {
		return code == "NoSuchKey" || code == "NotFound"
	}
	return gcerrors.Code(err) == gcerrors.NotFound
}

// taken reports whether an error means that the object to be created exists already.
func taken(err error) bool {
	if code := codeOf(err); code != "" {
		return code == "PreconditionFailed"
	}
	code := gcerrors.Code(err)
	return code == gcerrors.FailedPrecondition || code == gcerrors.AlreadyExists
}

// codeOf returns S3's code of an error; empty for other services. The Go CDK reports
// NotFound for each S3 error whose text contains 301, even in a request id, and for a
// missing bucket.
func codeOf(err error) string {
	var api interface{ ErrorCode() string }
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

// list yields the objects whose keys begin with a prefix, in order of keys.
func (s *Store) list(ctx context.Context, prefix string) iter.Seq2[*blob.ListObject, error] {
	return func(yield func(*blob.ListObject, error) bool) {
		all := s.b.List(&blob.ListOptions{Prefix: prefix})
		for {
			o, err := all.Next(ctx)
			if errors.Is(err, io.EOF) {
				err = ctx.Err() // some buckets do not check it
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

// write writes an object, completely or not at all.
func (s *Store) write(ctx context.Context, key string, data []byte) error {
	return s.b.WriteAll(ctx, key, data, &blob.WriterOptions{ContentType: "application/octet-stream"})
}

// create writes an object if there is none. If there is one, taken reports true for the
// error.
func (s *Store) create(ctx context.Context, key string, data []byte) error {
	return s.b.WriteAll(ctx, key, data, &blob.WriterOptions{ContentType: "application/octet-stream", IfNotExist: true})
}

// remove removes an object. A missing object is no error.
func (s *Store) remove(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	// An earlier attempt may have removed it although its answer was lost.
	if err := s.b.Delete(ctx, key); !missing(err) {
		return err
	}
	return nil
}

// PutIfAbsent implements [store.Store]. The value is an object, named after the key.
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
		if err := s.checkCondition(ctx); err != nil {
			return "", err
		}
		// If another caller was first, the next try reads that caller's value.
		if err := s.create(ctx, key, []byte(value+"\n")); err != nil && !taken(err) {
			return "", s.unavailable(err, "writing the %s of the store to", key)
		}
	}
	return "", s.unavailable(errBusy, "reading the %s of the store from", key)
}

// condition is the object that is created to see whether the service obeys conditions.
const condition = "condition"

// checkCondition checks, once for each process, that the service obeys the condition of create. A
// server that only resembles S3 may not, and then two runs could own one session. In that
// case the error is [agent.CodeNotSetUp].
func (s *Store) checkCondition(ctx context.Context) error {
	if s.conditions.Load() {
		return nil
	}
	for range 2 { // the first time in the store's life, this creates it
		err := s.create(ctx, condition, []byte(condition))
		if taken(err) {
			s.conditions.Store(true)
			return nil
		}
		if err != nil {
			return s.unavailable(err, "writing to")
		}
	}
	return agent.Errorf(agent.CodeNotSetUp, "%s can't be a store: its server overwrites an existing object in spite of If-None-Match: *; use a service that supports this header", s.name)
}
