// Package handoff makes the typed end of a run that somebody else will carry on:
// how what the runtime knows for sure and what the model says of it become one
// [agent.Handoff] ([Complete]), how the ends of children fold into it ([FromOutcome],
// [Missing]), how it stays small enough for Temporal ([Truncate]), and how people
// and the model of the next run read it ([Markdown], [Briefing]).
//
// Everything here is pure: the same arguments give the same result, no argument
// is changed, and workflows may call all of it.
package handoff
