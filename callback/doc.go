// Package callback wakes runs by HTTP: another system's webhook posts to the address of a session,
// and the session's run gets the body as an event, or as the result of a client tool. [New] makes
// the handler. [Bearer] and [Signed] authenticate senders, [Address] makes addresses.
//
// A callback has the verb emit or the verb answers, so the run decides as always: rules, policy and
// audit see it. It cannot answer questions and limits, approve, resume, hold or end anything
// (docs/callbacks.md, OA-116).
package callback
