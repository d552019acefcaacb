package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
)

// longWait is how long a wait must be to be reported.
const longWait = 200 * time.Millisecond

// wait is a time in which a workflow of a tree waited, as its history shows.
type wait struct {
	session, what string
	from, to      time.Time
}

func (w wait) long() time.Duration { return w.to.Sub(w.from) }

// writeWaits appends every long wait of a tree to the file of -waits, after a summary of
// each kind.
func (s *benchEnv) writeWaits(ctx context.Context, cell, side string, rep int, root string) error {
	if s.waits == "" {
		return nil
	}
	all, began, err := s.waitsOf(ctx, root)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(s.waits, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	return printWaits(f, fmt.Sprintf("%s, %s %d", cell, side, rep+1), began, all)
}

func printWaits(f io.Writer, title string, began time.Time, all []wait) error {
	kinds := map[string][]wait{}
	for _, w := range all {
		kinds[w.what] = append(kinds[w.what], w)
	}
	fmt.Fprintf(f, "%s: %d waits above %s\n", title, len(all), longWait)
	for _, what := range slices.Sorted(maps.Keys(kinds)) {
		most := slices.MaxFunc(kinds[what], func(a, b wait) int { return cmp.Compare(a.long(), b.long()) })
		fmt.Fprintf(f, "  %5d × %s, at most %d ms\n", len(kinds[what]), what, most.long().Milliseconds())
	}
	slices.SortFunc(all, func(a, b wait) int { return a.from.Compare(b.from) })
	for _, w := range all {
		if _, err := fmt.Fprintf(f, "%8d ms %8d ms  %s  %s\n", w.from.Sub(began).Milliseconds(), w.long().Milliseconds(), w.what, w.session); err != nil {
			return err
		}
	}
	return nil
}

// waitsOf reads the histories of a whole tree, and returns when it started.
func (s *benchEnv) waitsOf(ctx context.Context, root string) (all []wait, began time.Time, err error) {
	var token []byte
	for first := true; first || len(token) > 0; first = false {
		page, err := s.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: fmt.Sprintf("RootWorkflowId = '%s'", root), NextPageToken: token})
		if err != nil {
			return nil, began, err
		}
		for _, one := range page.GetExecutions() {
			id := one.GetExecution().GetWorkflowId()
			history := s.temporal.GetWorkflowHistory(ctx, id, one.GetExecution().GetRunId(), false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
			var events []*historypb.HistoryEvent
			for history.HasNext() {
				e, err := history.Next()
				if err != nil {
					return nil, began, err
				}
				events = append(events, e)
			}
			if id == root {
				began = events[0].GetEventTime().AsTime()
			}
			all = append(all, waitsIn(id, events)...)
		}
		token = page.GetNextPageToken()
	}
	return all, began, nil
}

// waitsIn finds the long waits of one history: from an event to the event that answers
// it.
func waitsIn(session string, events []*historypb.HistoryEvent) (all []wait) {
	at := func(id int64) time.Time { return events[id-1].GetEventTime().AsTime() }
	for _, e := range events {
		what, since := "", int64(0)
		switch e.GetEventType() {
		case enums.EVENT_TYPE_WORKFLOW_TASK_STARTED:
			what, since = "a workflow task waits for a worker", e.GetWorkflowTaskStartedEventAttributes().GetScheduledEventId()
		case enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
			what, since = "a worker is at a workflow task", e.GetWorkflowTaskCompletedEventAttributes().GetStartedEventId()
		case enums.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT:
			what, since = "a workflow task is lost", e.GetWorkflowTaskTimedOutEventAttributes().GetScheduledEventId()
		case enums.EVENT_TYPE_ACTIVITY_TASK_STARTED:
			what, since = "a step waits for a worker", e.GetActivityTaskStartedEventAttributes().GetScheduledEventId()
		case enums.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED:
			what, since = "a child is started", e.GetChildWorkflowExecutionStartedEventAttributes().GetInitiatedEventId()
		case enums.EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_SIGNALED:
			what, since = "a signal is delivered", e.GetExternalWorkflowExecutionSignaledEventAttributes().GetInitiatedEventId()
		case enums.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
			a := e.GetActivityTaskCompletedEventAttributes()
			if name := events[a.GetScheduledEventId()-1].GetActivityTaskScheduledEventAttributes().GetActivityType().GetName(); !isWork(name) {
				what, since = "a worker is at "+name, a.GetStartedEventId()
			}
		}
		if w := (wait{session, what, time.Time{}, e.GetEventTime().AsTime()}); since > 0 {
			if w.from = at(since); w.long() > longWait {
				all = append(all, w)
			}
		}
	}
	return all
}
