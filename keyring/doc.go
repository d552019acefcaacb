// Package keyring holds the keys that encrypt what leaves a process: payloads in
// Temporal's histories, chunks and heads in a store, live events on a broker.
//
// A [Ring] has keys of AES-256, each with an id. The first one writes and all of
// them read, so that a key is changed without stopping anything: add the new one
// behind the first in every process, then put it in front, and take the old one
// away when nothing needs it any more (docs/encryption.md).
//
// Every message has an AES key of its own, derived from the ring's by HKDF-SHA256
// with a random salt: a key may write for years without coming near the bound that
// AES-GCM has on the messages of one key. What is encrypted for one purpose can't be
// read for another, so that nobody who can write to a store swaps two sessions.
package keyring
