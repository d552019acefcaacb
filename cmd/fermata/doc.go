// Command fermata runs durable agents, and shows and steers their runs.
//
// Each command has a file that is named as it: a constructor such as [cli.runCommand], which
// root.go puts into a group of the help, and the command's own work. What commands share is in
// a few files beside them:
//
//   - root.go: one invocation ([cli]), from its arguments to its exit status
//   - flags.go: flags and arguments of several commands
//   - exit.go: errors and exit statuses
//   - verbs.go, verbs_bulk.go: pause, interrupt, stop and cancel, of one run or of many
//   - decide.go: answer, approve and reject
//   - watch.go: a run that run, attach, fork and retry show
//   - conversation.go, interruptkey.go: the person at the terminal, whom a run asks, and Ctrl-C
//   - suspended.go: what to type for a suspended run to continue
//
// The rest is in internal packages, none of which has commands: connect finds the server
// and the store, localworker starts workers, follow hears a run, doctor checks everything, render
// and untrusted write what people and programs read, console and terminal are the person's side,
// env and secret read variables and keys.
//
// Whatever a command does to a run, it does through the package client, as other programs do.
// [cli.execute] is the whole command except for the process: tests call it.
package main
