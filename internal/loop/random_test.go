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
// nothing, and an old state is not touched by what follows it (PA-10, PA-94).
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
			if s.Portable() == nil && rapid.IntRange(0, 3).Draw(t, "moves") == 0 {
				s = move(t, s, now)
			}
		}
	})
}

// drawInput makes inputs that fit the phase, and now and then one that does not.
func drawInput(t *rapid.T, s State) Input {
	fitting := map[Phase][]string{
		Opening: {"opened", "opened", "not-opened"}, Locating: {"located"}, Asking: {"says", "calls", "calls", "length", "fails", "held", "full"}, Working: {"result"},
		Summing: {"says", "fails", "held", "compacts"}, Draining: {"folded"},
	}[s.Phase]
	if s.Log.Sealing > 0 {
		fitting = append(fitting, "sealed", "sealed", "not-sealed")
	}
	if len(fitting) == 0 {
		fitting = append(fitting, "verb", "verb", "time-up")
	}
	if len(fitting) == 0 || rapid.IntRange(0, 9).Draw(t, "stray") == 0 {
		fitting = []string{"opened", "says", "calls", "result", "sealed", "time-up", "cancel", "fails", "cut", "verb", "verb", "verb"}
	}
	switch rapid.SampledFrom(fitting).Draw(t, "input") {
	case "opened":
		if rapid.Bool().Draw(t, "behind") {
			return Opened{Spec: drawSpec(t), Head: "old", Seq: 9, Behind: []string{"e"}}
		}
		return Opened{Spec: drawSpec(t)}
	case "located":
		return Located{Head: "old", Seq: 12, Version: 3, Forked: &agent.Forked{Checkpoint: "cp-5"}, Turn: 2}
	case "full":
		return Replied{Ask: s.Ask, Reply: agent.Reply{Finish: agent.FinishFull}}
	case "compacts":
		return Replied{Ask: s.Ask, Reply: agent.Reply{Finish: agent.FinishStop, Compaction: &agent.Compaction{}, Parts: []agent.Part{{Type: agent.PartText, Text: "sum"}}}}
	case "cut":
		return Cut{Reason: agent.ReasonTerminated}
	case "not-opened":
		return Opened{Err: agent.Errorf(agent.UnknownAgent, "no")}
	case "says":
		text := strings.Repeat("x", rapid.SampledFrom([]int{0, 5, 300_000}).Draw(t, "size"))
		return Replied{Ask: s.Ask, Reply: agent.Reply{Finish: agent.FinishStop, Usage: tokens(), Parts: []agent.Part{{Type: agent.PartText, Text: text}}}}
	case "verb":
		return drawVerb(t, s)
	case "folded":
		return Folded{}
	case "held":
		r := agent.Reply{Finish: agent.FinishHeld}
		if rapid.Bool().Draw(t, "early") {
			r.Hold = &agent.Heard{Session: rapid.SampledFrom([]string{"s", "other"}).Draw(t, "session"), N: rapid.IntRange(1, 3).Draw(t, "n")}
		}
		return Replied{Ask: s.Ask, Reply: r}
	case "length":
		return Replied{Ask: s.Ask, Reply: agent.Reply{Finish: agent.FinishLength}}
	case "calls":
		return Replied{Ask: s.Ask, Reply: agent.Reply{Finish: agent.FinishCalls, Usage: tokens(), Parts: drawCalls(t), Rules: drawRules(t)}, Parkings: []Parking{{Reason: "wait", Conditions: agent.Conditions{After: agent.Duration(time.Minute), OnTimeout: drawTimeout(t)}}}}
	case "fails":
		return ModelFailed{Ask: s.Ask, Err: agent.Errorf(agent.ProviderError, "no")}
	case "result":
		return Returned{Result: drawResult(t, s)}
	case "sealed":
		return Sealed{Head: "h", Seq: s.Log.Sealing}
	case "not-sealed":
		return SealFailed{Err: agent.Errorf(rapid.SampledFrom([]agent.Code{agent.StoreUnavailable, agent.StoreUnavailable, agent.ChunkDamaged}).Draw(t, "code"), "no")}
	case "time-up":
		return Tick{}
	}
	if rapid.Bool().Draw(t, "verb") {
		return drawVerb(t, s)
	}
	return Cancel{}
}

// drawVerb says anything, to anybody.
func drawVerb(t *rapid.T, s State) Input {
	request := agent.RequestID(rapid.IntRange(max(1, s.Numbers.Request-2), s.Numbers.Request+1).Draw(t, "request"))
	all := []agent.Command{
		agent.PauseOrder{}, agent.PauseOrder{}, agent.InterruptOrder{}, agent.InterruptOrder{}, agent.ResumeOrder{}, agent.ResumeOrder{},
		agent.ResumeOrder{Fresh: true, Message: "go"}, agent.SendOrder{Text: "x"}, agent.SendOrder{Text: "x", Mode: agent.SendQueue}, agent.SendOrder{Text: "x", Mode: agent.SendInterrupt},
		agent.AnswerOrder{Request: request, Text: "y"}, agent.ApproveOrder{Request: request}, agent.ApproveOrder{Request: request, Always: true}, agent.RejectOrder{Request: request, Reason: "no"},
		agent.EmitOrder{Topic: "t"}, agent.StopOrder{}, agent.CancelOrder{},
	}
	id := rapid.SampledFrom([]string{"", "", "a", "b"}).Draw(t, "id")
	return Said{Command: rapid.SampledFrom(all).Draw(t, "command"), ID: id, Matches: rapid.Bool().Draw(t, "matches")}
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
	if len(spec.Require) == 0 && rapid.Bool().Draw(t, "daemon") {
		spec.Daemon = &agent.Daemon{Every: agent.Duration(time.Minute), Queue: 2, Watchdog: 2, Compact: rapid.Bool().Draw(t, "compact")}
	}
	spec.Definition = spec.Definition.WithDefaults()
	spec.Toolset = []agent.ToolSpec{{Name: "add"}, {Name: "sub"}}
	spec.Tools = []string{agent.AskUserTool, agent.ParkTool}
	spec.Rules = []agent.Rule{{Do: agent.Ask}, {Do: agent.Deny}}
	if rapid.Bool().Draw(t, "asks") {
		spec.OnLimit, spec.OnLoop = agent.AskOnReached, agent.AskOnReached
	}
	return spec
}

func drawCalls(t *rapid.T) (parts []agent.Part) {
	for range rapid.IntRange(1, 4).Draw(t, "calls") {
		call := &agent.ToolCall{Tool: rapid.SampledFrom([]string{"add", "sub", "add", "nope", agent.FinishTool, agent.AskUserTool, agent.ParkTool}).Draw(t, "tool")}
		if rapid.IntRange(0, 4).Draw(t, "malformed") == 0 {
			call.Malformed = "{"
		} else {
			call.Arguments = json.RawMessage(fmt.Sprintf(`{"question":"?","a":%d}`, rapid.IntRange(0, 1).Draw(t, "argument")))
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

func drawRules(t *rapid.T) (rules [][]int) {
	for range 4 {
		rules = append(rules, rapid.SampledFrom([][]int{nil, nil, {0}, {1}, {0, 1}}).Draw(t, "rules"))
	}
	return rules
}

func drawTimeout(t *rapid.T) agent.OnTimeout {
	return rapid.SampledFrom([]agent.OnTimeout{agent.ResumeWithSummary, agent.ResumeWithInput, agent.TimeoutFails, agent.TimeoutCancels}).Draw(t, "timeout")
}
