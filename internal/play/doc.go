// Package play runs the function of a flow outside of the workflow: package activities asks it
// for the function's next steps, and package flow is what the function's author sees.
//
// A [Play] is a function in progress. Its goroutines run one at a time until each waits for a
// step, so there are no races between branches, and what happens depends on the order of the
// results alone. A play that is lost is run again from the function's beginning on the results
// in the run's log: a step that has its result returns it at once.
package play
