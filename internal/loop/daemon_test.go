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
)

// den is a session of a daemon over many runs.
type den struct {
	t     *rapid.T
	state State
	ended State // of the run before
	now   time.Time
	// taken are the events that were accepted, and told those that the model got.
	taken, told []string
}

// Whatever is said to a daemon, and however its runs end, every event that was
// accepted is told to its model once, in order.
func TestADaemonLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := &den{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			d.step(d.draw())
		}
		for range 200 { // it is left alone, and started again where it has ended
			if d.state.idling() && d.state.Status() == agent.Suspended && !(&step{State: d.state}).held() {
				break
			}
			d.step(d.quiet())
		}
		require.Equal(t, agent.Suspended, d.state.Status(), "it idles at last")
		require.Equal(t, d.taken, d.told)
		require.Empty(t, d.state.Inbox(), "nothing is left")
	})
}

func (d *den) step(in Input) {
	before := d.state
	if before.Phase == Ended {
		before = State{}
	}
	d.now = d.now.Add(time.Second)
	next, effects, refusal := Step(before, Moment{At: d.now}, in)
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
		said, _ := in.(Said)
		if ack, ok := e.(Acknowledge); ok && ack.Ack.Effect == agent.Accepted && said.Command.Verb() == agent.Emit && !slices.Contains(d.taken, said.ID) {
			d.taken = append(d.taken, said.ID)
		}
	}
	if slices.Contains(effects, Effect(CarryOver{})) {
		next, _, refusal = Step(next, Moment{At: d.now}, Continued{})
		require.NoError(d.t, refusal)
	}
	if d.state = next; next.Phase == Ended && !before.Unwritten() {
		d.ended = exported(d.t, next) // as the next run finds it
	}
}

// quiet is what happens to a daemon to which nobody speaks any more.
func (d *den) quiet() Input {
	s := d.state
	switch {
	case s.Phase == New, s.Phase == Ended:
		return Begin{Session: "s", Run: fmt.Sprintf("r%d", len(d.told)), Start: agent.Start{Agent: "a"}}
	case s.Phase == Opening:
		spec := &agent.Spec{V: 1, Definition: agent.Definition{Name: "a", Model: "m", Daemon: &agent.Daemon{Queue: 3, Compact: rapid.Bool().Draw(d.t, "compact")}}}
		spec.Limits.Turns = 3
		spec.Definition, spec.Toolset = spec.Definition.WithDefaults(), []agent.ToolSpec{{Name: "add"}}
		return Opened{Spec: spec, Head: "old", Seq: d.ended.Log.Seq, Posts: d.ended.Remembered(true), Inbox: d.ended.Inbox(), Numbers: d.ended.Numbers}
	case s.Log.Sealing > 0:
		return Sealed{Head: "h", Seq: s.Log.Sealing}
	case s.Phase == Asking, s.Phase == Summing:
		return Replied{Ask: s.Ask, Reply: agent.Reply{Finish: agent.FinishStop, Parts: []agent.Part{{Type: agent.PartText, Text: "done"}}}}
	case s.Phase == Working:
		i := slices.IndexFunc(s.Calls, func(c Call) bool { return c.State == Active })
		return Returned{Result: agent.ToolResult{Call: s.Calls[max(i, 0)].ID, Tool: "add", Status: agent.CallOK, Text: "1"}}
	case s.Phase == Folding:
		return Folded{}
	case len(s.Holds) > 0:
		return Said{Command: agent.ResumeOrder{}}
	}
	return Tick{}
}

func (d *den) draw() Input {
	id := fmt.Sprintf("e%d", rapid.IntRange(0, len(d.taken)+1).Draw(d.t, "event"))
	return rapid.SampledFrom([]Input{
		d.quiet(), d.quiet(), d.quiet(), d.quiet(),
		Said{Command: agent.EmitOrder{Topic: "t", Payload: json.RawMessage("1")}, ID: id},
		Said{Command: agent.EmitOrder{Topic: "t"}, ID: id},
		Said{Command: agent.SendOrder{Text: "x", Mode: agent.SendQueue}}, Said{Command: agent.SendOrder{Text: "x", Mode: agent.SendInterrupt}},
		Said{Command: agent.PauseOrder{}}, Said{Command: agent.InterruptOrder{}}, Said{Command: agent.ResumeOrder{Fresh: true}},
		Said{Command: agent.StopOrder{}}, Said{Command: agent.CancelOrder{}},
		ModelFailed{Ask: d.state.Ask, Err: agent.Errorf(agent.ProviderError, "no")},
		Replied{Ask: d.state.Ask, Reply: agent.Reply{Finish: agent.FinishHeld}},
		Replied{Ask: d.state.Ask, Reply: agent.Reply{Finish: agent.FinishCalls, Parts: []agent.Part{{Type: agent.PartCall, Call: &agent.ToolCall{Tool: "add", Arguments: json.RawMessage("{}")}}}}},
		Cut{Reason: agent.ReasonTerminated},
	}).Draw(d.t, "input")
}
