package loop

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/remembered"
	"github.com/fermata-agents/fermata/internal/wire"
)

// Whatever comes, in whatever order, the invariants hold, a refusal changes
// nothing, and an old state is not touched by what follows it (PA-10, PA-94).
func TestAnySequenceOfInputs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &player{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
		p.line(rapid.SampledFrom([]string{"begin go", "begin go", born}).Draw(t, "begin"))
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			p.now = p.now.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "seconds")) * time.Second)
			was := p.state
			before, err := json.Marshal(was)
			require.NoError(t, err)
			if p.state.Phase == RunOpening || rapid.IntRange(0, 2).Draw(t, "odd") == 0 {
				p.step(drawOdd(t, p.state))
			} else {
				lines := rapid.SampledFrom(theme{}.moves(place{p.state, p.now, p.full, p.half, p.near})).Draw(t, "input")
				for line := range strings.SplitSeq(lines, "\n") {
					p.line(line)
				}
			}
			after, err := json.Marshal(was)
			require.NoError(t, err)
			require.JSONEq(t, string(before), string(after), "Step changed the state that it was given")
			if p.state.Phase == RunEnded {
				return
			}
			if p.state.CheckPortable() == nil && rapid.IntRange(0, 3).Draw(t, "moves") == 0 {
				p.state = move(t, p.state, p.now)
			}
		}
	})
}

// drawOdd makes inputs that no scenario line has: large ones, shapeless ones, and
// some that the run does not wait for.
func drawOdd(t *rapid.T, s State) Input {
	all := map[string][]string{
		string(RunOpening): {"opened", "opened", "opened", "verb", "not-opened"}, string(RunLocating): {"located"}, string(RunListing): {"listed"}, string(TurnAsking): {"says", "calls", "calls", "calls", "held", "delays"}, string(TurnWorking): {"result"}, string(TurnAdvancing): {"steps", "steps", "steps", "returns"}, string(TurnSummarizing): {"says", "held", "delays"},
	}[s.phaseName()]
	if len(all) == 0 || rapid.IntRange(0, 9).Draw(t, "stray") == 0 {
		all = []string{"opened", "located", "listed", "says", "calls", "held", "delays", "result", "verb", "verb"}
	}
	switch rapid.SampledFrom(all).Draw(t, "input") {
	case "opened":
		in := Opened{Spec: drawSpec(t)}
		if rapid.Bool().Draw(t, "before") { // the session has had runs
			in.Head, in.Seq, in.Counters, in.Receipts = "old", 9, remembered.Counters{Request: 3, Hold: 1}, []remembered.Receipt{{ID: "a", Run: "old"}}
			in.Backlog = remembered.Backlog{Unfinished: true, Events: []agent.EmitCommand{{CommandHeader: agent.CommandHeader{ID: "e7"}, Topic: "t"}}}
		}
		if rapid.IntRange(0, 3).Draw(t, "behind") == 0 {
			in.TerminatedRuns = []string{"e"}
		}
		if rapid.IntRange(0, 2).Draw(t, "lists") == 0 {
			in.Sources = []string{"mcp"}
		}
		return in
	case "not-opened":
		return Opened{Err: agent.Errorf(agent.CodeUnknownAgent, "no")}
	case "located":
		return Located{Head: "old", Seq: 12, Version: 3, Counters: s.Counters, Receipts: s.Messages.Receipts, Backlog: s.Backlog(), Forked: &agent.Forked{Checkpoint: "cp-5"}, Turn: 2, Artifacts: []agent.Artifact{{File: contentFile("s", "a", "1"), Version: 1}}}
	case "listed":
		if rapid.IntRange(0, 3).Draw(t, "lists") == 0 {
			return Listed{Err: agent.Errorf(agent.CodeToolFailed, "no")}
		}
		return Listed{Tools: []agent.ToolSpec{{Name: "mcp__add"}}, Instructions: rapid.SampledFrom([]string{"", "It adds."}).Draw(t, "instructions"), Left: rapid.SampledFrom([][]agent.ToolsChange{nil, {{Source: "mcp", Left: []string{"mcp__pay"}}}}).Draw(t, "left")}
	case "says":
		text := strings.Repeat("x", rapid.SampledFrom([]int{0, 5, 300_000}).Draw(t, "size"))
		return ModelReplied{AskSeq: s.Turn.AskSeq, Reply: wire.Reply{Finish: agent.FinishStop, Usage: tokens(), Parts: []agent.Part{{Type: agent.PartText, Text: text}}}}
	case "held":
		return ModelReplied{AskSeq: s.Turn.AskSeq, Reply: wire.Reply{Finish: wire.FinishHeld, Hold: &agent.HoldRef{
			Session: rapid.SampledFrom([]string{"s", "other"}).Draw(t, "session"), N: rapid.IntRange(1, 3).Draw(t, "n"),
		}}}
	case "delays":
		return ModelDelayed{AskSeq: s.Turn.AskSeq, Until: s.Turn.Asked.Add(time.Minute), Err: agent.Errorf(agent.CodeProviderError, "%s", strings.Repeat("x", 4<<10))}
	case "calls":
		return ModelReplied{AskSeq: s.Turn.AskSeq, Reply: wire.Reply{Finish: agent.FinishToolCalls, Usage: tokens(), Parts: drawCalls(t), RuleMatches: drawRules(t), ParkRequests: []wire.ParkRequest{{Reason: "wait", Conditions: agent.Conditions{After: agent.Duration(time.Minute), OnTimeout: drawTimeout(t)}}}}}
	case "steps":
		return drawSteps(t, s)
	case "returns":
		return FlowAnswered{AskSeq: s.Turn.AskSeq, Answer: wire.FlowAnswer{Done: true, Text: "done"}}
	case "result":
		in := ToolReturned{Result: drawResult(t, s), Artifacts: rapid.SampledFrom([][]agent.File{nil, nil, {contentFile(s.Session, "a", "1"), contentFile("other", "b", "1")}, {contentFile(s.Session, "a", "2")}}).Draw(t, "artifacts")}
		if rapid.IntRange(0, 4).Draw(t, "asks") == 0 {
			in.Question = &agent.ToolQuestion{Text: "Which?", Choices: []string{"y"}, MustFit: rapid.Bool().Draw(t, "must fit")}
			if rapid.IntRange(0, 2).Draw(t, "waits") == 0 {
				in.Question = &agent.ToolQuestion{Text: "wait", Until: &agent.Conditions{After: agent.Duration(time.Hour), Event: &agent.EventCondition{Topic: "t"}}}
			}
		}
		return in
	}
	return drawVerb(t, s)
}

// drawVerb says something to any request, with or without an id that was used before.
func drawVerb(t *rapid.T, s State) Input {
	request := requestID(rapid.IntRange(max(1, s.Counters.Request-2), s.Counters.Request+1).Draw(t, "request"))
	all := []agent.Command{
		agent.AnswerCommand{Request: request, Text: "y"}, agent.ApproveCommand{Request: request, Always: true}, agent.RejectCommand{Request: request, Reason: "no"},
		agent.SendCommand{Text: "x"}, agent.EmitCommand{Topic: "t"}, agent.ResumeCommand{FromSummary: true, Message: "go"}, agent.ResumeCommand{Refresh: true}, agent.PauseCommand{}, agent.StopCommand{},
	}
	id := rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "id")
	return CommandReceived{Command: rapid.SampledFrom(all).Draw(t, "command"), ID: id}
}

func drawSpec(t *rapid.T) *agent.Spec {
	spec := &agent.Spec{V: 1, Definition: agent.Definition{Name: "a", Model: "m", ParallelTools: rapid.IntRange(1, 3).Draw(t, "parallel")}}
	spec.Limits.Turns = rapid.IntRange(1, 9).Draw(t, "turns")
	if spec.Flow = rapid.IntRange(0, 3).Draw(t, "flow") == 0; spec.Flow {
		spec.Definition = spec.Definition.WithDefaults()
		spec.Toolset, spec.Agents, spec.Rules = []agent.ToolSpec{{Name: "add", ReadOnly: true}, {Name: "sub", Temporal: &agent.TemporalCall{Kind: agent.TemporalWorkflow, Type: "Sub", TaskQueue: "q"}}}, []agent.SubAgent{{Agent: "b"}}, []agent.Rule{{Do: agent.RulingAsk}, {Do: agent.RulingDeny}}
		return spec
	}
	spec.RefreshOnResume = rapid.Bool().Draw(t, "refresh")
	if rapid.Bool().Draw(t, "finish") {
		spec.Completion = agent.CompletionTool
	}
	if rapid.Bool().Draw(t, "require") {
		spec.Require = []agent.OneOf{{"add"}}
	}
	if len(spec.Require) == 0 && rapid.Bool().Draw(t, "daemon") {
		spec.Daemon = &agent.Daemon{Every: agent.Duration(time.Minute), Queue: 2, Watchdog: 2, Compact: rapid.Bool().Draw(t, "compact")}
	}
	spec.Definition = spec.Definition.WithDefaults()
	spec.Toolset = []agent.ToolSpec{{Name: "add", ReadOnly: true}, {Name: "sub"}}
	spec.Tools = []string{agent.AskUserTool, agent.AwaitResumptionTool}
	spec.Rules = []agent.Rule{{Do: agent.RulingAsk}, {Do: agent.RulingDeny}}
	if rapid.Bool().Draw(t, "agents") {
		spec.Agents, spec.Lifecycle = []agent.SubAgent{{Agent: "b"}}, true
	}
	if rapid.Bool().Draw(t, "asks") {
		spec.OnLimit, spec.OnLoop = agent.LimitActionAsk, agent.LimitActionAsk
	}
	return spec
}

// drawSteps are what a flow asks for, and what it does not wait for any more.
func drawSteps(t *rapid.T, s State) Input {
	in := FlowAnswered{AskSeq: s.Turn.AskSeq, Answer: wire.FlowAnswer{RuleMatches: drawRules(t)}}
	for i, p := range drawCalls(t) {
		c := *p.Call
		c.ProviderID = fmt.Sprintf("%d.%d/%s", s.Turn.N, i, c.Tool)
		if c.Malformed != "" { // a function's arguments are always JSON
			c.Malformed, c.Arguments = "", json.RawMessage("{}")
		}
		if len(s.Calls.List)+i < wire.MaxSteps {
			in.Answer.Steps = append(in.Answer.Steps, wire.FlowStep{ToolCall: c, StepOptions: wire.StepOptions{Attempts: rapid.IntRange(0, 2).Draw(t, "attempts")}})
			in.Answer.ParkRequests = append(in.Answer.ParkRequests, wire.ParkRequest{Conditions: agent.Conditions{After: agent.Duration(time.Minute)}})
		}
	}
	for _, c := range s.Calls.List {
		if rapid.IntRange(0, 5).Draw(t, "drops") == 0 {
			in.Answer.Dropped = append(in.Answer.Dropped, c.ProviderID)
		}
	}
	return in
}

func drawCalls(t *rapid.T) (parts []agent.Part) {
	for range rapid.IntRange(1, 4).Draw(t, "calls") {
		call := &agent.ToolCall{Tool: rapid.SampledFrom([]string{"add", "sub", "add", "nope", agent.FinishTool, agent.AskUserTool, agent.AwaitResumptionTool, "subagent__b", waitTool, pauseTool, resumeTool, stopTool}).Draw(t, "tool")}
		if rapid.IntRange(0, 4).Draw(t, "malformed") == 0 {
			call.Malformed = "{"
		} else {
			call.Arguments = json.RawMessage(fmt.Sprintf(`{"question":"?","a":%d,"task":"x","child":"s/b-1","reason":"why","background":%t}`, rapid.IntRange(0, 1).Draw(t, "argument"), rapid.Bool().Draw(t, "background")))
		}
		parts = append(parts, agent.Part{Type: agent.PartToolCall, Call: call})
	}
	return parts
}

func drawResult(t *rapid.T, s State) agent.ToolResult {
	id := callID(s.Turn.N, rapid.IntRange(1, 4).Draw(t, "call"))
	status := rapid.SampledFrom([]agent.CallStatus{agent.CallOK, agent.CallFailed, agent.CallUnknown}).Draw(t, "status")
	files := rapid.SampledFrom([][]agent.Part{nil, nil, {fileOf(s.Session)}, {fileOf("other"), {}}, manyFiles(s.Session, 25)}).Draw(t, "files")
	return agent.ToolResult{Call: id, Tool: "add", Status: status, Text: "r", Files: files}
}

func drawRules(t *rapid.T) (rules [][]int) {
	for range 4 {
		rules = append(rules, rapid.SampledFrom([][]int{nil, nil, {0}, {1}, {0, 1}}).Draw(t, "rules"))
	}
	return rules
}

func drawTimeout(t *rapid.T) agent.OnTimeout {
	return rapid.SampledFrom([]agent.OnTimeout{agent.OnTimeoutResumeWithSummary, agent.OnTimeoutResumeWithInput, agent.OnTimeoutFail, agent.OnTimeoutCancel}).Draw(t, "timeout")
}
