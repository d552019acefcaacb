// Package store keeps the logs of sessions: as chains of sealed chunks, with a head that
// says where each chain ends. Workers write it, and clients read transcripts from it.
//
// Begin with [OpenDir], which keeps a store in a folder, for one machine. Module
// store/postgres keeps one in PostgreSQL, and store/bucket one in an object store.
// [Encrypt] puts encryption in front of any of them. To write your own, implement [Store]
// and test it with testsuite/conformance.
//
// A chunk's name holds a SHA-256 over its content and the name of the chunk before it. So
// one name stands for a whole conversation, damaged or missing parts are always noticed,
// and forks share chunks. [Log] reads and writes chains. [Log.Delete] deletes a session,
// [Log.Collect] deletes chunks that nobody needs, and [Log.Check] looks for faults.
package store
