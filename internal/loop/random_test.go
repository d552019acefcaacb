package loop

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fermata-agents/fermata/agent"
)

// Whatever comes, in whatever order, the invariants hold, a refusal changes
// nothing, and an old state is not touched by what follows it.
func TestAnySequenceOfInputs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		s, _, err := Step(State{}, Moment{At: now}, Begin{Session: "s", Run: "r", Start: agent.Start{Agent: "a", Input: agent.Input{Text: "go"}}})
		require.NoError(t, err)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "seconds")) * time.Second)
			in := drawInput(t, s)
			before, err := json.Marshal(s)
			require.NoError(t, err)
			next, effects, refusal := Step(s, Moment{At: now, Full: rapid.Bool().Draw(t, "full")}, in)
			after, err := json.Marshal(s)
			require.NoError(t, err)
			require.JSONEq(t, string(before), string(after), "Step changed the state that it was given")
			if refusal != nil {
				require.Equal(t, s, next)
				continue
			}
			checkInvariants(t, s, next, effects)
			if slices.Contains(effects, Effect(CarryOver{})) {
				next, _, err = Step(next, Moment{At: now}, Continued{})
				require.NoError(t, err)
			}
			if s = next; s.Phase == Ended {
				return
			}
		}
	})
}

// drawInput makes inputs that fit the phase, and now and then one that does not.
func drawInput(t *rapid.T, s State) Input {
	fitting := map[Phase][]string{
		Opening: {"opened", "not-opened"}, Asking: {"says", "calls", "calls", "length", "fails"}, Working: {"result"},
	}[s.Phase]
	if s.Log.Sealing > 0 {
		fitting = append(fitting, "sealed", "sealed", "not-sealed")
	}
	if len(fitting) == 0 || rapid.IntRange(0, 9).Draw(t, "stray") == 0 {
		fitting = []string{"opened", "says", "calls", "result", "sealed", "time-up", "cancel", "fails"}
	}
	switch rapid.SampledFrom(fitting).Draw(t, "input") {
	case "opened":
		return Opened{Spec: drawSpec(t)}
	case "not-opened":
		return Opened{Err: agent.Errorf(agent.UnknownAgent, "no")}
	case "says":
		text := strings.Repeat("x", rapid.SampledFrom([]int{0, 5, 300_000}).Draw(t, "size"))
		return Replied{Reply: agent.Reply{Finish: agent.FinishStop, Usage: tokens(), Parts: []agent.Part{{Type: agent.PartText, Text: text}}}}
	case "length":
		return Replied{Reply: agent.Reply{Finish: agent.FinishLength}}
	case "calls":
		return Replied{Reply: agent.Reply{Finish: agent.FinishCalls, Usage: tokens(), Parts: drawCalls(t)}}
	case "fails":
		return ModelFailed{Err: agent.Errorf(agent.ProviderError, "no")}
	case "result":
		return Returned{Result: drawResult(t, s)}
	case "sealed":
		return Sealed{Head: "h", Seq: s.Log.Sealing}
	case "not-sealed":
		return SealFailed{Err: agent.Errorf(agent.StoreUnavailable, "no")}
	case "time-up":
		return TimeUp{}
	}
	return Cancel{}
}

func drawSpec(t *rapid.T) *agent.Spec {
	spec := &agent.Spec{V: 1, Definition: agent.Definition{Name: "a", Model: "m", ParallelTools: rapid.IntRange(1, 3).Draw(t, "parallel")}}
	spec.Limits.Turns = rapid.IntRange(1, 9).Draw(t, "turns")
	if rapid.Bool().Draw(t, "finish") {
		spec.Completion = agent.CompleteTool
	}
	if rapid.Bool().Draw(t, "require") {
		spec.Require = []agent.OneOf{{"add"}}
	}
	spec.Definition = spec.Definition.WithDefaults()
	spec.Toolset = []agent.ToolSpec{{Name: "add"}, {Name: "sub"}}
	return spec
}

func drawCalls(t *rapid.T) (parts []agent.Part) {
	for range rapid.IntRange(1, 4).Draw(t, "calls") {
		call := &agent.ToolCall{Tool: rapid.SampledFrom([]string{"add", "sub", "nope", agent.FinishTool}).Draw(t, "tool")}
		if rapid.IntRange(0, 4).Draw(t, "malformed") == 0 {
			call.Malformed = "{"
		} else {
			call.Arguments = json.RawMessage(fmt.Sprintf(`{"a":%d}`, rapid.IntRange(0, 1).Draw(t, "argument")))
		}
		parts = append(parts, agent.Part{Type: agent.PartCall, Call: call})
	}
	return parts
}

func drawResult(t *rapid.T, s State) agent.ToolResult {
	id := agent.CallID(s.Turn, rapid.IntRange(1, 4).Draw(t, "call"))
	status := rapid.SampledFrom([]agent.CallStatus{agent.CallOK, agent.CallFailed, agent.CallUnknown}).Draw(t, "status")
	return agent.ToolResult{Call: id, Tool: "add", Status: status, Text: "r"}
}
