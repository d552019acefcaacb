package loop

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// drive is a run that the test leads from turn to turn.
type drive struct {
	t          *testing.T
	state      State
	nearlyFull bool
}

func newDrive(t *testing.T, spec agent.Spec) *drive {
	t.Helper()
	d := &drive{t: t}
	d.step(Begin{Session: "s", Run: "r", Start: agent.Start{Agent: "a", Input: agent.Input{Text: "go"}}})
	spec.Definition = spec.WithDefaults()
	spec.Limits.OwnTurns = 100
	d.step(Opened{Spec: &spec})
	return d
}

func (d *drive) step(in Input) []Effect {
	d.t.Helper()
	next, effects, err := Step(d.state, Moment{Revision: Revision, At: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), ContinueAsNewSuggested: d.nearlyFull, NearHistoryLimit: d.nearlyFull}, in)
	require.NoError(d.t, err)
	checkInvariants(d.t, d.state, next, effects)
	d.state = next
	return effects
}

// asks lets the model ask for calls.
func (d *drive) asks(calls ...agent.ToolCall) {
	d.t.Helper()
	r := wire.Reply{Finish: agent.FinishToolCalls}
	for _, c := range calls {
		r.Parts = append(r.Parts, agent.Part{Type: agent.PartToolCall, Call: &c})
	}
	d.step(ModelReplied{AskSeq: d.state.Turn.AskSeq, Reply: r})
}

func (d *drive) says(text string, output json.RawMessage) {
	d.t.Helper()
	d.step(ModelReplied{AskSeq: d.state.Turn.AskSeq, Reply: wire.Reply{Finish: agent.FinishStop, Output: output, Parts: []agent.Part{{Type: agent.PartText, Text: text}}}})
}

// said is the last message of the log's open part.
func (d *drive) said() (last *agent.Message) {
	for _, e := range d.state.Log.Tail {
		if e.Message != nil {
			last = e.Message
		}
	}
	return last
}

// A run has so many agents at work and no more; when some have ended it may have
// others.
func TestNoMoreChildren(t *testing.T) {
	d := newDrive(t, agent.Spec{Definition: agent.Definition{Name: "a", Agents: []agent.SubAgent{{Agent: "b"}}, Lifecycle: true}})
	n := 0
	give := func(asked int) (refused int) {
		var calls []agent.ToolCall
		for range asked {
			n++
			calls = append(calls, agent.ToolCall{Tool: "subagent__b", Arguments: json.RawMessage(fmt.Sprintf(`{"task":"%d","background":true}`, n))})
		}
		before := d.state.Children.countNotEnded()
		d.asks(calls...)
		for _, c := range d.state.Children.List[before:] {
			d.step(ChildStarted{Session: c.Session, Run: "x"})
		}
		for _, p := range d.said().Parts {
			if p.Result.Status == agent.CallRejected {
				require.Contains(t, p.Result.Text, "256 agents work for you already")
				refused++
			}
		}
		return refused
	}
	for range maxWorking / maxCalls {
		require.Zero(t, give(maxCalls))
	}
	require.Equal(t, 3, give(3))
	d.step(ChildEnded{Session: "s/b-1", Outcome: &agent.Outcome{Session: "s/b-1", Status: agent.StatusCompleted}})
	require.Equal(t, maxWorking-1, d.state.Children.countNotEnded())
}

// Names that a model invents do not fill checkpoints and outcomes.
func TestInventedToolsAreCountedTogether(t *testing.T) {
	d := newDrive(t, agent.Spec{Definition: agent.Definition{Name: "a", Tools: []string{"echo"}}, Toolset: []agent.ToolSpec{{Name: "echo"}}})
	for turn := range 10 {
		var calls []agent.ToolCall
		for i := range 60 {
			calls = append(calls, agent.ToolCall{Tool: fmt.Sprintf("invented_%d_%d", turn, i), Arguments: json.RawMessage("{}")})
		}
		d.asks(calls...)
	}
	require.Len(t, d.state.Calls.Counts, maxCounted+1)
	require.Equal(t, agent.ToolCount{Tool: otherTools, Calls: 600 - maxCounted, Rejected: 600 - maxCounted}, d.state.Calls.Counts[maxCounted])
	d.asks(agent.ToolCall{Tool: "echo", Arguments: json.RawMessage("{}")})
	d.step(ToolReturned{Result: agent.ToolResult{Call: d.state.Calls.List[0].ID, Tool: "echo", Status: agent.CallOK}})
	require.Equal(t, agent.ToolCount{Tool: "echo", Calls: 1, OK: 1}, d.state.Calls.Counts[maxCounted+1])
}

// What the calls of a turn set fits into one event; what does not is told.
func TestATurnSetsSoMuch(t *testing.T) {
	d := newDrive(t, agent.Spec{Definition: agent.Definition{Name: "a", Tools: []string{"echo"}}, Toolset: []agent.ToolSpec{{Name: "echo"}}})
	var calls []agent.ToolCall
	for i := range 6 {
		calls = append(calls, agent.ToolCall{Tool: "echo", Arguments: json.RawMessage(fmt.Sprintf(`{"n":%d}`, i))})
	}
	d.asks(calls...)
	long := json.RawMessage(`"` + strings.Repeat("x", 60<<10) + `"`)
	for i, c := range d.state.Calls.List {
		d.step(ToolReturned{Result: agent.ToolResult{Call: c.ID, Tool: "echo", Status: agent.CallOK, Text: "ok"}, StateChanges: map[string]json.RawMessage{fmt.Sprint("k", i): long}})
	}
	kept := 0
	for _, e := range d.state.Log.Tail {
		if e.Snapshot != nil {
			kept += len(e.Snapshot.StateChanges)
		}
	}
	require.Equal(t, 4, kept)
	results := d.said().Parts
	require.Equal(t, "ok", results[3].Result.Text)
	require.Contains(t, results[4].Result.Text, "what the call set was not kept")
}

// A run whose history is nearly full gives up what it is at, and continues in a new
// execution: the server would end it.
func TestAHistoryThatIsNearlyFull(t *testing.T) {
	for name, begin := range map[string]func(*drive){
		"the model is asked": func(*drive) {},
		"a tool works": func(d *drive) {
			d.asks(agent.ToolCall{Tool: "echo", Arguments: json.RawMessage("{}")})
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDrive(t, agent.Spec{Definition: agent.Definition{Name: "a", Tools: []string{"echo"}}, Toolset: []agent.ToolSpec{{Name: "echo"}}})
			begin(d)
			d.nearlyFull = true
			effects := d.step(CommandReceived{Command: agent.SendCommand{Text: "and"}})
			require.Contains(t, effects, Effect(CancelInFlight{}))
			if d.state.Turn.Phase == TurnAsking {
				d.step(ModelReplied{AskSeq: d.state.Turn.AskSeq, Reply: wire.Reply{Finish: wire.FinishHeld}})
			} else {
				d.step(ToolReturned{Result: agent.ToolResult{Call: d.state.Calls.List[0].ID, Tool: "echo", Status: agent.CallFailed, Text: "The tool was interrupted"}})
			}
			require.Equal(t, RunContinuing, d.state.Phase)
			require.Contains(t, d.step(Sealed{Head: "h", Seq: d.state.Log.SealingSeq}), Effect(ContinueAsNew{}))
			d.nearlyFull = false
			d.step(Continued{})
			require.Equal(t, TurnAsking, d.state.Turn.Phase)
			require.Equal(t, "and", d.said().Text())
		})
	}
}

// A run below another tells it no more than that one's model will read.
func TestAChildsAnswerIsCut(t *testing.T) {
	d := &drive{t: t}
	d.step(Begin{Session: "s/b-1", Run: "r", Start: agent.Start{Agent: "b", Input: agent.Input{Text: "go"}}, ChildStart: &wire.ChildStart{Parent: wire.Parent{Session: "s", Run: "p"}, Depth: 1}})
	spec := agent.Spec{Definition: agent.Definition{Name: "b"}.WithDefaults()}
	d.step(Opened{Spec: &spec})
	d.says(strings.Repeat("x", 1<<20), nil)
	require.Contains(t, d.state.End.Outcome.Text, "[cut here: the result has 1048576 bytes, the first 262144 are shown]")
	require.Len(t, d.said().Text(), 1<<20)
}

// All that a call was answered with is handed to it each time, so there is an end to it.
func TestAnswersToACallAreBounded(t *testing.T) {
	d := newDrive(t, agent.Spec{Definition: agent.Definition{Name: "a", Model: "m"}, Toolset: []agent.ToolSpec{{Name: "paint"}}})
	d.asks(agent.ToolCall{ID: "t1.1", Tool: "paint", Arguments: json.RawMessage(`{}`)})
	text := strings.Repeat("x", maxAnswers/2+1)
	quarter := json.RawMessage(`"` + text[:maxAnswers/4] + `"`) // it counts twice: it is a text, too
	ask := func() string {
		d.step(ToolReturned{Result: agent.ToolResult{Call: "t1.1", Tool: "paint", Status: agent.CallOK}, Question: &agent.ToolQuestion{Text: "Which?"}})
		return d.state.Requests.Open[0].ID
	}
	d.step(CommandReceived{Command: agent.AnswerCommand{Request: ask(), Data: quarter}})
	request := ask()
	for path, long := range map[string]agent.Command{
		"data": agent.AnswerCommand{Request: request, Data: quarter}, "text": agent.AnswerCommand{Request: request, Text: text}, "reason": agent.RejectCommand{Request: request, Reason: text},
	} {
		_, _, err := Step(d.state, Moment{}, CommandReceived{Command: long})
		require.ErrorIs(t, err, agent.CodeTooLarge)
		require.ErrorContains(t, err, "the answers to what call t1.1 asks would have")
		var refused *agent.Error
		require.ErrorAs(t, err, &refused)
		require.Equal(t, path, refused.Path)
	}
	d.step(CommandReceived{Command: agent.AnswerCommand{Request: request, Text: "red"}})
	require.Len(t, d.state.Calls.List[0].Answers, 2)
}
