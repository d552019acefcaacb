// Package loop is the agent loop as a pure state machine: every decision about
// what happens next from what already happened is made here, and nowhere else.
//
// [Step] takes a [State] and an [Input] and returns the next State and the
// [Effect]s that the caller has to perform, in order. It knows no clock (inputs
// say when they came), no context, no goroutine and no Temporal. The caller
// (package workflows) turns effects into activities and timers and what comes
// of them into inputs again.
//
// A message's path: [Begin] and [Opened] write the session's log; a turn begins
// ([State.Turn] grows) with the effect [CallModel]; its [ModelReplied] becomes the
// assistant's message; every tool call in it either gets a result at once (an
// unknown tool, arguments that are no JSON) or the effect [CallTool]; when the
// last has [ToolReturned], the results become one message, in the calls' order, and
// the next turn begins, until a reply without calls ends the run.
//
// [step.record] writes an event to the log. The events that are not stored yet, the tail,
// are sealed while the run goes on ([Seal], [Sealed]).
//
// docs/loop.md has the words, the transitions, the rules with their conditions, and what
// happens when two things meet. Read it first.
//
// The machine runs inside replayed workflows: what it decides, and the sizes
// that it decides by, may only change with a new [Revision].
package loop
