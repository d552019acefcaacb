// Package client starts runs, controls them and reads what they did, from any Go program.
// It needs only a Temporal client; a store too if it reads transcripts. The temporal
// command can send the same signals and updates.
//
// Begin with [New], [Client.Start] and [Run.Result], as the package example does.
// [Client.Requests] yields what the run and its sub-agents ask. [Run.Wait] also returns when the
// run is suspended.
//
// A method of [Run] never reaches a later run of the session. Pause, Interrupt, Resume, Stop
// and Cancel also reach the runs below it. [Daemon] is a daemon's session over all its runs. A method of [Client] reaches a session, a request, or
// all runs that wait for an event. A verb returns once the run has decided its effect; only
// Send and [Client.UpdateOrSignal] may return earlier, if no worker answers. [Client.Events]
// reads what a session did and follows what it does.
package client
