package activities

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/loop"
)

// What a hook of a turn may return: nothing, a text, true, or a decision. An unknown action and an
// unknown field are errors (HA-70, HA-88).
func TestTheDecisionsOfAHook(t *testing.T) {
	for text, want := range map[string]agent.TurnDecision{
		"": {}, "null": {}, "false": {}, `{"action":"none"}`: {Action: agent.TurnNone}, "{}": {},
		"true":                                {Action: agent.TurnStop},
		"Be short.":                           {Message: "Be short."},
		`"Be short."`:                         {Message: "Be short."},
		`{"action":"extend","by":2}`:          {Action: agent.TurnExtend, By: 2},
		`{"action":"extend","until":9}`:       {Action: agent.TurnExtend, Until: 9},
		`{"action":"stop","reason":"x"}`:      {Action: agent.TurnStop, Reason: "x"},
		`{"message":"m","next":{"tools":[]}}`: {Message: "m", Next: &agent.NextTurn{Tools: []string{}}},
		`{"next":{"model":"a/b","max_output_tokens":9,"temperature":0,"reasoning":"low"}}`: {Next: &agent.NextTurn{Model: "a/b", MaxOutputTokens: 9, Temperature: new(float64), Reasoning: agent.ReasoningLow}},
		`{"action":"fail","failure":"unclear_request","reason":"which?"}`:                  {Action: agent.TurnFail, Failure: agent.FailureUnclearRequest, Reason: "which?"},
	} {
		got, err := decisionOf(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{`{"action":"dance"}`, `{"acton":"stop"}`, `{"action":"extend"}`, `{"action":"extend","by":1,"until":2}`, `{"by":1}`, `{"action":"ask"}`, `{"action":"fail","failure":"refusal"}`, `{"action":"fail"}`, `{"action":`, `{"next":{"temperature":3}}`, `{"next":{"max_output_tokens":-1}}`, `{"next":{"reasoning":"hard"}}`, `{"next":{"seed":1}}`} {
		_, err := decisionOf(text)
		require.ErrorIs(t, err, agent.CodeInvalidInput, text)
		require.Equal(t, agent.CallFailed, decided(ToolOutput{ToolResult: agent.ToolResult{Status: agent.CallOK, Text: text}}).Status)
	}
}

// A hook sees one turn of the log: its text, its results, what the run's tools did so far, what is
// required, and what a check of the answer said (HA-69, HA-88).
func TestTheReportOfATurn(t *testing.T) {
	said := agent.Message{Role: agent.RoleAssistant, Parts: []agent.Part{
		{Type: agent.PartText, Text: "Adding."},
		{Type: agent.PartToolCall, Call: &agent.ToolCall{ID: "t2.1", Tool: "add", Arguments: json.RawMessage(`{"a":1}`)}},
		{Type: agent.PartToolCall, Call: &agent.ToolCall{ID: "t2.2", Tool: "drop", Arguments: json.RawMessage(`{}`)}},
	}}
	results := agent.Message{Role: agent.RoleTool, Parts: []agent.Part{
		{Type: agent.PartToolResult, Result: &agent.ToolResult{Call: "t2.1", Tool: "add", Status: agent.CallOK, Text: "3"}},
		{Type: agent.PartToolResult, Result: &agent.ToolResult{Call: "t2.2", Tool: "drop", Status: agent.CallRejected, Text: "no"}},
	}}
	before := agent.TextMessage(agent.RoleAssistant, "before")
	spec := agent.Spec{Definition: agent.Definition{Require: []agent.OneOf{{"add"}, {"test", "build"}}}}
	log := checkedLog(spec, userSays("go", ""), agent.Event{Turn: 1, Message: &before}, agent.Event{Turn: 2, Message: &said},
		agent.Event{Turn: 2, Type: agent.EventCallDone, Call: &agent.CallUpdate{Call: "t2.2", Tool: "drop", Status: agent.CallRejected}})
	calls, err := proposedCalls(log, 2)
	require.NoError(t, err)
	require.Equal(t, agent.ProposedCalls{Task: "go", Text: "Adding.", Turn: 2, Calls: []agent.ProposedCall{{ID: "t2.1", Tool: "add", Arguments: json.RawMessage(`{"a":1}`)}}}, calls)

	log = checkedLog(spec, userSays("go", ""), agent.Event{Turn: 1, Message: &before}, agent.Event{Turn: 2, Message: &said}, agent.Event{Turn: 2, Message: &results},
		agent.Event{Turn: 2, Type: agent.EventTurnEnded, Snapshot: &agent.TurnSnapshot{Tools: []agent.ToolCount{{Tool: "look", OK: 1}, {Tool: "add", OK: 2}, {Tool: "drop", Rejected: 1}, {Tool: "guess", Rejected: 1}}}},
		agent.Event{Turn: 2, Type: agent.EventCheckDone, Check: &agent.CheckUpdate{Point: agent.PointVerify, Verdict: &agent.Verdict{Decision: agent.DecisionVeto, Reasoning: "no test", NextStep: "Add one."}}})
	in := ToolInput{}
	in.Session, in.Turn = "s", 2
	in.Check = &loop.CheckArgs{Point: agent.PointAfterTurn, Budget: &agent.TurnBudget{Limit: 4, Max: 8, Remaining: 2, Extensions: 1}}
	in.Check.TextCalls = true
	got := turnReport(log, in)
	require.Equal(t, agent.TurnReport{
		Session: "s", Turn: 2, Task: "go", Text: "Adding.", TextChars: 7, Calls: 2, TextCalls: true,
		Results:    []agent.TurnResult{{Call: "t2.1", Tool: "add", OK: true, Status: agent.CallOK, Text: "3"}, {Call: "t2.2", Tool: "drop", Status: agent.CallRejected, Text: "no"}},
		Tools:      agent.TurnTools{Successful: []string{"add"}, Rejected: []string{"drop"}},
		All:        agent.TurnTools{Successful: []string{"look", "add"}, Rejected: []string{"drop", "guess"}},
		Required:   agent.RequiredTools{Satisfied: []string{"add"}, Missing: []string{"test or build"}},
		Budget:     agent.TurnBudget{Limit: 4, Max: 8, Remaining: 2, Extensions: 1},
		Completion: agent.TurnCompletion{Proposed: true, Vetoed: true, Verdict: agent.DecisionVeto, Feedback: "no test\nAdd one."},
		Progress:   agent.TurnProgress{Changed: true, Summary: "a check vetoed the answer"},
	}, got)
	raw, err := json.MarshalIndent(got, "", "  ")
	require.NoError(t, err)
	golden, err := os.ReadFile("testdata/turn_report.json")
	require.NoError(t, err)
	require.Equal(t, string(golden), string(raw)+"\n")

	silent := agent.TextMessage(agent.RoleAssistant, "")
	in.Turn = 3
	got = turnReport(checkedLog(spec, userSays("go", ""), agent.Event{Turn: 3, Message: &silent}), in)
	require.Equal(t, agent.TurnProgress{Summary: "the turn did nothing"}, got.Progress)
}
