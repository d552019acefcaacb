package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/internal/testenv"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/tool"
)

// historyBytes is the size of all histories of a run's chain, as the server keeps them.
func (s *stage) historyBytes(t *testing.T, session, execution string) (n int) {
	t.Helper()
	for execution != "" {
		events := s.history(t, session, execution)
		for _, e := range events {
			n += proto.Size(e)
		}
		execution = events[len(events)-1].GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
	}
	return n
}

// What people are asked below costs the parent next to nothing: the arguments of 64
// calls stand in the run that asks, and whoever decides reads them there.
func TestApprovalsBelowAreCheapAbove(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	const calls, long, most = 64, 10_000, 100_000
	s := on(t, shared(t))
	t.Cleanup(func() { s.replay(t) })
	pay := tool.New("pay", "pays an amount", func(context.Context, *tool.Call, struct {
		N    int
		Note string
	},
	) (string, error) {
		return "paid", nil
	}, nil)
	think := func(_ context.Context, req *model.Request) *model.Reply {
		switch task := req.Messages[0].Text(); {
		case len(req.Messages) > 1:
			return saysText("done")
		case task == "book":
			return asksFor(model.CallPart("", "subagent__clerk", `{"task":"pay"}`))
		}
		var all []agent.Part
		for n := range calls {
			all = append(all, model.CallPart("", "pay", fmt.Sprintf(`{"N":%d,"Note":%q}`, n, strings.Repeat("x", long))))
		}
		return asksFor(all...)
	}
	s.startWorker(t, think, []tool.Tool{pay},
		agent.Definition{Name: "tester", Agents: []agent.SubAgent{{Agent: "clerk", Tools: []string{"pay"}}}},
		agent.Definition{Name: "clerk", Tools: []string{"pay"}, Rules: []agent.Rule{{Do: agent.RulingAsk, Tools: []string{"pay"}}}})
	run, err := s.Start(t.Context(), "tester", "book", nil)
	require.NoError(t, err)
	require.Equal(t, agent.SuspensionAwaitingChildren, s.suspended(t, run).Kind)
	tree, err := signals.Tree.Ask(t.Context(), s.temporal, run.Session, "", signals.None{})
	require.NoError(t, err)
	below := tree.Nodes[1]
	require.Equal(t, []int{calls, 8}, []int{below.Suspension.Open, len(below.Suspension.Requests)})

	open := map[string]client.InboxItem{}
	require.Eventually(t, func() bool { // a listing may be behind
		for w, err := range s.Inbox(t.Context(), &client.InboxOptions{Session: run.Session}) {
			require.NoError(t, err)
			open[w.ID] = w
		}
		return len(open) == calls
	}, patience, 50*time.Millisecond)
	s.say(t, run, agent.ApproveCommand{Request: "clerk-1/q-64"}) // said above, which does not know it by its id
	for n := 1; n < calls; n++ {
		w := open[fmt.Sprintf("q-%d", n)]
		q, err := s.Request(t.Context(), w.Session, w.ID)
		require.NoError(t, err)
		var shown struct{ Note string }
		require.NoError(t, json.Unmarshal(q.Call.Arguments, &shown))
		require.Len(t, shown.Note, long, "a person sees all of it")
		_, err = s.Approve(t.Context(), q, nil)
		require.NoError(t, err)
	}
	require.Equal(t, agent.StatusCompleted, s.result(t, run).Status)
	spent := s.historyBytes(t, run.Session, run.ID)
	t.Logf("the history above has %d bytes", spent)
	require.LessOrEqual(t, spent, most)
}
