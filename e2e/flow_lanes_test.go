package e2e

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	historypb "go.temporal.io/api/history/v1"
	sdk "go.temporal.io/sdk/worker"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/flow"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// A function that needs more time than the workflow's task has is asked once more, also while long
// tools have all slots of their lane. It goes on meanwhile, and is not started again.
func TestBusyToolsKeepNoFlowFromBeingAsked(t *testing.T) {
	t.Parallel()
	var begins atomic.Int64
	slow, begun, leave := make(chan bool), make(chan bool, 1), make(chan bool)
	block := tool.New("block", "waits", func(context.Context, *tool.Call, struct{}) (string, error) {
		begun <- true
		<-leave
		return "over", nil
	}, nil)
	f := flow.New("slow", func(c flow.Context, _ string) (string, error) {
		return "done", flow.Parallel(c,
			flow.Branch{Name: "blocks", Do: func(c flow.Context) error {
				_, err := flow.Tool[string](c, "block", struct{}{}, nil)
				return err
			}},
			flow.Branch{Name: "asks", Do: func(c flow.Context) error {
				if _, err := flow.Ask[string](c, "First?", nil); err != nil {
					return err
				}
				begins.Add(1)
				<-slow
				_, err := flow.Ask[string](c, "Second?", nil)
				return err
			}})
	}, &flow.Options{Tools: []string{"block"}})
	s := on(t, shared(t))
	t.Cleanup(func() { s.replay(t) })
	s.open(t, &worker.Options{
		TaskQueue: s.queue, Flows: []flow.Flow{f}, Tools: []tool.Tool{block}, Store: s.store, Logger: zap.NewNop(),
		Temporal: func(l worker.Lane, o *sdk.Options) {
			stopsSoon(l, o)
			if l == worker.LaneTools {
				o.MaxConcurrentActivityExecutionSize = 1
			}
		},
	})
	run, err := s.Start(t.Context(), "slow", "go", nil)
	require.NoError(t, err)
	<-begun
	s.until(t, run, agent.EventRequestOpened)
	s.say(t, run, agent.AnswerCommand{Request: "q-1", Text: "yes"})
	require.Eventually(t, func() bool {
		return slices.ContainsFunc(s.history(t, run.Session, run.ID), func(e *historypb.HistoryEvent) bool {
			return e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName() == "fermata.flow"
		})
	}, time.Minute, 50*time.Millisecond, "the function is asked again")
	close(slow)
	require.Eventually(t, func() bool {
		st, err := run.Status(t.Context())
		return err == nil && len(st.Requests) == 1 && st.Requests[0].ID == "q-2"
	}, time.Minute, 50*time.Millisecond, "the second asking waits for the function")
	require.EqualValues(t, 1, begins.Load())
	s.say(t, run, agent.AnswerCommand{Request: "q-2", Text: "yes"})
	close(leave)
	require.Equal(t, "done", s.rest(t, run).Text)
}
