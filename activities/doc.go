// Package activities holds every step of a run that touches the world: asking a
// model, calling a tool, reading what an agent is, storing the transcript. Each
// file declares one step on top and does it below. Steps may fail and be tried
// again; what they may not do is decide what happens next.
//
// No step is given a conversation: it is told up to which event of the log it
// may look, and finds the log's open part in this process ([LogCache]) or asks the
// run for it.
package activities
