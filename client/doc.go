// Package client is how a Go program outside speaks to runs: it starts them,
// holds, answers, stops and waits for them, and reads what was said. It needs
// nothing but a Temporal client, and says nothing that the plain temporal command
// could not.
//
// What is said to one run goes through its [Run] and never reaches another run of
// the session; what is said in a session, to whoever waits for an event, or to a
// request goes through the [Client]. Whatever is said is answered when its effect
// is decided; [Run.Wait] waits until the run rests or ends.
// What has happened in a session, and happens, is read with [Client.Events].
package client
