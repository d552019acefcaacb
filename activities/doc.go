// Package activities has the activities of a run: they ask models, call tools, and read
// and write the store. Each file declares one activity at its top and implements it
// below. An activity may fail and be repeated. It never decides what happens next: the
// machine does (package internal/loop).
//
// No activity's input has a conversation. It has the log position up to which the
// activity may read. The activity finds the events that are not stored yet in this
// process ([LogCache]), or queries the run.
package activities
