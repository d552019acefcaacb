package loop

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// A request counts the default that its deadline decides, and so does the event of that.
func TestDefaultsOfDeadlinesCount(t *testing.T) {
	def := agent.Definition{Name: "a", Model: "m", Tools: []string{agent.AskUserTool}, AnswerTimeouts: agent.AnswerTimeouts{Deadline: agent.Duration(time.Hour), Default: strings.Repeat("<", 4<<10)}}
	d := newDrive(t, agent.Spec{Definition: def.WithDefaults()})
	calls := make([]agent.ToolCall, 64)
	for i := range calls {
		calls[i] = agent.ToolCall{ID: fmt.Sprintf("t1.%d", i+1), Tool: agent.AskUserTool, Arguments: json.RawMessage(fmt.Sprintf(`{"question":"%d?"}`, i))}
	}
	d.asks(calls...)
	require.Less(t, len(d.state.Requests.Open), len(calls), "more has no space")
	require.LessOrEqual(t, written(d.state.Requests.Open), d.state.Requests.size())
	said := agent.Event{Type: agent.EventRequestExpired, Answer: &agent.Answered{Request: "q-1", Decision: def.AnswerTimeouts.Default}}
	n, _ := lineJSONLen(said)
	require.LessOrEqual(t, written(said), n)
	def.AnswerTimeouts.Default += "<"
	require.ErrorIs(t, def.Check(), agent.CodeInvalidInput)
}

// The event of a suspension counts what the steps of a flow wait for.
func TestASuspensionCountsWhatStepsWaitFor(t *testing.T) {
	wait := agent.StepWait{Step: strings.Repeat("w", 200), Conditions: agent.Conditions{Any: []agent.Condition{{Event: &agent.EventCondition{Topic: "t", Match: json.RawMessage(`{"description":"` + strings.Repeat("<", 2000) + `"}`)}}}}}
	e := agent.Event{Type: agent.EventRunSuspended, Suspension: &agent.Suspension{Waits: []agent.StepWait{wait, wait}, OwnerFailed: &agent.OwnerFailure{Reason: strings.Repeat("<", 80)}}}
	n, _ := lineJSONLen(e)
	require.LessOrEqual(t, written(e), n)
}

// A remark of an agent's own words has space in its call, pending and done.
func TestARemarkHasSpaceInItsCall(t *testing.T) {
	c := Calls{List: []Call{{ToolCall: agent.ToolCall{ID: "t1000.128", Tool: strings.Repeat("t", 64), Arguments: json.RawMessage(`{}`)}, State: CallAwaitingAnswer, Request: "q-1000", Since: time.Now()}}}
	c.remark(0, strings.Repeat("<", 512))
	c.measure(0)
	require.LessOrEqual(t, written(c.List[0]), c.List[0].Size)
	c.List[0].State = CallRunning
	c.finish(0, agent.ToolResult{Call: "t1000.128", Tool: "add", Status: agent.CallOK, Text: strings.Repeat("x", 5000)}, 5000, 4000, 100_000)
	require.LessOrEqual(t, written(c.List[0]), c.List[0].Size)
	require.Contains(t, c.List[0].Result.Text, "<<<")
}

// A correction counts by the longest text that may stand in it, and not by the runtime's sentence.
func TestACorrectionCountsNoSentence(t *testing.T) {
	var short, long Recovery
	short.setNote("That did not work.", 1000)
	long.setNote("That did not work: take a smaller step, or another way.", 1000)
	require.Equal(t, short.NoteBytes, long.NoteBytes)
}

// An import whose state is too long beside what may come to wait in it is refused before anything changes.
func TestAnImportThatCouldNotBeCarriedOverIsRefused(t *testing.T) {
	d := newDrive(t, agent.Spec{Definition: agent.Definition{Name: "a", Model: "m"}})
	require.NoError(t, d.state.CheckLength())
	s := d.state
	s.Turn.Text = strings.Repeat("<", (maxState-waitShare)/6)
	require.ErrorIs(t, s.CheckLength(), agent.CodeTooLarge)
	// What is hidden in something that waits is found, too.
	many := strings.Repeat("x", maxState)
	for _, hide := range []func(*State){
		func(s *State) {
			s.Requests.Open[0].Call = &agent.RequestCall{Arguments: json.RawMessage(`"` + many + `"`)}
		},
		func(s *State) { s.Requests.Open[0].Digest = many },
		func(s *State) { s.Calls.List[0].Tool = many },
		func(s *State) { s.Flow.StateChanges = map[string]json.RawMessage{many: nil} },
	} {
		d := newDrive(t, agent.Spec{Definition: agent.Definition{Name: "a", Model: "m", Tools: []string{agent.AskUserTool}}})
		d.asks(agent.ToolCall{ID: "t1.1", Tool: agent.AskUserTool, Arguments: json.RawMessage(`{"question":"Which?"}`)})
		require.NoError(t, d.state.CheckLength())
		hide(&d.state)
		require.ErrorIs(t, d.state.CheckLength(), agent.CodeTooLarge)
	}
	require.NoError(t, stuff(t).state.CheckLength(), "a full one is taken")
}
