// Package keyring holds the keys that encrypt what leaves a process: payloads in
// Temporal's histories, chunks and heads in a store, and live events on a broker.
//
// Begin with [Parse], which reads a [Ring] from an environment variable, and [New], which
// makes a key. Give the ring to client.Prepare and store.Encrypt. A ring has keys of
// AES-256, each with an id. The first key encrypts, and all of them decrypt. So keys can
// be replaced without stopping anything: add the new key as the second one in every
// process, then make it the first, and remove the old one when nothing needs it any more
// (docs/encryption.md).
//
// Each message has its own AES key, which HKDF-SHA256 derives from the ring's key and a
// random salt. So one key can write for years without reaching the limit that AES-GCM has
// for the messages of one key. What is encrypted for one purpose can't be decrypted for
// another. So a writer to the store cannot exchange two sessions.
package keyring
