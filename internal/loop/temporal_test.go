package loop

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// Results of the user's own are as long as the server accepts, so only as many are on their way as
// fit into a history; fewer if it is long already.
func TestOnlySoManyResultsOfTheUsersOwnAreOnTheirWay(t *testing.T) {
	for suggested, most := range map[bool]int{false: maxOutside, true: maxOutsideLate} {
		d := newDrive(t, agent.Spec{
			Definition: agent.Definition{Name: "a", ParallelTools: 64},
			Toolset:    []agent.ToolSpec{{Name: "pay", Temporal: &agent.TemporalCall{Kind: agent.TemporalActivity, Type: "Pay", TaskQueue: "house"}}, {Name: "add"}},
		})
		r := wire.Reply{Finish: agent.FinishToolCalls}
		for i := range 30 {
			r.Parts = append(r.Parts, agent.Part{Type: agent.PartToolCall, Call: &agent.ToolCall{Tool: "pay", Arguments: json.RawMessage(fmt.Sprintf(`{"n":%d}`, i))}})
		}
		r.Parts = append(r.Parts, agent.Part{Type: agent.PartToolCall, Call: &agent.ToolCall{Tool: "add", Arguments: json.RawMessage(`{}`)}})
		_, effects, err := Step(d.state, Moment{At: d.state.Suspensions.Since, ContinueAsNewSuggested: suggested}, ModelReplied{AskSeq: d.state.Turn.AskSeq, Reply: r})
		require.NoError(t, err)
		outside, others := 0, 0
		for _, e := range effects {
			switch call, ok := e.(CallTool); {
			case ok && call.Temporal != nil:
				require.Equal(t, startTime, call.Temporal.StartTimeout)
				require.Equal(t, toolTime, call.Timeout)
				outside++
			case ok:
				others++
			}
		}
		require.Equal(t, most, outside)
		require.Equal(t, 1, others)
	}
}
