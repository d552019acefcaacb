// Package loop is the agent loop as a pure state machine. It alone decides what a run does next.
//
// [Step] takes a [State] and an [Input], and returns the next State and a list of [Effect] values.
// The caller performs the effects in order. The machine has no clock, no context, no goroutine
// and no Temporal: its caller says in each [Moment] what time it is. The caller is package
// workflows. It turns effects into activities, timers and signals, and their results into inputs.
//
// # A message's path
//
//  1. After [Begin] the machine asks for the agent's Spec and the head of the session's log
//     ([Open], [Opened]).
//  2. beginRun writes the run's first events to the log, with the message.
//  3. A rule begins a turn: State.Turn counts it, and [CallModel] asks the model.
//  4. The model's reply ([ModelReplied]) becomes the assistant's message.
//  5. Each tool call of the reply becomes a [CallTool], and a call of a sub-agent a [StartChild].
//     One that needs an approval waits for it first. An unknown tool or malformed arguments get
//     their result at once.
//  6. When the last call has returned ([ToolReturned]), all results become one message, in the
//     order of the calls. The next turn begins with 3.
//  7. A reply without tool calls decides the outcome. When the log is stored and the sub-agents
//     have ended, the run ends ([Complete]).
//
// A message that is sent later waits in State.Messages: for the next turn, or with mode queue
// until the run would complete. While one waits, the run does not end.
//
// All of this is recorded as events: [step.record] appends each to the log. The events that are
// not stored yet are the tail. A long tail is stored during the work; the rest is stored when
// the run is suspended, continues as new, or ends ([Seal], [Sealed]).
//
// # Reading order
//
// Read docs/loop.md first. It has the words, the transitions, the rules with their conditions,
// and the races.
//
// Then read state.go, step.go, phase.go, inputs.go and rules.go; turn.go, reply.go,
// replycalls.go, startcalls.go and calls.go; messages.go, log.go and suspensions.go. What people
// say comes next: verbs.go, requests.go, decide.go and late.go; then holds and ends: holds.go,
// spread.go, stop.go, end.go and clock.go.
//
// Skip space.go, jsonlen.go, weight.go, briefing.go and consistency.go at first: they bound sizes
// and check imports. Read budgetview.go last.
//
// # Changes
//
// The machine runs inside replayed workflows. What it decides, and the sizes that affect its decisions,
// may only change with a new [Revision].
package loop
