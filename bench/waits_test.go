package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
)

// began is when the histories of these tests start.
var began = time.Unix(0, 0).UTC()

// historyOf returns the events of a history. Each line has an event's milliseconds since began,
// its type, and its attributes in JSON. The first one has number 1.
func historyOf(t *testing.T, lines string) []*historypb.HistoryEvent {
	t.Helper()
	var all []string
	for line := range strings.Lines(strings.TrimSpace(lines)) {
		var after int
		var kind, attributes string
		_, err := fmt.Sscan(line, &after, &kind, &attributes)
		require.NoError(t, err)
		name := strings.ToLower(kind[:1]) + kind[1:] + "EventAttributes"
		all = append(all, fmt.Sprintf(`{"eventId": "%d", "eventTime": %q, "eventType": %q, %q: %s}`, len(all)+1, began.Add(time.Duration(after)*time.Millisecond).Format(time.RFC3339Nano), kind, name, attributes))
	}
	h, err := client.HistoryFromJSON(strings.NewReader(`{"events": [`+strings.Join(all, ",")+`]}`), client.HistoryJSONOptions{})
	require.NoError(t, err)
	return h.Events
}

// A history shows each wait above the limit, from an event to its answer. The work itself, such
// as a model call, is no wait.
func TestWaitsOfAHistory(t *testing.T) {
	got := waitsIn("s", historyOf(t, `
		0     WorkflowTaskScheduled                     {}
		300   WorkflowTaskStarted                       {"scheduledEventId":"1"}
		510   WorkflowTaskCompleted                     {"scheduledEventId":"1","startedEventId":"2"}
		520   ActivityTaskScheduled                     {"activityType":{"name":"fermata.seal"}}
		520   ActivityTaskScheduled                     {"activityType":{"name":"fermata.model"}}
		720   ActivityTaskStarted                       {"scheduledEventId":"4"}
		760   ActivityTaskStarted                       {"scheduledEventId":"5"}
		1000  ActivityTaskCompleted                     {"scheduledEventId":"4","startedEventId":"6"}
		5000  ActivityTaskCompleted                     {"scheduledEventId":"5","startedEventId":"7"}
		5000  StartChildWorkflowExecutionInitiated      {}
		5010  SignalExternalWorkflowExecutionInitiated  {}
		5250  ChildWorkflowExecutionStarted             {"initiatedEventId":"10"}
		5270  ExternalWorkflowExecutionSignaled         {"initiatedEventId":"11"}
		5300  WorkflowTaskScheduled                     {}
		5400  WorkflowTaskStarted                       {"scheduledEventId":"14"}
		9000  WorkflowTaskTimedOut                      {"scheduledEventId":"14","startedEventId":"15"}`))
	var waits []string
	for _, w := range got {
		waits = append(waits, fmt.Sprintf("%s: %d to %d ms: %s", w.session, w.from.Sub(began).Milliseconds(), w.to.Sub(began).Milliseconds(), w.what))
	}
	require.Equal(t, []string{
		"s: 0 to 300 ms: a workflow task waits for a worker",
		"s: 300 to 510 ms: a worker is at a workflow task",
		"s: 520 to 760 ms: a step waits for a worker",
		"s: 720 to 1000 ms: a worker is at fermata.seal",
		"s: 5000 to 5250 ms: a child is started",
		"s: 5010 to 5270 ms: a signal is delivered",
		"s: 5300 to 9000 ms: a workflow task is lost",
	}, waits)
}

// The report of a tree sums up each kind of wait. Then it lists all waits in the order in which
// they began.
func TestReportOfWaits(t *testing.T) {
	at := func(after int) time.Time { return began.Add(time.Duration(after) * time.Millisecond) }
	var out bytes.Buffer
	require.NoError(t, printWaits(&out, "a cell, trees 1", began, []wait{
		{"s", "a child is started", at(900), at(1150)},
		{"s/w-1", "a signal is delivered", at(300), at(800)},
		{"s", "a child is started", at(20), at(290)},
	}))
	require.Equal(t, `a cell, trees 1: 3 waits above 200ms
      2 × a child is started, at most 270 ms
      1 × a signal is delivered, at most 500 ms
      20 ms      270 ms  a child is started  s
     300 ms      500 ms  a signal is delivered  s/w-1
     900 ms      250 ms  a child is started  s
`, out.String())
}
