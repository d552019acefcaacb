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

// eventTypes reads the types of recorded events from their source.
func eventTypes(t *testing.T) (types []EventType) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "event.go", nil, 0)
	require.NoError(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		c, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := c.Type.(*ast.Ident); ok && kind.Name == "EventType" {
			text, err := strconv.Unquote(c.Values[0].(*ast.BasicLit).Value)
			require.NoError(t, err)
			types = append(types, EventType(text))
		}
		return false
	})
	require.Greater(t, len(types), 30)
	return types
}

// One event of each type, as the machine records it.
func samples() map[EventType]Event {
	call, answer, child := &CallNote{Call: "t1.1", Tool: "pay"}, &Answered{Request: "q-7", Decision: "approve"}, &ChildNote{Session: "a/b-1", Agent: "b"}
	m := TextMessage(RoleAssistant, "Rome")
	end, hold := &Outcome{V: 1, Status: Completed}, &Hold{ID: "h-1"}
	return map[EventType]Event{
		RunStarted: {Started: &Started{Run: "01a1", By: "ana", Spec: &Spec{Definition: Definition{Name: "lead", Model: "m", Instructions: "Be brief."}}}}, RunCompleted: {Outcome: end}, RunFailed: {Outcome: end},
		RunCancelled: {Outcome: end}, RunStopped: {Outcome: end}, RunSuspended: {Suspension: &Suspension{ID: "s-1"}}, RunResumed: {Resumed: &Resumed{Suspension: "s-1"}},
		HoldLaid: {Hold: hold}, HoldLifted: {Hold: hold}, TurnStarted: {}, TurnEnded: {Checkpoint: &Checkpoint{Cost: Dollar}}, Said: {Message: &m}, ModelRetried: {}, ModelDelayed: {Delay: &Delay{Error: &Error{Code: ProviderError}}},
		CallRequested: {Call: call}, CallStarted: {Call: call}, CallDone: {Call: &CallNote{Call: "t1.1", Tool: "pay", Status: CallOK}}, CallLost: {Call: call}, CallApproved: {Call: call}, CallRefused: {Call: call},
		RequestOpened: {Request: &Request{ID: "q-7"}}, RequestAnswered: {Answer: answer}, RequestExpired: {Answer: answer}, RequestReminded: {Answer: answer}, RequestPassed: {Answer: answer},
		ChildStarted: {Child: child}, ChildSuspended: {Child: child}, ChildResumed: {Child: child}, ChildEnded: {Child: child},
		Compacted: {Message: &m, Compaction: &Compaction{Strategy: CompactAll, Reason: CompactedForWindow}}, RunForked: {Forked: &Forked{Session: "a", Checkpoint: "cp-9"}},
		LimitExtended: {Extended: LimitTurns}, ToolsChanged: {Relisted: &Relisted{Source: "wiki", Tools: []ToolSpec{{Name: "wiki__find"}}}}, StateMigrated: {Migrated: &Migrated{From: 1, To: 2}}, VerbRefused: {Refusal: &RefusedVerb{Verb: "interupt"}},
	}
}

// Whatever a run records, a reader is told: no type is forgotten here (HL-101,
// OA-28, PA-72).
func TestEveryTypeHasItsWireForm(t *testing.T) {
	empty := map[EventType]bool{TurnStarted: true, ModelRetried: true}
	types := eventTypes(t)
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
	require.ErrorIs(t, err, Internal)
}

func TestCursors(t *testing.T) {
	for cursor, want := range map[string]int64{"": 0, "0": 0, "118": 118} {
		seq, err := CursorSeq(cursor)
		require.NoError(t, err)
		require.Equal(t, want, seq)
	}
	for _, cursor := range []string{"-1", "+1", "007", "1.0", "cp-7", "99999999999999999999", " 1"} {
		_, err := CursorSeq(cursor)
		require.ErrorIs(t, err, InvalidInput, cursor)
		var e *Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, "after", e.Path)
	}
	require.Contains(t, BeyondEnd(9, 7).Message, `"7"`)
}
