package loop

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// A summary of everything that was cut off or refused counts as none: the run continues with the whole
// conversation.
func TestAnUnusableSummaryOfEverything(t *testing.T) {
	for finish, compacted := range map[agent.Finish]bool{agent.FinishStop: true, agent.FinishLength: false, agent.FinishContentFilter: false} {
		p := played(t, `started {"carry":"compact","input":{"text":"and now?"}}`, `opened-old`, `located {}`,
			fmt.Sprintf(`replies {"finish":%q,"parts":[{"type":"text","text":"we paid inv"}]}`, finish))
		require.Equal(t, compacted, slices.ContainsFunc(p.state.Log.Tail, func(e agent.Event) bool { return e.Type == agent.EventCompacted }), finish)
		require.Equal(t, []any{TurnAsking, ""}, []any{p.state.Turn.Phase, p.state.Turn.SummaryReason}, "it is not asked for again")
	}
}
