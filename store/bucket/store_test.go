package bucket_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/stretchr/testify/require"
	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/blob/memblob"
	"gocloud.dev/blob/s3blob"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/store/bucket"
	"github.com/fermata-agents/fermata/testsuite/conformance"
)

// storeIn opens a store in a bucket, until the test's end.
func storeIn(t *testing.T, b *blob.Bucket) *bucket.Store {
	t.Helper()
	s := bucket.New(b, nil)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// A bucket is a store as every other (OA-89).
func TestABucketInMemoryIsAStore(t *testing.T) {
	conformance.Store(t, func(t *testing.T) store.Store { return storeIn(t, memblob.OpenBucket(nil)) })
}

// inTurns lets one write at a time: of two writers of a fileblob both may create the
// same file, and who lists one that is just deleted gets an error.
type inTurns struct {
	store.Store
	mu sync.Mutex
}

func (s *inTurns) PutHead(ctx context.Context, h store.Head) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Store.PutHead(ctx, h)
}

func (s *inTurns) DeleteChunk(ctx context.Context, digest string, before time.Time) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Store.DeleteChunk(ctx, digest, before)
}

// Names of sessions are also names of files, which have at most 255 bytes between two
// slashes and are listed folder by folder.
func TestABucketOfFilesIsAStore(t *testing.T) {
	conformance.Store(t, func(t *testing.T) store.Store {
		b, err := fileblob.OpenBucket(t.TempDir(), &fileblob.Options{Metadata: fileblob.MetadataDontWrite})
		require.NoError(t, err)
		return &inTurns{Store: storeIn(t, b)}
	})
}

// server is an S3-compatible one, over HTTP.
func server(t *testing.T, wrap func(http.Handler) http.Handler) *s3.Client {
	t.Helper()
	at := httptest.NewServer(wrap(gofakes3.New(s3mem.New(), gofakes3.WithAutoBucket(true)).Server()))
	t.Cleanup(at.Close)
	return s3.New(s3.Options{
		Region: "eu-central-1", BaseEndpoint: aws.String(at.URL), UsePathStyle: true, RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("key", "secret", ""),
	})
}

// in opens a store in a bucket of a server.
func in(t *testing.T, client *s3.Client, name string) *bucket.Store {
	t.Helper()
	b, err := s3blob.OpenBucket(t.Context(), client, name, nil)
	require.NoError(t, err)
	return storeIn(t, b)
}

// behind opens a store on a server that a test has put something before.
func behind(t *testing.T, wrap func(http.Handler) http.Handler) *bucket.Store {
	t.Helper()
	return in(t, server(t, wrap), "fermata")
}

func TestABucketOfS3IsAStore(t *testing.T) {
	client := server(t, func(h http.Handler) http.Handler { return h })
	n := 0
	conformance.Store(t, func(t *testing.T) store.Store {
		n++
		name := fmt.Sprint("fermata-", n)
		_, err := client.HeadBucket(t.Context(), &s3.HeadBucketInput{Bucket: &name}) // which makes it: of several requests at once all but one would fail
		require.NoError(t, err)
		return in(t, client, name)
	})
}

// renamed gives each answer of a server the id of a request that is one in three thousand.
type renamed struct{ http.ResponseWriter }

func (w renamed) WriteHeader(status int) {
	w.Header().Set("X-Amz-Request-Id", "9F301C")
	w.ResponseWriter.WriteHeader(status)
}

// What an error of S3 means is what the service says, whatever the request's id is.
func TestTheIDOfARequestSaysNothing(t *testing.T) {
	refuse := false
	s := behind(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if refuse {
				renamed{w}.WriteHeader(http.StatusForbidden)
				return
			}
			next.ServeHTTP(renamed{w}, r)
		})
	})
	put(t, s, "s", 1)
	_, err := s.Chunk(t.Context(), "none")
	require.ErrorIs(t, err, agent.CodeChunkMissing)
	require.ErrorIs(t, s.PutHead(t.Context(), store.Head{V: 1, Version: 1, Session: "s"}), agent.CodeStale)
	refuse = true
	_, err = s.Head(t.Context(), "s")
	require.ErrorIs(t, err, agent.CodeStoreUnavailable)
	_, err = s.Chunk(t.Context(), "none")
	require.ErrorIs(t, err, agent.CodeStoreUnavailable)
}
