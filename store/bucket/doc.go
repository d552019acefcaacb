// Package bucket keeps transcripts in an object store. It is a [store.Store] over any
// bucket of gocloud.dev/blob, such as S3, Google Cloud Storage or Azure. Begin with
// [Open]:
//
//	import _ "gocloud.dev/blob/s3blob"
//
//	transcripts, err := bucket.Open(ctx, "s3://acme-fermata?region=eu-central-1")
//	if err != nil {
//		return err
//	}
//	defer transcripts.Close()
//
// It needs three guarantees of the service, which the services above give. Reads and
// lists see all earlier writes. Lists are in order of keys. If many writers create the
// same key, each on the condition that it does not exist, one of them succeeds. A server
// that ignores the condition is refused before the first head is written. Use buckets of
// fileblob only for trials: if two writers create the same file, both may succeed.
// [store.OpenDir] keeps transcripts in a folder.
//
// # Chunks
//
// Each PutChunk writes its own object, chunks/ab/DIGEST!TIME. A chunk exists as long as
// one of its objects does. No key is used twice. So an object that DeleteChunk has found
// old can't become young before it is removed: a put at the same moment writes another
// object, which stays.
//
// A chunk has two times: the one in its key, by the writer's clock, and the service's time
// of the write, which is rounded to seconds. The later one counts. A writer's slow clock does
// no harm, and a fast one makes a chunk look younger. So Collect's older has to cover the
// same as in every store: the time between the put of a chunk and of the head that names
// it, and the difference of clocks. A chunk that is put again, as by a retried activity,
// is stored twice until it is collected. That is rare, and chunks are small.
//
// # Heads
//
// A head is replaced by creating its next version, heads/SESSION!PLACE, on the condition
// that it does not exist. Of all writers that have seen version N, one creates N+1. PLACE
// is a number that falls with each version, so the newest version is listed first.
// SESSION is in hexadecimal digits, which keep the order of names, cut into pieces that a
// file system accepts.
//
// DeleteHead creates a tombstone under the key of the next version. So a writer of that
// version and a deletion of the previous one compete for the same key. Then the older
// versions are overwritten with a short text. A new session of that name continues after
// the tombstone, so no key is ever used for two heads.
//
// Old versions must not be removed at once. A slow writer that has seen version N could
// then create N+1 again in the empty place, and believe that it owns the session. So
// PutHead takes at most one minute from its check to its write. Old versions are removed
// half an hour after they were replaced, by the PutHead or the Heads that finds them. A
// writer that took longer than its minute, as in a process that was paused, removes what
// it wrote.
//
// One risk remains: a service that executes a request 29 minutes after the sender has
// cancelled it, or clocks that differ by as much. Even that writer would own only an old
// version, because readers and other writers use the newest place.
//
// Heads removes tombstones in the same way. Then gone/HASH remains, a few bytes under the
// SHA-256 of the session's name, with the version and the fence of the deletion. These
// objects may be deleted once no paused process can wake up any more, for example by a
// rule of the bucket after a month.
package bucket
