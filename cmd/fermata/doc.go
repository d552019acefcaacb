// Command fermata runs durable agents, and shows and steers their runs.
//
// Each command has a file with its name: a constructor such as [cli.runCommand], which
// root.go adds to a group of the help, and the command's work. These files are shared:
//
//   - root.go: one invocation ([cli]), from its arguments to its exit status
//   - flags.go: flags and arguments of several commands
//   - exit.go: errors and exit statuses
//   - verbs.go, verbs_bulk.go: pause, interrupt, stop and cancel, of one run or of many
//   - decide.go: answer, approve and reject
//   - watch.go: showing a run, for run, attach, fork and retry
//   - conversation.go, interruptkey.go: the person at the terminal, their answers, and Ctrl-C
//   - suspended.go: what to type for a suspended run to continue
//
// The rest is in internal packages, which have no commands. connect finds the server and
// the store. localworker starts workers. follow follows a run. doctor checks everything.
// render and untrusted write what people and programs read. console and terminal are the
// person's side. env and secret read variables and keys.
//
// Whatever a command does to a run, it does through package client, as other programs do.
// [cli.execute] is a whole command without the process; tests call it.
package main
