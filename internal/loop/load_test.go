package loop

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// The answer to one workflow task carries the results of ten calls within it, and the
// starts of as many sub-agents as fit; the others come with the next.
func TestAnAnswerCarriesOnlySoMuch(t *testing.T) {
	var r wire.Reply
	ask := func(tool string, arguments string) {
		r.Parts = append(r.Parts, agent.Part{Type: agent.PartToolCall, Call: &agent.ToolCall{Tool: tool, Arguments: json.RawMessage(arguments)}})
	}
	for i := range 12 {
		ask("add", fmt.Sprintf(`{"n":%d}`, i))
	}
	for i := range 8 {
		ask("subagent__b", fmt.Sprintf(`{"task":"%d %s"}`, i, strings.Repeat("x", 200_000)))
	}
	r.Finish = agent.FinishToolCalls
	d := newDrive(t, agent.Spec{
		Definition: agent.Definition{Name: "a", ParallelTools: 64, Agents: []agent.SubAgent{{Agent: "b"}}}, Toolset: []agent.ToolSpec{{Name: "add", Local: true}},
	})
	in := func(task int, i Input) (locals, regular, starts int) {
		next, effects, err := Step(d.state, Moment{At: d.state.Suspensions.Since, Task: task}, i)
		require.NoError(t, err)
		d.state = next
		for _, e := range effects {
			switch e := e.(type) {
			case CallTool:
				if e.Local {
					locals++
				} else {
					regular++
				}
			case StartChild:
				starts++
			}
		}
		return locals, regular, starts
	}
	locals, regular, starts := in(7, ModelReplied{AskSeq: d.state.Turn.AskSeq, Reply: r})
	require.Equal(t, []int{10, 2, 5}, []int{locals, regular, starts})
	_, _, starts = in(7, ChildStarted{Session: d.state.Children.List[0].Session, Run: "r"})
	require.Zero(t, starts)
	_, _, starts = in(9, ChildStarted{Session: d.state.Children.List[1].Session, Run: "r"})
	require.Equal(t, 3, starts)
}
