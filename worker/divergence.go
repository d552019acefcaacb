package worker

import (
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"

	historypb "go.temporal.io/api/history/v1"
)

// divergence is where and how a replay differs from the history.
type divergence struct {
	event  *historypb.HistoryEvent
	reason string
}

// replaying replays the beginning of a history.
type replaying func(part []*historypb.HistoryEvent) error

// find returns the event at which a replay differs; whole is the error for the whole
// history. The SDK does not name the event. So find searches for the shortest beginning
// that differs: its last event is the one. It passes on no text of the SDK, which quotes
// arguments.
func (replay replaying) find(events []*historypb.HistoryEvent, whole error) divergence {
	// Before its first workflow task is completed, nothing of a history is compared.
	first := slices.IndexFunc(events, completes) + 1
	// A beginning that differs stays different when it grows, so a binary search finds
	// the shortest.
	n := first + sort.Search(len(events)-first, func(i int) bool { return diverges(replay(settled(events[:first+i]))) })
	if n < len(events) {
		events, whole = events[:n], replay(events[:n])
	}
	if b := replay.findExtraCommands(events, whole); b != nil {
		return *b
	}
	last := events[len(events)-1]
	return divergence{last, difference(last, whole)}
}

// findExtraCommands returns the workflow task in which this build makes a command too
// many; nil if there is none. The SDK reports that only at the next event that it
// compares, which is innocent.
func (replay replaying) findExtraCommands(events []*historypb.HistoryEvent, whole error) *divergence {
	var tasks []*historypb.HistoryEvent
	var ends [][]*historypb.HistoryEvent // the history up to where the next task begins
	for i, e := range events {
		if !completes(e) {
			continue
		}
		if len(tasks) > 0 {
			ends = append(ends, settled(events[:i]))
		}
		tasks = append(tasks, e)
	}
	if hasExtraCommands(whole) {
		ends = append(ends, events)
	}
	i := sort.Search(len(ends), func(i int) bool { return hasExtraCommands(replay(ends[i])) })
	if i == len(ends) {
		return nil
	}
	return &divergence{tasks[i], fmt.Sprintf("this build takes one step more in this workflow task: %s", step(replay(ends[i])))}
}

func (b divergence) ref() *EventRef {
	return &EventRef{ID: b.event.GetEventId(), Type: b.event.GetEventType().String(), Time: b.event.GetEventTime().AsTime()}
}

// hasExtraCommands reports whether a replay made more commands than the history has. That
// also happens when a history is cut within the commands of a task.
func hasExtraCommands(err error) bool {
	return err != nil && strings.Contains(err.Error(), "nondeterministic workflow: extra replay command for ")
}

// diverges reports whether a replay differs from the history.
func diverges(err error) bool { return err != nil && !hasExtraCommands(err) }

// The SDK's messages for replays that differ. It has no other form of them.
var (
	sdkCommand = regexp.MustCompile(`(?:replay command is|extra replay command for) (\w+)(?:: \(ActivityId:\w+, ActivityType:\(Name:([\w.]+)\))?`)
	sdkLocal   = regexp.MustCompile(`code executed local activity ([\w.]+), but history event found ([\w.]+),`)
)

// difference describes what differs at an event.
func difference(e *historypb.HistoryEvent, err error) string {
	text := err.Error()
	local := sdkLocal.FindStringSubmatch(text)
	switch {
	case local != nil:
		return fmt.Sprintf("the history has the local activity %s there, and this build calls %s", local[2], local[1])
	case strings.Contains(text, "nondeterministic workflow: history event is "):
		return fmt.Sprintf("the history has %s there, and this build makes %s", described(e), step(err))
	case strings.Contains(text, "nondeterministic workflow: missing replay command for "), strings.Contains(text, "During replay, a matching "):
		return fmt.Sprintf("the history has %s there, and this build makes nothing of the kind", described(e))
	case strings.Contains(text, "replay workflow doesn't return the same result as the last event"):
		return "the history ends there, and this build continues"
	case strings.Contains(text, "[TMPRL1100]"):
		return fmt.Sprintf("the history has %s there, which this build can't place", described(e))
	}
	return "this build's workflow fails there: " + text[:min(len(text), maxFault)]
}

// maxFault limits what is shown of an error in the workflow's own code, in bytes.
const maxFault = 300

// step returns the command that a replay made instead of another.
func step(err error) string {
	m := sdkCommand.FindStringSubmatch(err.Error())
	switch {
	case m == nil:
		return "another step"
	case m[2] != "":
		return m[1] + " " + m[2]
	}
	return m[1]
}

// described returns the type of an event, with the name of what it is about.
func described(e *historypb.HistoryEvent) string {
	name := ""
	switch {
	case e.GetActivityTaskScheduledEventAttributes() != nil:
		name = " " + e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName()
	case e.GetMarkerRecordedEventAttributes() != nil:
		name = " " + e.GetMarkerRecordedEventAttributes().GetMarkerName()
	case e.GetSignalExternalWorkflowExecutionInitiatedEventAttributes() != nil:
		name = " " + e.GetSignalExternalWorkflowExecutionInitiatedEventAttributes().GetSignalName()
	}
	return e.GetEventType().String() + name
}
