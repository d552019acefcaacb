// Package audit keeps an append-only record of who did what: verbs, approvals, refusals,
// uses of keys, and changes of policy. Each entry is a line of JSON with the hash of the
// line before it and an Ed25519 signature. [Verify] proves that a record is complete,
// with the public key alone.
//
// An entry is on disk before what it records takes effect. So no entry is missing when a
// process is killed, but an entry may be there twice, or record something that did not
// happen. Whoever has the private key can write another record. A [Head] that was kept
// elsewhere shows that, and a cut at the end.
package audit
