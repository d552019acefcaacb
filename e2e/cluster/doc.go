// Cluster runs a command beside what a cluster has: a Temporal server of its own
// process that keeps everything in PostgreSQL, a store in PostgreSQL that all share,
// and keys of encryption. The server is of the version that docker-compose.yml names, and
// is told what the file tells it, so that the file is tried where there are no containers.
//
//	go run ./cluster -- go test .
//
// The command finds all of it in its environment. See the package e2e for the
// variables of its tests.
package main
