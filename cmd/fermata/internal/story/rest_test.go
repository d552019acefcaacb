package story_test

import (
	"encoding/json"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/outside"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/story"
)

func TestRests(t *testing.T) {
	pay := &agent.Request{ID: "q-7", Type: agent.Approval, Text: "Run pay?", Call: &agent.RequestCall{Tool: "pay", Arguments: json.RawMessage(`{"eur":800}`)}}
	child := &agent.ChildNote{Session: "s/pay-1", Agent: "pay", Status: agent.Failed, Reason: "refusal"}
	tests := []struct {
		e    agent.Event
		want string
	}{
		{agent.Event{Type: agent.HoldLaid, Hold: &agent.Hold{From: agent.HoldOwn, Verb: agent.Interrupt, By: "ana", Reason: "the client rings"}}, "held by ana (interrupt): the client rings"},
		{agent.Event{Type: agent.HoldLaid, Hold: &agent.Hold{From: agent.HoldInherited, Session: "s", Verb: agent.Pause}}, "held with s (pause)"},
		{agent.Event{Type: agent.HoldLifted, Hold: &agent.Hold{From: agent.HoldOwn, Verb: agent.Pause}}, "no more held (pause)"},
		{agent.Event{Type: agent.RunSuspended, Suspension: &agent.Suspension{ID: "s-1", Kind: agent.InputRequired, Requests: []agent.Request{*pay}}}, "suspended (s-1): waits for the answer to q-7"},
		{agent.Event{Type: agent.RunSuspended, Suspension: &agent.Suspension{ID: "s-1", Kind: agent.Paused, Held: []agent.Hold{{Verb: agent.Pause}}}}, "suspended (s-1): held (pause)"},
		{agent.Event{Type: agent.RunSuspended, Suspension: &agent.Suspension{ID: "s-1", Kind: agent.WaitingFor, Reason: "not paid", Conditions: &agent.Conditions{
			After: agent.Duration(time.Hour), Any: []agent.Condition{{Event: &agent.EventCondition{Topic: "paid"}}}}}}, "suspended (s-1): waits for paid, or for 1h: not paid"},
		{agent.Event{Type: agent.RunSuspended, Suspension: &agent.Suspension{ID: "s-1", Kind: agent.WaitingFor}}, "suspended (s-1): waits until somebody resumes it"},
		{agent.Event{Type: agent.RunSuspended, Suspension: &agent.Suspension{ID: "s-1", Kind: agent.AwaitingChildren}}, "suspended (s-1): waits for the agents below it"},
		{agent.Event{Type: agent.RunResumed, Resumed: &agent.Resumed{Suspension: "s-1", Cause: agent.ByOperator, By: "ana", Fresh: true}}, "goes on (s-1, operator ana, from a summary)"},
		{agent.Event{Type: agent.RunResumed, Resumed: &agent.Resumed{Suspension: "s-1", Cause: agent.ByTriggered, Event: "paid", Renewed: true}}, "goes on (s-1, triggered paid, limits count anew)"},
		{agent.Event{Type: agent.RunStopped, Outcome: &agent.Outcome{Handoff: &agent.Handoff{SummarisedBy: agent.ByModel, Children: []agent.Handoff{{}}}}}, "handed over: the work of 2 agents, summed up by model"},
		{agent.Event{Type: agent.RequestOpened, Request: pay}, "q-7, approval: Run pay? (pay eur=800)"},
		{agent.Event{Type: agent.RequestAnswered, Answer: &agent.Answered{Request: "q-7", Decision: "approve", By: "x", Approver: "ana", Edited: true, Reason: "less"}}, "q-7 approved by ana, with other arguments: less"},
		{agent.Event{Type: agent.RequestExpired, Answer: &agent.Answered{Request: "q-7", Decision: "reject"}}, "q-7 was decided by its deadline: reject"},
		{agent.Event{Type: agent.RequestExpired, Answer: &agent.Answered{Request: "q-7"}}, "q-7 was decided by its deadline"},
		{agent.Event{Type: agent.RequestReminded, Answer: &agent.Answered{Request: "q-7"}}, "q-7 waits still"},
		{agent.Event{Type: agent.ChildStarted, Child: child}, "s/pay-1 (pay) begins"},
		{agent.Event{Type: agent.ChildSuspended, Child: child}, "s/pay-1 (pay) rests"},
		{agent.Event{Type: agent.ChildResumed, Child: child}, "s/pay-1 (pay) goes on"},
		{agent.Event{Type: agent.ChildEnded, Child: child}, "s/pay-1 (pay) is failed: refusal"},
		{agent.Event{Type: agent.Compacted}, "the model goes on from a summary of what was said before"},
		{agent.Event{Type: agent.LimitExtended, Extended: agent.LimitTurns}, "limit_turns is renewed"},
		{agent.Event{Type: agent.VerbRefused, Refusal: &agent.RefusedVerb{Error: agent.Errorf(agent.InvalidInput, "interupt refused: no")}}, "interupt refused: no"},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want+"\n", told(story.Options{}, tt.e))
	}
	require.Equal(t, "", told(story.Options{}, agent.Event{Type: "some.thing"}))
	m := agent.TextMessage(agent.RoleUser, "And the tests?")
	require.Equal(t, "", told(story.Options{}, agent.Event{Type: agent.Said, Message: &m}), "the task")
	require.Equal(t, "(said) And the tests?\n", told(story.Options{}, turn(1), agent.Event{Type: agent.Said, Message: &m}))
}

func TestSuspendedOutcome(t *testing.T) {
	o := &agent.Outcome{Status: agent.Suspended, Turns: 2, Suspension: &agent.Suspension{ID: "s-3", Kind: agent.Paused, Held: []agent.Hold{{Verb: agent.Pause, By: "ana"}}}}
	require.Equal(t, "suspended (s-3): held by ana (pause) · 2 turns · 0 tokens in, 0 out\n", told(story.Options{}, o))
}

func TestDeadline(t *testing.T) {
	q := agent.Request{Type: agent.Question, Deadline: time.Date(2020, 11, 21, 8, 0, 0, 0, time.Local)}
	require.Equal(t, " · at 2020-11-21 08:00:00: nobody answered", story.Deadline(q))
	q.Type = agent.LimitAsk
	require.Equal(t, " · at 2020-11-21 08:00:00: stop", story.Deadline(q))
	q.Type = agent.Approval
	require.Equal(t, " · at 2020-11-21 08:00:00: reject", story.Deadline(q))
	q.Default = agent.DefaultApprove
	require.Equal(t, " · at 2020-11-21 08:00:00: approve", story.Deadline(q))
}

// A terminal of any width shows something.
func TestLineOfAnyWidth(t *testing.T) {
	for width := -2; width < 4; width++ {
		require.NotEmpty(t, outside.Line("some words", width))
		story.New(io.Discard, story.Options{Width: width}).Event(agent.Event{Type: agent.Said, Message: &agent.Message{Role: agent.RoleUser, Note: "n", Parts: []agent.Part{{Text: "some words"}}}})
	}
}
