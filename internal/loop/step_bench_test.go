package loop

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// BenchmarkTurn takes a run of 100 turns: two steps each, a reply with a call and its result.
func BenchmarkTurn(b *testing.B) {
	spec := agent.Spec{Definition: agent.Definition{Name: "a", Tools: []string{"echo"}}, Toolset: []agent.ToolSpec{{Name: "echo"}}}
	spec.Definition = spec.WithDefaults()
	spec.Limits.OwnTurns = 200
	var s State
	step := func(in Input) {
		var err error
		if s, _, err = Step(s, Moment{At: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}, in); err != nil {
			b.Fatal(err)
		}
	}
	text := strings.Repeat("x", 1<<10)
	b.ReportAllocs()
	for n := range b.N {
		if n%100 == 0 {
			s = State{}
			step(Begin{Session: "s", Run: "r", Start: agent.Start{Agent: "a", Input: agent.Input{Text: "go"}}})
			step(Opened{Spec: &spec})
		}
		call := agent.ToolCall{ID: fmt.Sprint("c", n), Tool: "echo", Arguments: json.RawMessage(fmt.Sprintf(`{"n":%d,"size":1024}`, n))}
		step(ModelReplied{AskSeq: s.Turn.AskSeq, Reply: wire.Reply{Finish: agent.FinishToolCalls, Usage: agent.Usage{Input: 10, Output: 5}, Parts: []agent.Part{{Type: agent.PartText, Text: text}, {Type: agent.PartToolCall, Call: &call}}}})
		step(ToolReturned{Result: agent.ToolResult{Call: s.Calls.List[0].ID, Tool: "echo", Status: agent.CallOK, Text: text}})
	}
}
