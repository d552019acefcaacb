// Package client starts runs, controls them and reads what they did, from any Go program.
// It needs only a Temporal client; a store too if it reads transcripts. The temporal
// command can send the same signals and updates.
//
// Begin with [New] and [Client.Start], then [Run.Wait], which returns when the run is
// suspended or has ended. The package example does that, and answers what the run asks.
//
// A method of [Run] reaches that run only, and never a later run of the session. A method
// of [Client] reaches a session, a request, or all runs that wait for an event. Every
// verb returns once the run has decided its effect. [Client.Events] reads what a session
// did and follows what it does.
package client
