// Package handoff makes handoffs: what a stopped run leaves to whoever continues its
// work. [Complete] combines what the runtime knows with what the model says.
// [FromOutcome] and [Missing] make the handoffs of children. [Truncate] keeps a handoff
// small enough for Temporal. [Markdown] and [Briefing] write it for people and for the
// next run's model.
//
// All functions are pure: the same arguments give the same result, and no argument is
// changed. Workflows may call all of them.
package handoff
