// Package audit keeps an append-only record of who did what: every verb, approval, refusal,
// use of a key and change of policy. Each entry is a line of JSON that names the hash of
// the line before it, and is signed with Ed25519. [Verify] proves a record whole, with the
// public key alone.
//
// An entry is on disk before what it tells of takes effect. So none is missing where a
// process is killed; the entry may tell of something that did not come about, or be there
// twice. Whoever has the private key can write another record: a head that was kept
// elsewhere ([Head]) shows that, and a cut at the end.
package audit
