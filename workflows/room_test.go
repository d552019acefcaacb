package workflows_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

// What a person has approved is made, once, also where the history is nearly full.
func TestWhatIsApprovedIsMadeNearTheHistoryLimit(t *testing.T) {
	for _, o := range []*tool.Options{nil, {Attempts: 3}} {
		var paid atomic.Int32
		slow := tool.New("slow", "", func(ctx context.Context, _ *tool.Call, _ none) (string, error) { <-ctx.Done(); return "done", nil }, &tool.Options{ReadOnly: true})
		pay := tool.New("pay", "", func(context.Context, *tool.Call, none) (string, error) { paid.Add(1); return "paid", nil }, o)
		b := setup(t, agent.Definition{ParallelTools: 1, Rules: []agent.Rule{{Do: agent.RulingAsk, Tools: []string{"pay"}}}},
			testsuite.NewScript(testsuite.Reply{Calls: calls("slow", "pay")}, testsuite.Reply{Text: "done"}), slow, pay)
		var once sync.Once
		b.at(activities.CallTool.Name, func() {
			once.Do(func() {
				b.SetContinueAsNewSuggested(true)
				b.SetCurrentHistoryLength(45_000)
				b.SetCurrentHistorySize(31 << 20)
				b.SignalWorkflow("approve", map[string]any{"request": "q-1"})
			})
		})
		require.Equal(t, agent.StatusCompleted, b.run(t, "go").Status)
		require.EqualValues(t, 1, paid.Load())
	}
}
