package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/testenv"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

// The server ends a run whose answer to a workflow task is longer than 4 MB. Local results
// of one reply do not come to that.
func TestManyLongLocalResults(t *testing.T) {
	t.Parallel()
	page := tool.New("page", "reads a page", func(context.Context, *tool.Call, struct {
		N int `json:"n"`
	},
	) (string, error) {
		return strings.Repeat("a line of text\n", 10_000), nil
	}, &tool.Options{Local: true})
	all := testsuite.Reply{Match: "go"}
	for i := range 40 {
		all.Calls = append(all.Calls, testsuite.Call{Tool: "page", Arguments: map[string]any{"n": i}})
	}
	s := on(t, shared(t))
	s.work(t, agent.Definition{}, testsuite.NewScript(all, testsuite.Reply{Match: ".*", Text: "done"}), page)
	require.Equal(t, agent.StatusCompleted, s.rest(t, s.begin(t, "go", nil)).Status)
}

// Nor do the starts of sub-agents, each with all rules that bind it.
func TestManyLongStarts(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	var rules []agent.Rule
	for i := range 10 {
		rules = append(rules, agent.Rule{Tools: []string{"echo"}, AfterCalls: i + 1, Reason: strings.Repeat("p", 4200), Do: agent.RulingAsk})
	}
	work := testsuite.Reply{Match: `\Alead`}
	for i := range 64 {
		work.Calls = append(work.Calls, testsuite.Call{Tool: "subagent__clerk", Arguments: map[string]any{"task": fmt.Sprintf("clerk %d", i), "context": strings.Repeat("x", 22_000)}})
	}
	s := house(t, agent.Definition{Rules: rules}, agent.Definition{}, work, testsuite.Reply{Match: `\Aclerk`, Text: "done", Repeat: 64}, testsuite.Reply{Match: `"ok":`, Text: "all is done"})
	run, err := s.Start(t.Context(), "lead", "lead", nil)
	require.NoError(t, err)
	require.Equal(t, agent.StatusCompleted, s.rest(t, run).Status)
}
