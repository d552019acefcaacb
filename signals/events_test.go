package signals

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// told is one event of each type, in the form for readers.
func told(t *testing.T) map[string]any {
	out := map[string]any{}
	for _, e := range recorded() {
		e.Seq, e.Time, e.Turn = 118, at, 12
		w, err := e.Wire("trip-42", "01a1")
		require.NoError(t, err)
		out["event-"+strings.ReplaceAll(string(e.Type), ".", "-")] = w
	}
	first, err := EventsOf("trip-42", "01a1", 9, line(9)[6:], EventPage{After: "7", Limit: 1})
	require.NoError(t, err)
	out["events"] = first
	return out
}

// line is a log of n events.
func line(n int64) (events []agent.Event) {
	for seq := int64(1); seq <= n; seq++ {
		m := agent.TextMessage(agent.RoleUser, strings.Repeat("x", int(seq)))
		events = append(events, agent.Event{Seq: seq, Type: agent.Said, Time: at, Turn: 1, Message: &m})
	}
	return events
}

func recorded() []agent.Event {
	usage := agent.Usage{Input: 1200, Output: 300, CacheRead: 800, CacheWrite: 100, Reasoning: 50}
	m := agent.Message{Role: agent.RoleAssistant, Model: "anthropic/claude-sonnet-5", Parts: []agent.Part{
		{Type: agent.PartText, Text: "Let me look."},
		{Type: agent.PartCall, Call: &agent.ToolCall{ID: "t12.1", ProviderID: "toolu_1", Tool: "fs_read", Arguments: json.RawMessage(`{"path":"a.go"}`)}}}}
	summary := agent.TextMessage(agent.RoleUser, "Two flights were found.")
	call := func(status agent.CallStatus) *agent.CallNote {
		return &agent.CallNote{Call: "t12.1", Tool: "fs_read", Status: status}
	}
	child := func(status agent.Status) *agent.ChildNote {
		return &agent.ChildNote{Session: "trip-42/pay-1", Run: "01a2", Agent: "payer", Call: "t12.2", Status: status}
	}
	answer := &agent.Answered{Request: "q-7", Decision: "approve", By: "ana@acme.com", Approver: "ana@acme.com", Edited: true, Reason: "it is due"}
	r := approval()
	hold := &agent.Hold{ID: "h-3", From: agent.HoldOwn, Session: "trip-42", Verb: agent.Interrupt, By: "ana@acme.com", Reason: "the client rings", At: at}
	return append(ends(), []agent.Event{
		{Type: agent.RunStarted, Started: &agent.Started{Run: "01a1", By: "ana@acme.com", Carry: agent.CarryReset, Spec: &agent.Spec{Definition: agent.Definition{Name: "lead", Model: "anthropic/claude-sonnet-5"}}}},
		{Type: agent.RunSuspended, Suspension: suspension()},
		{Type: agent.RunResumed, Resumed: &agent.Resumed{Suspension: "s-3", Cause: agent.ByOperator, By: "ana@acme.com", Fresh: true, Renewed: true}},
		{Type: agent.HoldLaid, Hold: hold}, {Type: agent.HoldLifted, Hold: hold},
		{Type: agent.TurnStarted}, {Type: agent.ModelRetried}, {Type: agent.Said, Message: &m},
		{Type: agent.ModelDelayed, Delay: &agent.Delay{Until: at.Add(10 * time.Minute), Error: &agent.Error{
			Code: agent.ProviderError, Message: "anthropic answered 429: slow down; it asked to wait 24h0m0s", Retryable: true,
			Provider: &agent.ProviderFault{Kind: agent.FaultRateLimit, Model: "anthropic/claude-sonnet-5", HTTP: 429},
		}}},
		{Type: agent.TurnEnded, Checkpoint: &agent.Checkpoint{Usage: usage, Cost: 412_300, Tools: []agent.ToolCount{{Tool: "fs_read", Calls: 3, OK: 2, Failed: 1}}, Set: map[string]json.RawMessage{"city": json.RawMessage(`"Rome"`)}}},
		{Type: agent.CallRequested, Call: call("")}, {Type: agent.CallStarted, Call: call("")}, {Type: agent.CallDone, Call: call(agent.CallOK)},
		{Type: agent.CallLost, Call: call(agent.CallUnknown)}, {Type: agent.CallApproved, Call: call("")}, {Type: agent.CallRefused, Call: call("")},
		{Type: agent.RequestOpened, Request: &r}, {Type: agent.RequestAnswered, Answer: answer},
		{Type: agent.RequestExpired, Answer: &agent.Answered{Request: "q-7", Decision: agent.DefaultReject}},
		{Type: agent.RequestReminded, Answer: &agent.Answered{Request: "q-7"}},
		{Type: agent.RequestPassed, Answer: &agent.Answered{Request: "trip-42/pay-1/q-7", Decision: "approve", By: "ana@acme.com"}},
		{Type: agent.ChildStarted, Child: child(agent.Running)}, {Type: agent.ChildSuspended, Child: child(agent.Suspended)},
		{Type: agent.ChildResumed, Child: child(agent.Running)}, {Type: agent.ChildEnded, Child: child(agent.Completed)},
		{Type: agent.Compacted, Message: &summary, Compaction: &agent.Compaction{Strategy: agent.CompactHybrid, Reason: agent.CompactedForWindow, KeepFirst: 1, KeepFrom: 90, Before: 180_000, After: 20_000}},
		{Type: agent.RunForked, Forked: &agent.Forked{Session: "trip-41", Run: "01a0", Checkpoint: "cp-70", Retry: true}},
		{Type: agent.LimitExtended, Extended: agent.LimitTurns},
		{Type: agent.ToolsChanged, Relisted: &agent.Relisted{Source: "wiki", Tools: []agent.ToolSpec{{Name: "wiki__find", Description: "Finds a page.", Input: json.RawMessage(`{"type":"object"}`), ReadOnly: true}}}},
		{Type: agent.StateMigrated, Migrated: &agent.Migrated{From: 1, To: 2, State: map[string]json.RawMessage{"city": json.RawMessage(`"Rome"`)}}},
		{Type: agent.VerbRefused, Refusal: &agent.RefusedVerb{Verb: "interupt", How: "signal", At: at, Error: &agent.Error{Code: agent.InvalidInput, Message: "no verb of that name is known"}}},
	}...)
}

// ends are the four ends.
func ends() (list []agent.Event) {
	for _, end := range []agent.EventType{agent.RunCompleted, agent.RunFailed, agent.RunCancelled, agent.RunStopped} {
		list = append(list, agent.Event{Type: end, Outcome: &agent.Outcome{
			V: 1, Type: "outcome", Session: "trip-42", Run: "01a1", Agent: "lead", Status: agent.Status(strings.TrimPrefix(string(end), "run.")), Reason: agent.ReasonDone,
			Turns: 12, Cost: 412_300, Started: at, Ended: at.Add(time.Minute), Seq: 117,
		}})
	}
	return list
}

// Whoever looks for a type finds it in the docs (HL-101, HX-74).
func TestEveryTypeIsDescribed(t *testing.T) {
	doc, err := os.ReadFile("../docs/events.md")
	require.NoError(t, err)
	live := []agent.Event{{Type: agent.DeltaText}, {Type: agent.DeltaThinking}, {Type: agent.DeltaVoid}, {Type: agent.DeltaLost}, {Type: agent.CallProgress}}
	for _, e := range append(recorded(), live...) {
		require.Contains(t, string(doc), "`"+string(e.Type)+"`")
	}
}

// Pages of events are bounded, join without a gap, and say what they can't show.
func TestEventPages(t *testing.T) {
	tail := line(2000)[1000:] // the others are sealed
	var seen []string
	for p := (EventPage{After: "1003", Limit: 300}); ; {
		list, err := EventsOf("a", "r", 2000, tail, p)
		require.NoError(t, err)
		raw, err := json.Marshal(list)
		require.NoError(t, err)
		require.Less(t, len(raw), 2<<20, "an answer fits into a payload")
		require.LessOrEqual(t, len(list.Events), 300)
		require.Equal(t, "1000", list.Sealed)
		for _, e := range list.Events {
			seen = append(seen, e.Cursor)
		}
		require.Equal(t, seen[len(seen)-1], list.Cursor)
		if p.After = list.Cursor; !list.More {
			break
		}
	}
	require.Len(t, seen, 997)
	require.Equal(t, "2000", seen[len(seen)-1])

	list, err := EventsOf("a", "r", 2000, tail, EventPage{})
	require.NoError(t, err)
	require.Len(t, list.Events, 100)
	list, err = EventsOf("a", "r", 2000, tail, EventPage{After: "2000"})
	require.NoError(t, err)
	require.Equal(t, EventList{V: 1, Events: []agent.WireEvent{}, Cursor: "2000", Sealed: "1000"}, list)
	list, err = EventsOf("a", "r", 2000, nil, EventPage{After: "3"})
	require.NoError(t, err)
	require.Equal(t, EventList{V: 1, Events: []agent.WireEvent{}, Cursor: "2000", Sealed: "2000"}, list, "all of it is in the store")

	// One that is too long for an answer comes alone.
	long := agent.TextMessage(agent.RoleUser, strings.Repeat("x", maxAnswer+1))
	tail = append(line(1), agent.Event{Seq: 2, Type: agent.Said, Message: &long}, agent.Event{Seq: 3, Type: agent.TurnStarted})
	for i, want := range []string{"1", "2", "3"} {
		list, err = EventsOf("a", "r", 3, tail, EventPage{After: agent.Cursor(int64(i))})
		require.NoError(t, err)
		require.Equal(t, want, list.Cursor)
		require.Len(t, list.Events, 1)
	}
}

func TestEventPagesThatCantBeMeant(t *testing.T) {
	for path, p := range map[string]EventPage{"after": {After: "10"}, "limit": {Limit: 1001}} {
		_, err := EventsOf("a", "r", 9, line(9), p)
		var e *agent.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, agent.InvalidInput, e.Code)
		require.Equal(t, path, e.Path)
	}
	_, err := EventsOf("a", "r", 9, line(9), EventPage{After: "nine"})
	require.ErrorIs(t, err, agent.InvalidInput)
}
