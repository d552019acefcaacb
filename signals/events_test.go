package signals

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
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
		events = append(events, agent.Event{Seq: seq, Type: agent.EventMessage, Time: at, Turn: 1, Message: &m})
	}
	return events
}

func recorded() []agent.Event {
	usage := agent.Usage{Input: 1200, Output: 300, CacheRead: 800, CacheWrite: 100, Reasoning: 50}
	m := agent.Message{Role: agent.RoleAssistant, Model: "anthropic/claude-sonnet-5", Parts: []agent.Part{
		{Type: agent.PartText, Text: "Let me look."},
		{Type: agent.PartToolCall, Call: &agent.ToolCall{ID: "t12.1", ProviderID: "toolu_1", Tool: "fs_read", Arguments: json.RawMessage(`{"path":"a.go"}`)}}}}
	summary := agent.TextMessage(agent.RoleUser, "Two flights were found.")
	call := func(status agent.CallStatus) *agent.CallUpdate {
		return &agent.CallUpdate{Call: "t12.1", Tool: "fs_read", Status: status}
	}
	child := func(status agent.Status) *agent.ChildUpdate {
		return &agent.ChildUpdate{Session: "trip-42/pay-1", Run: "01a2", Agent: "payer", Call: "t12.2", Status: status}
	}
	answer := &agent.Answered{Request: "q-7", Decision: "approve", By: "ana@acme.com", Approver: "ana@acme.com", Edited: true, Reason: "it is due"}
	r := approval()
	hold := &agent.Hold{ID: "h-3", From: agent.HoldOwn, Session: "trip-42", Initiator: agent.InitiatorOperator, Verb: agent.VerbInterrupt, By: "ana@acme.com", Reason: "the client rings", At: at}
	return slices.Concat(ends(), learned(), []agent.Event{
		{Type: agent.EventRunStarted, Started: &agent.Started{Run: "01a1", By: "ana@acme.com", Carry: agent.CarryReset, Spec: &agent.Spec{Definition: agent.Definition{Name: "lead", Model: "anthropic/claude-sonnet-5"}}}},
		{Type: agent.EventRunSuspended, Suspension: suspension()},
		{Type: agent.EventRunResumed, Resumed: &agent.Resumed{Suspension: "s-3", Cause: agent.InitiatorOperator, By: "ana@acme.com", FromSummary: true, Mode: agent.ResumedMessage, Checkpoint: "cp-131-95279a", Turn: 12, Renewed: true}},
		{Type: agent.EventOwnerFailed, OwnerFailed: &agent.OwnerFailure{Suspension: "s-14", Owner: agent.OwnerOperator, Code: agent.CodeDenied, Reason: "the hook gate did not allow a resume: the bank is down"}},
		{Type: agent.EventHoldAdded, Hold: hold}, {Type: agent.EventHoldRemoved, Hold: hold},
		{Type: agent.EventTurnStarted}, {Type: agent.EventModelRetried}, {Type: agent.EventMessage, Message: &m},
		{Type: agent.EventModelDelayed, Delay: &agent.Delay{Until: at.Add(10 * time.Minute), Error: &agent.Error{
			Code: agent.CodeProviderError, Message: "anthropic answered 429: slow down; it asked to wait 24h0m0s", Retryable: true,
			Provider: &agent.ProviderFault{Kind: agent.FaultRateLimit, Model: "anthropic/claude-sonnet-5", HTTP: 429},
		}}},
		{Type: agent.EventTurnEnded, Snapshot: &agent.TurnSnapshot{Usage: usage, Cost: 412_300, Tools: []agent.ToolCount{{Tool: "fs_read", Calls: 3, OK: 2, Failed: 1}}, StateChanges: map[string]json.RawMessage{"city": json.RawMessage(`"Rome"`)}}},
		{Type: agent.EventCallRequested, Call: call("")}, {Type: agent.EventCallStarted, Call: call("")}, {Type: agent.EventCallDone, Call: call(agent.CallOK)},
		{Type: agent.EventCallUnknown, Call: call(agent.CallUnknown)}, {Type: agent.EventCallApproved, Call: call("")}, {Type: agent.EventCallRejected, Call: call("")},
		{Type: agent.EventRequestOpened, Request: &r}, {Type: agent.EventRequestAnswered, Answer: answer},
		{Type: agent.EventRequestAnsweredLate, Answer: &agent.Answered{Request: "q-7", Decision: "answer", By: "ana@acme.com", Text: "Rome"}},
		{Type: agent.EventRequestExpired, Answer: &agent.Answered{Request: "q-7", Decision: agent.DefaultReject}},
		{Type: agent.EventRequestReminded, Answer: &agent.Answered{Request: "q-7"}},
		{Type: agent.EventRequestForwarded, Answer: &agent.Answered{Request: "trip-42/pay-1/q-7", Decision: "approve", By: "ana@acme.com"}},
		{Type: agent.EventChildStarted, Child: child(agent.StatusRunning)}, {Type: agent.EventChildSuspended, Child: child(agent.StatusSuspended)},
		{Type: agent.EventChildResumed, Child: child(agent.StatusRunning)}, {Type: agent.EventChildEnded, Child: child(agent.StatusCompleted)},
		{Type: agent.EventCompacted, Message: &summary, Compaction: &agent.Compaction{Strategy: agent.CompactionHybrid, Reason: agent.CompactedForWindow, KeepFirst: 1, KeepFrom: 90, Before: 180_000, After: 20_000}},
		{Type: agent.EventForked, Forked: &agent.Forked{Session: "trip-41", Run: "01a0", Checkpoint: "cp-70-c17bac", Retry: true}},
		{Type: agent.EventLimitExtended, Extended: agent.CodeLimitTurns},
		{Type: agent.EventToolsChanged, ToolsChange: &agent.ToolsChange{Source: "wiki", Tools: []agent.ToolSpec{{Name: "wiki__find", Description: "Finds a page.", Input: json.RawMessage(`{"type":"object"}`), ReadOnly: true}}}},
		{Type: agent.EventInstructionsKept, Instructions: &agent.InstructionsChange{Error: &agent.Error{Code: agent.CodeUnknownAgent, Message: `agent "booker" is not in this worker's build; it has other`}}},
		{Type: agent.EventInstructionsChanged, Instructions: &agent.InstructionsChange{Text: "Be kind.", Digest: strings.Repeat("0a", 32), By: "ana@acme.com"}},
		{Type: agent.EventArtifactSaved, Artifact: &agent.Artifact{
			File:    agent.File{Session: "trip-42", Digest: strings.Repeat("0a", 32), Size: 5120, MediaType: "text/markdown", Name: "report.md"},
			Version: 2, Run: "01a1", Agent: "lead", Call: "t12.1",
		}},
		{Type: agent.EventNotebookUpdated, Notebook: &agent.Notebook{
			Version: 2, Call: "t12.1", Goals: []string{"pay invoice 118"}, OpenItems: []string{"ask for the bank account"},
			Facts: []agent.Fact{{Text: "the invoice is 412.30 EUR", Source: "t11.1"}}, Refs: []string{"invoice.pdf#3f9a0c1b"},
		}},
		{Type: agent.EventProgressReported, Progress: &agent.Progress{
			Message: "reading the invoices", Entries: []agent.TodoItem{{Text: "read", State: agent.TodoInProgress}, {Text: "pay", State: agent.TodoPending}}, Replace: true,
		}},
		{Type: agent.EventCheckStarted, Check: &agent.CheckUpdate{Name: "rubric", Point: agent.PointVerify, Kind: agent.CheckByJudge, Call: "t12.check1", Tool: agent.GenerateTool}},
		{Type: agent.EventCheckDone, Check: &agent.CheckUpdate{
			Name: "rubric", Point: agent.PointVerify, Kind: agent.CheckByJudge, Call: "t12.check1", Tool: agent.GenerateTool, Status: agent.CallOK, Duration: agent.Duration(3 * time.Second),
			Verdict: &agent.Verdict{Decision: agent.DecisionVeto, Reasoning: "The price of the hotel has no source.", NextStep: "Find the price on the hotel's page.", Evidence: []string{"t12.1: 404"}},
			Model:   "openai/gpt-5-mini", Usage: usage, Cost: 2_100,
		}},
		{Type: agent.EventStateMigrated, Migrated: &agent.Migrated{From: 1, To: 2, State: map[string]json.RawMessage{"city": json.RawMessage(`"Rome"`)}}},
		{Type: agent.EventVerbRefused, Refusal: &agent.RefusedVerb{Verb: "pause", How: "signal", By: "ana@acme.com", At: at, Error: &agent.Error{Code: agent.CodeStale, Message: "pause refused: it is for run 01a0; the session's live run is 01a1"}}},
	})
}

// learned are what a run tells of its skills, its adaptive limit and its lessons.
func learned() []agent.Event {
	return []agent.Event{
		{Type: agent.EventSkillMatched, Matched: &agent.SkillMatching{
			Strategy: agent.SkillsByMetadata, Candidates: []agent.SkillCandidate{{Name: "invoices", Score: 0.75, Reason: "the task says invoice"}}, Fallback: "the host's function failed",
		}},
		{Type: agent.EventSkillActivated, Skill: &agent.SkillUpdate{
			Name: "invoices", Digest: "9f2c", Cause: agent.SkillMatched, Instructions: "Pay what is due.", Removed: []string{"shell_run"}, Remaining: []string{"fs_read", "pay"},
		}},
		{Type: agent.EventSkillDeactivated, Skill: &agent.SkillUpdate{Name: "invoices", Digest: "9f2c", Reason: "it no longer fits", Remaining: []string{"fs_read", "pay", "shell_run"}}},
		{Type: agent.EventSkillFailed, Skill: &agent.SkillUpdate{Name: "invoices", Digest: "9f2c", Cause: agent.SkillByUser, Error: &agent.Error{Code: agent.CodeNotFound, Message: "this worker has no skill invoices"}}},
		{Type: agent.EventLimitMoved, Moved: &agent.LimitMove{Limit: "own_turns", From: 4, To: 6, Reason: agent.MovedByHook, Turn: 12, Why: "it gets on"}},
		{Type: agent.EventLessonLearned, Lesson: &agent.Lesson{Kind: agent.FailureToolError, Text: "the tool pay failed; its result says why", Turn: 12}},
	}
}

// ends are the four ends.
func ends() (list []agent.Event) {
	for _, end := range []agent.EventType{agent.EventRunCompleted, agent.EventRunFailed, agent.EventRunCancelled, agent.EventRunStopped} {
		list = append(list, agent.Event{Type: end, Outcome: &agent.Outcome{
			V: 1, Type: "outcome", Session: "trip-42", Run: "01a1", Agent: "lead", Status: agent.Status(strings.TrimPrefix(string(end), "run.")), Reason: agent.ReasonDone,
			Turns: 12, Cost: 412_300, Started: at, Ended: at.Add(time.Minute), Seq: 117,
		}})
	}
	return list
}

// typesIn reads the types of events from their source.
func typesIn(t *testing.T, path string) (types []string) {
	t.Helper()
	source, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, m := range regexp.MustCompile(`(?m)^\tEvent\w+ +EventType += "([^"]+)"`).FindAllSubmatch(source, -1) {
		types = append(types, string(m[1]))
	}
	return types
}

// rowsOf are the names in the first column of the tables under a heading of a page.
func rowsOf(t *testing.T, page, heading string) (names []string) {
	t.Helper()
	doc, err := os.ReadFile(page)
	require.NoError(t, err)
	_, section, found := strings.Cut(string(doc), "\n## "+heading+"\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]+) \\|").FindAllStringSubmatch(section, -1) {
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			names = append(names, name[1])
		}
	}
	return names
}

// The types are a closed list: whoever looks for one finds its row in the docs, which name no other,
// and one of each is among the golden payloads (HL-101, HX-74).
func TestEveryTypeIsDescribed(t *testing.T) {
	types := typesIn(t, "../agent/event.go")
	require.Greater(t, len(types), 40)
	require.ElementsMatch(t, types, rowsOf(t, "../docs/events.md", "The types"))
	live := typesIn(t, "../agent/wire.go")
	require.Contains(t, live, string(agent.EventDeltaText))
	require.ElementsMatch(t, live, rowsOf(t, "../docs/events.md", "What is durable, and what is live"))
	var golden []string
	for _, e := range recorded() {
		golden = append(golden, string(e.Type))
	}
	require.ElementsMatch(t, types, golden)
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
	tail = append(line(1), agent.Event{Seq: 2, Type: agent.EventMessage, Message: &long}, agent.Event{Seq: 3, Type: agent.EventTurnStarted})
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
		require.Equal(t, agent.CodeInvalidInput, e.Code)
		require.Equal(t, path, e.Path)
	}
	_, err := EventsOf("a", "r", 9, line(9), EventPage{After: "nine"})
	require.ErrorIs(t, err, agent.CodeInvalidInput)
}
