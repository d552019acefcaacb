// Rawclient speaks to a run with what every language has: gRPC and JSON. It
// starts a run, waits for its question, answers it and prints the result, and it
// imports no package of fermata and no Temporal SDK. A client in another language
// does the same calls with the same payloads; docs/wire.md tells what they are.
package main
