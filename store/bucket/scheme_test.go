package bucket_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gocloud.dev/blob"
	"gocloud.dev/blob/memblob"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/store/bucket"
)

// pair is a store and the bucket that it is in.
func pair(t *testing.T) (*bucket.Store, *blob.Bucket) {
	b := memblob.OpenBucket(nil)
	return storeIn(t, b), b
}

// keys lists all that is in a bucket under a folder.
func keys(t *testing.T, b *blob.Bucket, folder string) (all []string) {
	t.Helper()
	list := b.List(&blob.ListOptions{Prefix: folder})
	for {
		o, err := list.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		all = append(all, o.Key)
	}
}

func content(t *testing.T, b *blob.Bucket) string {
	t.Helper()
	var all strings.Builder
	for _, key := range keys(t, b, "") {
		data, err := b.ReadAll(t.Context(), key)
		require.NoError(t, err)
		all.WriteString(key + "=" + string(data) + "\n")
	}
	return all.String()
}

func put(t *testing.T, s *bucket.Store, session string, versions ...int64) {
	t.Helper()
	for _, v := range versions {
		require.NoError(t, s.PutHead(t.Context(), store.Head{V: 1, Version: v, Session: session, Run: fmt.Sprint("run-", v)}))
	}
}

func listed(t *testing.T, s *bucket.Store) (sessions []string) {
	t.Helper()
	for h, err := range s.Heads(t.Context(), "") {
		require.NoError(t, err)
		sessions = append(sessions, h.Session)
	}
	return sessions
}

// later is when what is over now may be removed.
const later = time.Hour

func TestVersionsThatAreOverAreRemovedAWhileAfter(t *testing.T) {
	s, b := pair(t)
	put(t, s, "s", 1, 2, 3)
	require.Len(t, keys(t, b, "heads/"), 3, "a slow writer must find its place taken")
	s.Later(later)
	put(t, s, "s", 4)
	require.Len(t, keys(t, b, "heads/"), 2, "the last that was there is over only now")
	require.Equal(t, []string{"s"}, listed(t, s))
	h, err := s.Head(t.Context(), "s")
	require.NoError(t, err)
	require.Equal(t, "run-4", h.Run)
	s.Later(2 * later)
	require.Equal(t, []string{"s"}, listed(t, s))
	require.Len(t, keys(t, b, "heads/"), 1, "a session that nobody writes any more is tidied by who lists")
}

// Nothing of a deleted session is left but where it stands, and it may begin anew at
// any time.
func TestADeletedSessionIsGone(t *testing.T) {
	s, b := pair(t)
	put(t, s, "ana", 1, 2)
	require.NoError(t, s.DeleteHead(t.Context(), "ana", 2))
	require.NotContains(t, content(t, b), "run-", "what was said is gone at once")
	require.NoError(t, s.DeleteHead(t.Context(), "ana", 2), "again is no error")

	require.ErrorIs(t, s.PutHead(t.Context(), store.Head{V: 1, Version: 3, Session: "ana"}), agent.CodeStale, "a run of before")
	put(t, s, "ana", 4)
	require.NoError(t, s.DeleteHead(t.Context(), "ana", 4))
	s.Later(later)
	require.Empty(t, listed(t, s))
	require.Empty(t, keys(t, b, "heads/"))
	require.Len(t, keys(t, b, "gone/"), 1)
	left, err := s.Head(t.Context(), "ana")
	require.ErrorIs(t, err, agent.CodeNotFound)
	require.Equal(t, store.Head{Session: "ana", Version: 5}, left)

	put(t, s, "ana", 6, 7)
	key := keys(t, b, "heads/")[0]
	require.Equal(t, "fffffffffffffff8", key[len(key)-16:], "version 7: no key is used twice")
	require.Equal(t, []string{"ana"}, listed(t, s))
}

// A crash of the deletion after it created the tombstone leaves what a list removes.
func TestADeletionThatCrashedIsEndedByWhoLists(t *testing.T) {
	s, b := pair(t)
	put(t, s, "ana", 1)
	key := keys(t, b, "heads/")[0]
	head, err := b.ReadAll(t.Context(), key)
	require.NoError(t, err)
	require.NoError(t, s.DeleteHead(t.Context(), "ana", 1))
	require.NoError(t, b.WriteAll(t.Context(), key, head, nil))
	_, err = s.Head(t.Context(), "ana")
	require.ErrorIs(t, err, agent.CodeNotFound)
	s.Later(later)
	require.Empty(t, listed(t, s))
	require.NotContains(t, content(t, b), "run-1")
}

func TestADamagedHeadIsToldAndItsVersionCounts(t *testing.T) {
	s, b := pair(t)
	put(t, s, "a", 1)
	put(t, s, "b", 1)
	put(t, s, "c", 1)
	all := keys(t, b, "heads/")
	require.NoError(t, b.WriteAll(t.Context(), all[0], nil, nil), "cut off")
	require.NoError(t, b.Copy(t.Context(), all[1], all[2], nil), "another's")
	_, err := s.Head(t.Context(), "a")
	require.ErrorIs(t, err, agent.CodeChunkDamaged)
	damaged, whole := []string{}, 0
	for h, err := range s.Heads(t.Context(), "") {
		if err == nil {
			whole++
			continue
		}
		require.ErrorIs(t, err, agent.CodeChunkDamaged)
		damaged = append(damaged, h.Session)
	}
	require.Equal(t, []string{"a", "b"}, damaged)
	require.Equal(t, 1, whole)
	require.ErrorIs(t, s.PutHead(t.Context(), store.Head{V: 1, Version: 1, Session: "a"}), agent.CodeStale)
	require.NoError(t, s.DeleteHead(t.Context(), "a", 1))
}

func TestObjectsOfOthersAreLeftAlone(t *testing.T) {
	s, b := pair(t)
	digest := strings.Repeat("ab", 32)
	put(t, s, "a", 1)
	require.NoError(t, s.PutChunk(t.Context(), digest, []byte("x")))
	for _, key := range []string{"chunks/README", "chunks/ab/" + digest + "!copy", "heads/a", "heads/61!copy", "other"} {
		require.NoError(t, b.WriteAll(t.Context(), key, []byte("of others"), nil))
	}
	s.Later(later)
	require.Equal(t, []string{"a"}, listed(t, s))
	n := 0
	for c, err := range s.Chunks(t.Context(), "") {
		require.NoError(t, err)
		require.Equal(t, digest, c.Name)
		n++
	}
	require.Equal(t, 1, n)
	gone, err := s.DeleteChunk(t.Context(), digest, time.Now().Add(later))
	require.NoError(t, err)
	require.True(t, gone)
	require.Len(t, keys(t, b, "chunks/"), 2)
}

// Some servers of S3's protocol know nothing of If-None-Match, and overwrite.
func TestAServerThatOverwritesIsRefused(t *testing.T) {
	s := behind(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Header.Del("If-None-Match")
			next.ServeHTTP(w, r)
		})
	})
	err := s.PutHead(t.Context(), store.Head{V: 1, Version: 1, Session: "s"})
	require.ErrorIs(t, err, agent.CodeNotSetUp)
	require.Contains(t, err.Error(), "If-None-Match")
}

// A writer that has seen version 1, and whose write comes when others have written
// versions 2 and 3 and all that is over was removed that may be, owns nothing.
func TestASlowWriterFindsItsPlaceTaken(t *testing.T) {
	come, proceed := make(chan struct{}), make(chan struct{})
	slow := false
	s := behind(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if slow && r.Method == http.MethodPut {
				slow = false
				close(come)
				<-proceed
			}
			next.ServeHTTP(w, r)
		})
	})
	put(t, s, "s", 1)
	slow = true
	result := make(chan error)
	go func() {
		result <- s.PutHead(t.Context(), store.Head{V: 1, Version: 2, Session: "s", Run: "slow"})
	}()
	<-come
	put(t, s, "s", 2, 3)
	s.Later(25 * time.Minute)
	put(t, s, "s", 4)
	require.Equal(t, []string{"s"}, listed(t, s))
	close(proceed)
	require.ErrorIs(t, <-result, agent.CodeStale)
}

// A writer that was stopped for an hour between its look and its write finds its place
// empty, since all that was over is removed: what it writes is removed too.
func TestAWriterThatWasStoppedForLongOwnsNothing(t *testing.T) {
	for name, deleted := range map[string]bool{"where others have written": false, "where the session was deleted": true} {
		t.Run(name, func(t *testing.T) {
			come, proceed := make(chan struct{}), make(chan struct{})
			slow := false
			client := server(t, func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if slow && r.Method == http.MethodPut {
						slow = false
						close(come)
						<-proceed
					}
					next.ServeHTTP(w, r)
				})
			})
			stopped, s := in(t, client, "fermata"), in(t, client, "fermata")
			put(t, stopped, "s", 1)
			put(t, s, "other", 1) // each has seen that the server obeys conditions
			slow = true
			result := make(chan error)
			go func() {
				result <- stopped.PutHead(t.Context(), store.Head{V: 1, Version: 2, Session: "s", Run: "stopped"})
			}()
			<-come
			put(t, s, "s", 2, 3)
			if deleted {
				require.NoError(t, s.DeleteHead(t.Context(), "s", 3))
			}
			s.Later(later)
			stopped.Later(later)
			listed(t, s)
			close(proceed)
			require.ErrorIs(t, <-result, agent.CodeStale)
			h, err := s.Head(t.Context(), "s")
			if deleted {
				require.ErrorIs(t, err, agent.CodeNotFound)
				return
			}
			require.NoError(t, err)
			require.Equal(t, "run-3", h.Run)
		})
	}
}

// What a service refuses or does not answer may be mended, and is never taken for
// something that is not there.
func TestTroubleIsNoAnswer(t *testing.T) {
	trouble := http.StatusOK
	s := behind(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if trouble != http.StatusOK {
				w.WriteHeader(trouble)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	put(t, s, "s", 1)
	require.NoError(t, s.PutChunk(t.Context(), "d", []byte("x")))
	for _, trouble = range []int{http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusForbidden, http.StatusNotFound} {
		ctx := t.Context()
		for name, call := range map[string]func() error{
			"PutChunk":    func() error { return s.PutChunk(ctx, "d", []byte("x")) },
			"Chunk":       func() error { _, err := s.Chunk(ctx, "d"); return err },
			"DeleteChunk": func() error { _, err := s.DeleteChunk(ctx, "d", time.Now()); return err },
			"Head":        func() error { _, err := s.Head(ctx, "s"); return err },
			"PutHead":     func() error { return s.PutHead(ctx, store.Head{V: 1, Version: 2, Session: "s"}) },
			"DeleteHead":  func() error { return s.DeleteHead(ctx, "s", 1) },
			"Heads": func() (err error) {
				for _, err = range s.Heads(ctx, "") {
				}
				return err
			},
		} {
			require.ErrorIs(t, call(), agent.CodeStoreUnavailable, "%s where the service answers %d", name, trouble)
		}
	}
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	for place, why := range map[string]string{
		"mem://":             "",
		"ftp://bucket":       "this program has [file mem s3]",
		"s3://b?what=ever":   "unknown query parameter",
		"s3://b\x7f/":        "can't be read",
		"file:///no/such/at": "no such file",
	} {
		s, err := bucket.Open(context.Background(), place)
		if why == "" {
			require.NoError(t, err)
			require.NoError(t, s.Close())
			continue
		}
		require.ErrorIs(t, err, agent.CodeInvalidInput, place)
		require.Contains(t, err.Error(), why)
	}
}
