package render_test

import (
	"encoding/json"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/render"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
)

func TestRests(t *testing.T) {
	pay := &agent.Request{ID: "q-7", Type: agent.RequestApproval, Text: "Run pay?", Call: &agent.RequestCall{Tool: "pay", Arguments: json.RawMessage(`{"eur":800}`)}}
	child := &agent.ChildUpdate{Session: "s/pay-1", Agent: "pay", Status: agent.StatusFailed, Reason: "refusal"}
	tests := []struct {
		e    agent.Event
		want string
	}{
		{agent.Event{Type: agent.EventHoldAdded, Hold: &agent.Hold{From: agent.HoldOwn, Verb: agent.VerbInterrupt, By: "ana", Reason: "the client rings"}}, "held by ana (interrupt): the client rings"},
		{agent.Event{Type: agent.EventHoldAdded, Hold: &agent.Hold{From: agent.HoldInherited, Session: "s", Verb: agent.VerbPause}}, "held with s (pause)"},
		{agent.Event{Type: agent.EventHoldRemoved, Hold: &agent.Hold{From: agent.HoldOwn, Verb: agent.VerbPause}}, "no longer held (pause)"},
		{agent.Event{Type: agent.EventHoldRemoved, Hold: &agent.Hold{From: agent.HoldOwn, Verb: agent.VerbPause, By: "ana", RemovedBy: "bo"}}, "bo lets it go: no longer held by ana (pause)"},
		{agent.Event{Type: agent.EventRunSuspended, Suspension: &agent.Suspension{ID: "s-1", Kind: agent.SuspensionInputRequired, Requests: []agent.Request{*pay}}}, "suspended (s-1): waits for the answer to q-7"},
		{agent.Event{Type: agent.EventRunSuspended, Suspension: &agent.Suspension{ID: "s-1", Kind: agent.SuspensionHeld, Holds: []agent.Hold{{Verb: agent.VerbPause}}}}, "suspended (s-1): held (pause)"},
		{agent.Event{Type: agent.EventRunSuspended, Suspension: &agent.Suspension{ID: "s-1", Kind: agent.SuspensionParked, Reason: "not paid", Conditions: &agent.Conditions{
			After: agent.Duration(time.Hour), Any: []agent.Condition{{Event: &agent.EventCondition{Topic: "paid"}}}}}}, "suspended (s-1): waits for paid, or for 1h: not paid"},
		{agent.Event{Type: agent.EventRunSuspended, Suspension: &agent.Suspension{ID: "s-1", Kind: agent.SuspensionParked, Conditions: &agent.Conditions{
			After: agent.Duration(time.Hour), Event: &agent.EventCondition{Topic: "paid"}}}}, "suspended (s-1): waits for paid, or for 1h"},
		{agent.Event{Type: agent.EventRunSuspended, Suspension: &agent.Suspension{ID: "s-1", Kind: agent.SuspensionParked}}, "suspended (s-1): waits until somebody resumes it"},
		{agent.Event{Type: agent.EventRunSuspended, Suspension: &agent.Suspension{ID: "s-1", Kind: agent.SuspensionAwaitingChildren}}, "suspended (s-1): waits for its sub-agents"},
		{agent.Event{Type: agent.EventRunResumed, Resumed: &agent.Resumed{Suspension: "s-1", Cause: agent.InitiatorOperator, By: "ana", FromSummary: true}}, "continues (s-1, operator ana, from a summary)"},
		{agent.Event{Type: agent.EventRunResumed, Resumed: &agent.Resumed{Suspension: "s-1", Cause: agent.InitiatorTriggered, Event: "paid", Renewed: true}}, "continues (s-1, triggered paid, limits renewed)"},
		{agent.Event{Type: agent.EventRunStopped, Outcome: &agent.Outcome{Handoff: &agent.Handoff{SummarizedBy: agent.SummarizedByModel, Children: []agent.Handoff{{}}}}}, "handed over: the work of 2 agents, summed up by model"},
		{agent.Event{Type: agent.EventRequestOpened, Request: pay}, "q-7, approval: Run pay? (pay eur=800)"},
		{agent.Event{Type: agent.EventRequestAnswered, Answer: &agent.Answered{Request: "q-7", Decision: "approve", By: "x", Approver: "ana", Edited: true, Reason: "less"}}, "q-7 approved by ana, with other arguments: less"},
		{agent.Event{Type: agent.EventRequestAnswered, Answer: &agent.Answered{Request: "q-7", Decision: "approve", By: "ana", AlwaysInSession: true}}, "q-7 approved by ana, and all calls of the tool in this session"},
		{agent.Event{Type: agent.EventRequestAnsweredLate, Answer: &agent.Answered{Request: "q-7", Decision: "answer", By: "ana", Text: "Rome"}}, "after its deadline, q-7 answered by ana: Rome"},
		{agent.Event{Type: agent.EventRequestExpired, Answer: &agent.Answered{Request: "q-7", Decision: "reject"}}, "q-7 was decided by its deadline: reject"},
		{agent.Event{Type: agent.EventRequestExpired, Answer: &agent.Answered{Request: "q-7"}}, "q-7 was decided by its deadline"},
		{agent.Event{Type: agent.EventRequestReminded, Answer: &agent.Answered{Request: "q-7"}}, "q-7 is still open"},
		{agent.Event{Type: agent.EventChildStarted, Child: child}, "s/pay-1 (pay) started"},
		{agent.Event{Type: agent.EventChildSuspended, Child: child}, "s/pay-1 (pay) is suspended"},
		{agent.Event{Type: agent.EventChildResumed, Child: child}, "s/pay-1 (pay) resumed"},
		{agent.Event{Type: agent.EventChildEnded, Child: child}, "s/pay-1 (pay) is failed: refusal"},
		{
			agent.Event{Type: agent.EventChildEnded, Child: &agent.ChildUpdate{Session: "s/b-1", Agent: "b", Status: agent.StatusCompleted, Workspace: &agent.WorkspaceOutcome{
				Kind: agent.WorkspaceWorktree, Name: "b-0f3a9c27d5e1", Result: agent.WorkspaceConflict, Branch: "fermata/b-0f3a9c27d5e1", Repository: "/own/b-0f3a9c27d5e1/git", Paths: []string{"a.go"}, Error: "these files were changed here too",
			}}},
			"s/b-1 (b) is completed; workspace: conflict, nothing merged: these files were changed here too (a.go); its work: git fetch /own/b-0f3a9c27d5e1/git fermata/b-0f3a9c27d5e1",
		},
		{agent.Event{Type: agent.EventCompacted}, "the model continues from a summary of the earlier messages"},
		{agent.Event{Type: agent.EventLimitExtended, Extended: agent.CodeLimitTurns}, "limit_turns is renewed"},
		{agent.Event{Type: agent.EventVerbRefused, Refusal: &agent.RefusedVerb{Error: agent.Errorf(agent.CodeInvalidInput, "interupt refused: no")}}, "interupt refused: no"},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want+"\n", told(render.Options{}, tt.e))
	}
	require.Equal(t, "", told(render.Options{}, agent.Event{Type: "some.thing"}))
	m := agent.TextMessage(agent.RoleUser, "And the tests?")
	require.Equal(t, "", told(render.Options{}, agent.Event{Type: agent.EventMessage, Message: &m}), "the task")
	require.Equal(t, "(said) And the tests?\n", told(render.Options{}, turn(1), agent.Event{Type: agent.EventMessage, Message: &m}))
}

func TestSuspendedOutcome(t *testing.T) {
	o := &agent.Outcome{Status: agent.StatusSuspended, Turns: 2, Suspension: &agent.Suspension{ID: "s-3", Kind: agent.SuspensionHeld, Holds: []agent.Hold{{Verb: agent.VerbPause, By: "ana"}}}}
	require.Equal(t, "suspended (s-3): held by ana (pause) · 2 turns\n", told(render.Options{}, o))
}

func TestDeadline(t *testing.T) {
	q := agent.Request{Type: agent.RequestQuestion, Deadline: time.Date(2020, 11, 21, 8, 0, 0, 0, time.Local)}
	require.Equal(t, " · at 2020-11-21 08:00:00: nobody answered", render.Deadline(q))
	q.Type = agent.RequestLimit
	require.Equal(t, " · at 2020-11-21 08:00:00: stop", render.Deadline(q))
	q.Type = agent.RequestApproval
	require.Equal(t, " · at 2020-11-21 08:00:00: reject", render.Deadline(q))
	q.Default = agent.DefaultApprove
	require.Equal(t, " · at 2020-11-21 08:00:00: approve", render.Deadline(q))
}

// A terminal of any width shows something.
func TestLineOfAnyWidth(t *testing.T) {
	for width := -2; width < 4; width++ {
		require.NotEmpty(t, untrusted.Line("some words", width))
		render.New(io.Discard, render.Options{Width: width}).Event(agent.Event{Type: agent.EventMessage, Message: &agent.Message{Role: agent.RoleUser, Note: "n", Parts: []agent.Part{{Text: "some words"}}}})
	}
}

// The line of an event says who did it, before words that may say anything.
func TestAnEventsLineSaysWho(t *testing.T) {
	held := agent.Hold{ID: "h-1", From: agent.HoldOwn, Verb: agent.VerbPause, By: "ana", Reason: "removed by bo"}
	removed := held
	removed.RemovedBy = "carl"
	for want, e := range map[string]agent.Event{
		"h-1 held by ana (pause): removed by bo":                      {Type: agent.EventHoldAdded, Hold: &held},
		"h-1 removed by carl, was held by ana (pause): removed by bo": {Type: agent.EventHoldRemoved, Hold: &removed},
		"sent by bo: pause refused: no":                               {Type: agent.EventVerbRefused, Refusal: &agent.RefusedVerb{By: "bo", Error: agent.Errorf(agent.CodeStale, "pause refused: no")}},
		"own_turns 8 → 10 (progress)":                                 {Type: agent.EventLimitMoved, Moved: &agent.LimitMove{Limit: "own_turns", From: 8, To: 10, Reason: "progress"}},
		"tool_error: the shop is closed":                              {Type: agent.EventLessonLearned, Lesson: &agent.Lesson{Kind: "tool_error", Text: "the shop is closed"}},
		"metadata pdf, ship":                                          {Type: agent.EventSkillMatched, Matched: &agent.SkillMatching{Strategy: "metadata", Candidates: []agent.SkillCandidate{{Name: "pdf"}, {Name: "ship"}}}},
		"metadata none":                                               {Type: agent.EventSkillMatched, Matched: &agent.SkillMatching{Strategy: "metadata"}},
		"pdf matched":                                                 {Type: agent.EventSkillActivated, Skill: &agent.SkillUpdate{Name: "pdf", Cause: "matched"}},
		"pdf: it is gone":                                             {Type: agent.EventSkillFailed, Skill: &agent.SkillUpdate{Name: "pdf", Error: agent.Errorf(agent.CodeNotFound, "it is gone")}},
		"s-1: the operator does not let it continue (denied): no":     {Type: agent.EventOwnerFailed, OwnerFailed: &agent.OwnerFailure{Suspension: "s-1", Owner: agent.OwnerOperator, Code: agent.CodeDenied, Reason: "no"}},
		"the runtime offers 1 more tools now":                         {Type: agent.EventToolsChanged, ToolsChange: &agent.ToolsChange{Tools: []agent.ToolSpec{{Name: "subagent_resume"}}}},
		"pause refused: no":                                           {Type: agent.EventVerbRefused, Refusal: &agent.RefusedVerb{Error: agent.Errorf(agent.CodeStale, "pause refused: no")}},
	} {
		require.Equal(t, want, render.Event("a", e))
	}
}

// A result of a call that was interrupted is shown as partial, in the line of its event and in a transcript.
func TestAPartialResultIsShown(t *testing.T) {
	m := agent.Message{Role: agent.RoleTool, Parts: []agent.Part{
		{Type: agent.PartToolResult, Result: &agent.ToolResult{Call: "t1.1", Tool: "fetch", Status: agent.CallOK, Text: "3 of 7 files"}},
		{Type: agent.PartToolResult, Result: &agent.ToolResult{Call: "t1.2", Tool: "fetch", Status: agent.CallOK, Text: "4 of 7 files", Partial: true}},
	}}
	require.Contains(t, render.Event("a", agent.Event{Type: agent.EventMessage, Message: &m}), "fetch ok: 3 of 7 files fetch ok, partial: 4 of 7 files")
	done := agent.Event{Type: agent.EventCallDone, Call: &agent.CallUpdate{Call: "t1.2", Tool: "fetch", Status: agent.CallOK, Partial: true}}
	require.Equal(t, "t1.2 fetch ok, partial", render.Event("a", done))
	require.Contains(t, told(render.Options{}, turn(1), agent.Event{Type: agent.EventMessage, Message: &m}), "  ok, partial 4 of 7 files\n")
	shown := string(render.Message(m))
	require.Contains(t, shown, "[result t1.1, ok]\n")
	require.Contains(t, shown, "[result t1.2, ok, partial]\n")
}
