// Cluster runs a command beside the parts of a cluster: a Temporal server in its own
// process with data in PostgreSQL, a shared store in PostgreSQL, and encryption keys. The
// server has the version and the settings of docker-compose.yml, so the file is tested
// where there are no containers.
//
//	go run ./cluster -- go test .
//
// The command finds everything in its environment. See package e2e for the variables of
// its tests.
package main
