// Command fermata runs durable agents, and shows and steers their runs.
//
// It is wiring only: an agents file becomes a worker (internal/agentsfile,
// crew.go), a server is found or started (connect.go), a run is started and
// followed (run.go, follow.go, watch.go) and told (internal/render). A person at a
// terminal is asked what the run asks (conversation.go, internal/console), and holds it
// with Ctrl-C (hold.go). Whatever it does to a run it does through the package
// client, so that nothing here is a door that others do not have.
//
// Every command has a file of its own, except for those that are one with another
// word: pause, interrupt, stop and cancel (say.go, and many.go for many runs),
// answer, approve and reject (answer.go, pick.go), and fork and retry (again.go). So the package is longer than
// others of this project and still read in pieces.
//
// [cli.execute] is the whole command except for the process: tests call it.
package main
