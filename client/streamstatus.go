package client

import "github.com/fermata-agents/fermata/agent"

// StreamStatus says what a reader of a session's events can expect, from the events that it has
// read. The zero value means that it has read none that says so.
type StreamStatus string

// The statuses of a stream.
const (
	StreamActive StreamStatus = "active" // a run works, or is about to
	StreamPaused StreamStatus = "paused" // a run is suspended, and continues when what it waits for comes
	StreamEnded  StreamStatus = "ended"  // the last run completed, was stopped or was cancelled; another may begin
	StreamFailed StreamStatus = "failed" // the last run failed; another may begin
)

// After returns the status after one more event, which must be of the session itself: of
// [EventsOptions.Tree], leave out the events of other sessions. A reader folds it over the events:
// it costs no query, and is as old as the last event that came.
func (s StreamStatus) After(e Event) StreamStatus {
	switch e.Type {
	case agent.EventRunStarted, agent.EventRunResumed:
		return StreamActive
	case agent.EventRunSuspended:
		return StreamPaused
	case agent.EventRunCompleted, agent.EventRunStopped, agent.EventRunCancelled:
		return StreamEnded
	case agent.EventRunFailed:
		return StreamFailed
	}
	return s
}
