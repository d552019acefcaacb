// Package bucket keeps transcripts in an object store: a [store.Store] over any
// bucket of gocloud.dev/blob, such as one of S3, Google Cloud Storage or Azure.
//
//	import _ "gocloud.dev/blob/s3blob"
//
//	transcripts, err := bucket.Open(ctx, "s3://acme-fermata?region=eu-central-1")
//	if err != nil {
//		return err
//	}
//	defer transcripts.Close()
//
// It rests on three things that these services give, and on no others: whoever lists
// or reads sees what was written before, lists are in order of keys, and of many who
// create an object under the same key, each on the condition that there is none, one
// succeeds. A server that does not heed the condition is refused before the first
// head is written. Buckets of fileblob are for trials: of two writers that create the
// same file both may succeed. [store.OpenDir] keeps transcripts in a folder.
//
// # Chunks
//
// Each PutChunk writes an object of its own, chunks/ab/DIGEST!TIME, and a chunk is
// there as long as one of its objects is. No name is used twice, so nothing that a
// DeleteChunk has found old can become young again before it is removed: what is put
// at the same moment is another object, and stays. This takes no bound of time, and
// no clock except for the age: a chunk was last put at the time in the name, of the
// writer's clock, or when the service says that it was written, if that is later; for
// services tell it to the second, and round it down. A writer's clock that is behind
// the service's is no harm, and one that is ahead makes a chunk look younger. So
// Collect's older has to cover what it covers in every store: the time between the
// putting of a chunk and of the head that names it, and the difference of clocks.
// Chunks that are put again, as by a step that was tried again, are there twice until
// they are collected; they are small, and it is rare.
//
// # Heads
//
// A head is replaced by creating its next version, heads/SESSION!PLACE, on the
// condition that there is none: of all that have seen version N one creates N+1.
// PLACE is a number that falls with each version, so that the newest is listed first.
// SESSION is in hexadecimal digits, which keeps the order of names, cut into pieces
// that a file system takes.
//
// DeleteHead puts a grave where the next version would be: who wants to write that
// version and who wants to delete the one before compete for the same key. What was
// below is then overwritten with nothing. A session that begins anew goes on behind the
// grave, and so no key is ever used for two heads.
//
// Versions that are over can't be removed at once: a slow writer that has seen
// version N could then create N+1 in a place that is empty again, and believe that it
// owns the session. So the call of PutHead is bounded to a minute from its look to its
// write, and what is over is removed half an hour after it was replaced, by the
// PutHead or the Heads that finds it. What is left to chance is a service that
// executes a request 29 minutes after its sender has given it up, or clocks that are
// that far apart; and that writer would own nothing but a name: what readers and other
// writers see is the newest place. A writer that finds that it took longer than its
// minute, as in a process that was stopped, takes back what it wrote.
//
// The grave of a session is removed like this too, by Heads. Then gone/HASH, a few
// bytes under the SHA-256 of its name, say at which version and fence it stands. They
// may be deleted when no process that was stopped can wake up any more, as after a month
// by a rule of the bucket.
package bucket
