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

// The author's nudge counts in the log's size and in a request's, and the runtime's own words do not.
func TestAnAuthorsNudgeCounts(t *testing.T) {
	sizes := func(spec string) (tail, request int) {
		p := played(t, `begin go`, `opened {"completion":"tool","nudges":3`+spec+`}`)
		log, since := p.state.Log.Bytes, p.state.Budget.BytesSince
		p.lines(`says hm`)
		return p.state.Log.Bytes - log, p.state.Budget.BytesSince - since
	}
	tail, request := sizes("")
	for _, spec := range []string{`,"nudge":"Call finish."`, `,"texts":{"nudge":"Call finish."}`} {
		longer, more := sizes(spec)
		require.Equal(t, []int{tail + len("Call finish."), request + len("Call finish.")}, []int{longer, more}, spec)
	}
}
