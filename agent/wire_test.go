package agent

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// constants reads the constants of a type from their source.
func constants[T ~string](t *testing.T, source, name string) (values []T) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), source, nil, 0)
	require.NoError(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		c, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := c.Type.(*ast.Ident); ok && kind.Name == name {
			text, err := strconv.Unquote(c.Values[0].(*ast.BasicLit).Value)
			require.NoError(t, err)
			values = append(values, T(text))
		}
		return false
	})
	require.NotEmpty(t, values)
	return values
}

// One event of each type, as the machine records it.
func samples() map[EventType]Event {
	call, answer, child := &CallUpdate{Call: "t1.1", Tool: "pay"}, &Answered{Request: "q-7", Decision: "approve"}, &ChildUpdate{Session: "a/b-1", Agent: "b"}
	m := TextMessage(RoleAssistant, "Rome")
	end, hold := &Outcome{V: 1, Status: StatusCompleted}, &Hold{ID: "h-1"}
	return map[EventType]Event{
		EventRunStarted: {Started: &Started{Run: "01a1", By: "ana", Spec: &Spec{Definition: Definition{Name: "lead", Model: "m", Instructions: "Be brief."}}}}, EventRunCompleted: {Outcome: end}, EventRunFailed: {Outcome: end},
		EventRunCancelled: {Outcome: end}, EventRunStopped: {Outcome: end}, EventRunSuspended: {Suspension: &Suspension{ID: "s-1"}}, EventRunResumed: {Resumed: &Resumed{Suspension: "s-1"}}, EventOwnerFailed: {OwnerFailed: &OwnerFailure{Suspension: "s-1", Owner: OwnerOperator, Code: CodeDenied}},
		EventHoldAdded: {Hold: hold}, EventHoldRemoved: {Hold: hold}, EventTurnStarted: {}, EventTurnEnded: {Snapshot: &TurnSnapshot{Cost: Dollar}}, EventMessage: {Message: &m}, EventModelRetried: {}, EventModelDelayed: {Delay: &Delay{Error: &Error{Code: CodeProviderError}}},
		EventCallRequested: {Call: call}, EventCallStarted: {Call: call}, EventCallDone: {Call: &CallUpdate{Call: "t1.1", Tool: "pay", Status: CallOK}}, EventCallUnknown: {Call: call}, EventCallApproved: {Call: call}, EventCallRejected: {Call: call},
		EventRequestOpened: {Request: &Request{ID: "q-7"}}, EventRequestAnswered: {Answer: answer}, EventRequestAnsweredLate: {Answer: answer}, EventRequestExpired: {Answer: answer}, EventRequestReminded: {Answer: answer}, EventRequestForwarded: {Answer: answer},
		EventChildStarted: {Child: child}, EventChildSuspended: {Child: child}, EventChildResumed: {Child: child}, EventChildEnded: {Child: child},
		EventCompacted: {Message: &m, Compaction: &Compaction{Strategy: CompactionSummarizeAll, Reason: CompactedForWindow}}, EventForked: {Forked: &Forked{Session: "a", Checkpoint: "cp-9"}},
		EventSkillMatched: {Matched: &SkillMatching{Strategy: SkillsByMetadata}}, EventSkillActivated: {Skill: &SkillUpdate{Name: "invoices", Digest: "d1"}}, EventSkillDeactivated: {Skill: &SkillUpdate{Name: "invoices", Digest: "d1"}}, EventSkillFailed: {Skill: &SkillUpdate{Name: "invoices", Digest: "d1"}},
		EventLimitMoved: {Moved: &LimitMove{Limit: "own_turns", From: 4, To: 6, Reason: MovedByToolCall, Turn: 12}}, EventLessonLearned: {Lesson: &Lesson{Kind: FailureToolError, Text: "the tool pay failed: no money", Turn: 12}},
		EventLimitExtended: {Extended: CodeLimitTurns}, EventToolsChanged: {ToolsChange: &ToolsChange{Source: "wiki", Tools: []ToolSpec{{Name: "wiki__find"}}}}, EventInstructionsChanged: {Instructions: &InstructionsChange{Text: "Be brief.", Digest: "d1"}}, EventInstructionsKept: {Instructions: &InstructionsChange{Error: &Error{Code: CodeUnknownAgent, Message: "no"}}}, EventArtifactSaved: {Artifact: &Artifact{File: File{Session: "a", Name: "report.md"}, Version: 2}}, EventNotebookUpdated: {Notebook: &Notebook{Version: 1}}, EventProgressReported: {Progress: &Progress{Message: "reads", Replace: true}}, EventCheckStarted: {Check: &CheckUpdate{Name: "tests", Point: PointVerify, Kind: CheckByTool, Call: "t1.check1"}}, EventCheckDone: {Check: &CheckUpdate{Name: "tests", Point: PointVerify, Kind: CheckByTool, Call: "t1.check1", Verdict: &Verdict{Decision: DecisionAccept}}}, EventStateMigrated: {Migrated: &Migrated{From: 1, To: 2}}, EventVerbRefused: {Refusal: &RefusedVerb{Verb: "interupt"}},
	}
}

// Whatever a run records, a reader is told: no type is forgotten here (HL-101,
// OA-28, PA-72).
func TestEveryTypeHasItsWireForm(t *testing.T) {
	empty := map[EventType]bool{EventTurnStarted: true, EventModelRetried: true}
	types := constants[EventType](t, "event.go", "EventType")
	require.Greater(t, len(types), 30)
	require.Len(t, samples(), len(types))
	for _, kind := range types {
		e, ok := samples()[kind]
		require.True(t, ok, "no sample of %s", kind)
		e.Type, e.Seq, e.Turn, e.Time = kind, 118, 12, time.Date(2026, 11, 21, 9, 0, 0, 0, time.FixedZone("CET", 3600))
		w, err := e.Wire("trip-42", "01a1")
		require.NoError(t, err)
		require.Equal(t, WireEvent{V: 1, Cursor: "118", Type: kind, Time: e.Time.UTC(), Session: "trip-42", Run: "01a1", Turn: 12, Data: w.Data}, w)
		require.Equal(t, empty[kind], string(w.Data) == "{}", "%s: %s", kind, w.Data)
		require.Equal(t, byte('{'), w.Data[0])
		require.NotContains(t, string(w.Data), "Be brief.", "the Spec is the runtime's")
	}
}

// What is told of an event can't be broken JSON, whatever a tool or a model wrote.
func TestBrokenDataIsNoWireEvent(t *testing.T) {
	_, err := Event{Seq: 3, Outcome: &Outcome{Output: json.RawMessage(`{`)}}.Wire("a", "b")
	require.ErrorIs(t, err, CodeInternal)
}
