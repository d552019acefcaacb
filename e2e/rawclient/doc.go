// Rawclient talks to a run with what every language has: gRPC and JSON. It starts a run,
// waits for its question, answers it and prints the result. It imports no package of
// fermata and no Temporal SDK. A client in another language makes the same calls with the
// same payloads; docs/wire.md describes them.
package main
