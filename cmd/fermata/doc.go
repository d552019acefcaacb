// Command fermata runs durable agents, and shows and steers their runs.
//
// It is wiring only: an agents file becomes a worker (internal/agentsfile,
// crew.go), a server is found or started (connect.go), a run is started and
// followed (run.go, follow.go) and told (internal/story). Whatever it does to a
// run it does through the package client, so that nothing here is a door that
// others do not have.
//
// Every command has a file of its own, so that the package is longer than others
// of this project and still read in pieces.
//
// [execute] is the whole command but for the process: tests call it.
package main
