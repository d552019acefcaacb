package loop

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// den is a session of a daemon over many runs.
type den struct {
	t     *rapid.T
	state State
	ended State // of the run before
	now   time.Time
	full  bool // its history is long
	near  bool // and nearly full
	// taken are the events that were accepted, and told those that the model got.
	taken, told []string
}

// Whatever is said to a daemon, and however its runs end, every event that was
// accepted is told to its model once, in order.
func TestADaemonLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := &den{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			d.full = d.full || rapid.IntRange(0, 9).Draw(t, "long-history") == 0
			d.near = d.full && (d.near || rapid.IntRange(0, 9).Draw(t, "near") == 0)
			d.step(d.draw())
		}
		for range 200 { // it is left alone, and started again where it has ended
			if d.state.idling() && d.state.Status() == agent.StatusSuspended && !d.state.Holds.any() {
				break
			}
			d.step(d.quiet())
		}
		require.Equal(t, agent.StatusSuspended, d.state.Status(), "it idles at last")
		require.Equal(t, d.taken, d.told)
		require.Empty(t, d.state.Backlog(), "nothing is left")
	})
}

func (d *den) step(in Input) {
	before := d.state
	if before.Phase == RunEnded {
		before = State{}
	}
	d.now = d.now.Add(time.Second)
	if _, ok := in.(TimerFired); ok && before.NextTimer.After(d.now) {
		d.now = before.NextTimer
	}
	next, effects, refusal := Step(before, Moment{At: d.now, ContinueAsNewSuggested: d.full, NearHistoryLimit: d.near}, in)
	if refusal != nil {
		return
	}
	checkInvariants(d.t, before, next, effects)
	for _, e := range newEvents(before, next) {
		if e.Message != nil && e.Message.Note == agent.NoteEvent {
			d.told = append(d.told, e.Message.ID)
		}
	}
	for _, e := range effects {
		said, _ := in.(CommandReceived)
		if ack, ok := e.(Acknowledge); ok && ack.Ack.Effect == agent.EffectAccepted && said.Command.Verb() == agent.VerbEmit && !slices.Contains(d.taken, said.ID) {
			d.taken = append(d.taken, said.ID)
		}
	}
	if d.state = next; next.Phase == RunEnded && !before.HasNoLog() {
		d.ended = exported(d.t, next) // as the next run finds it
	}
	if slices.ContainsFunc(effects, func(e Effect) bool { _, ok := e.(ContinueAsNew); return ok }) {
		raw, err := json.Marshal(next)
		require.NoError(d.t, err)
		d.state, d.full, d.near = State{}, false, false
		require.NoError(d.t, json.Unmarshal(raw, &d.state))
		d.step(Continued{})
	}
}

// spec is what a run of the daemon is made of.
func (d *den) spec() *agent.Spec {
	daemon := &agent.Daemon{Queue: 3, Compact: rapid.Bool().Draw(d.t, "compact")}
	if rapid.Bool().Draw(d.t, "every") {
		daemon.Every, daemon.Watchdog = agent.Duration(time.Minute), rapid.IntRange(0, 2).Draw(d.t, "watchdog")
	}
	spec := &agent.Spec{V: 1, Definition: agent.Definition{Name: "a", Model: "m", Daemon: daemon, Tools: []string{agent.AwaitResumptionTool}}}
	if rapid.Bool().Draw(d.t, "finish") {
		spec.Completion = agent.CompletionTool
	}
	spec.Limits.Turns = 3
	spec.Definition, spec.Toolset = spec.Definition.WithDefaults(), []agent.ToolSpec{{Name: "add"}}
	return spec
}

// calls is a reply that calls tools, the last of them with arguments of its own.
func (d *den) calls(tools ...string) Input {
	in := ModelReplied{AskSeq: d.state.Turn.AskSeq, Reply: wire.Reply{Finish: agent.FinishToolCalls}}
	for _, tool := range tools {
		call := &agent.ToolCall{Tool: tool, Arguments: json.RawMessage(`{"reason":"why"}`)}
		in.Reply.Parts = append(in.Reply.Parts, agent.Part{Type: agent.PartToolCall, Call: call})
	}
	c := agent.Conditions{Any: []agent.Condition{{Event: &agent.EventCondition{Topic: "t"}}, {After: agent.Duration(time.Hour)}}}
	in.Reply.ParkRequests = []wire.ParkRequest{{Reason: "why", Conditions: c}}
	return in
}

// quiet is what happens to a daemon to which nobody speaks any more.
func (d *den) quiet() Input {
	s := d.state
	switch {
	case s.Phase == RunNew, s.Phase == RunEnded:
		return Begin{Session: "s", Run: fmt.Sprintf("r%d", len(d.told)), Start: agent.Start{Agent: "a"}}
	case s.Phase == RunOpening:
		return Opened{Spec: d.spec(), Head: "old", Seq: d.ended.Log.Seq, Receipts: d.ended.Receipts(true), Backlog: d.ended.Backlog(), Counters: d.ended.Counters}
	case s.Log.SealingSeq > 0:
		return Sealed{Head: "h", Seq: s.Log.SealingSeq}
	case s.Turn.Phase == TurnAsking && s.Spec.Completion == agent.CompletionTool:
		return d.calls(agent.FinishTool)
	case s.Turn.Phase == TurnAsking, s.Turn.Phase == TurnSummarizing:
		return ModelReplied{AskSeq: s.Turn.AskSeq, Reply: wire.Reply{Finish: agent.FinishStop, Parts: []agent.Part{{Type: agent.PartText, Text: "done"}}}}
	case s.Calls.runningCount() > 0:
		i := slices.IndexFunc(s.Calls.List, func(c Call) bool { return c.State == CallRunning })
		return ToolReturned{Result: agent.ToolResult{Call: s.Calls.List[i].ID, Tool: "add", Status: agent.CallOK, Text: "1"}}
	case s.Phase == RunHandingOff:
		return HandoffMade{}
	case len(s.Holds.List) > 0:
		return CommandReceived{Command: agent.ResumeCommand{}}
	}
	return TimerFired{}
}

func (d *den) draw() Input {
	id := fmt.Sprintf("e%d", rapid.IntRange(0, len(d.taken)+1).Draw(d.t, "event"))
	return rapid.SampledFrom([]Input{
		d.quiet(), d.quiet(), d.quiet(), d.quiet(),
		CommandReceived{Command: agent.EmitCommand{Topic: "t", Payload: json.RawMessage("1")}, ID: id},
		CommandReceived{Command: agent.EmitCommand{Topic: "t"}, ID: id},
		d.calls("add", agent.FinishTool), d.calls("add", agent.AwaitResumptionTool), d.calls(agent.AwaitResumptionTool), TimerFired{},
		SealFailed{Err: agent.Errorf(agent.CodeStoreUnavailable, "no")},
		CommandReceived{Command: agent.SendCommand{Text: "x", Mode: agent.SendQueue}}, CommandReceived{Command: agent.SendCommand{Text: "x", Mode: agent.SendInterrupt}},
		CommandReceived{Command: agent.PauseCommand{}}, CommandReceived{Command: agent.InterruptCommand{}}, CommandReceived{Command: agent.ResumeCommand{FromSummary: true}},
		CommandReceived{Command: agent.StopCommand{}}, CommandReceived{Command: agent.CancelCommand{}},
		ModelFailed{AskSeq: d.state.Turn.AskSeq, Err: agent.Errorf(agent.CodeProviderError, "no")},
		ModelReplied{AskSeq: d.state.Turn.AskSeq, Reply: wire.Reply{Finish: wire.FinishHeld}},
		d.calls("add"),
		Terminated{Reason: agent.ReasonTerminated},
	}).Draw(d.t, "input")
}

// A daemon is due until it has dealt with what there was, and its watchdog counts wakes in a
// row that were for nothing.
func TestADaemonAlone(t *testing.T) {
	d := Daemon{}
	d.markWork()
	d.keepWorkIf(true)
	require.True(t, d.HasWork)
	d.keepWorkIf(false)
	d.keepWorkIf(true)
	require.False(t, d.HasWork)
	d.setIdleWakes(3)
	require.Equal(t, []bool{true, false, false}, []bool{d.watchdogExpired(3), d.watchdogExpired(4), d.watchdogExpired(0)})
	d.acted()
	require.False(t, d.watchdogExpired(3))
}
