package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/flow"
	"github.com/fermata-agents/fermata/internal/testenv"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// During a rolling deploy, workers of an older build take steps that only the new build has, and
// so do workers without the flow. They hand them back, and each step is made once.
func TestAFlowDuringARollingDeploy(t *testing.T) {
	t.Parallel()
	var did counts
	const steps = 40
	version := func(name string, steps int) flow.Flow {
		return flow.New(name, func(c flow.Context, _ string) (int, error) {
			if _, err := flow.Ask[string](c, "Go on?", nil); err != nil {
				return 0, err
			}
			all, err := flow.Map(c, "item", make([]int, steps), func(c flow.Context, _ int) (int, error) {
				return flow.Do(c, "do", func(context.Context, *tool.Call) (int, error) { return did.add(flow.Path(c)), nil }, nil)
			}, nil)
			return len(flow.Values(all)), err
		}, nil)
	}
	s, o := flows(t, version("rolls", steps), nil, nil)
	run, err := s.Start(t.Context(), "rolls", "go", nil)
	require.NoError(t, err)
	s.suspended(t, run)
	older, without := *o, *o
	older.Flows, without.Flows = []flow.Flow{version("rolls", 0)}, []flow.Flow{version("another", 0)}
	s.open(t, &older)
	s.open(t, &without)
	s.say(t, run, agent.AnswerCommand{Request: "q-1", Text: "yes"})
	out := s.rest(t, run)
	require.Equal(t, agent.StatusCompleted, out.Status, "%+v %+v", out.Error, out.Suspension)
	require.Equal(t, "40", string(out.Output))
	require.Equal(t, steps, did.len())
	for path, n := range did.n {
		require.Equal(t, 1, n, path)
	}
	refused := 0
	for _, e := range s.history(t, run.Session, run.ID) {
		if e.GetActivityTaskFailedEventAttributes().GetFailure().GetApplicationFailureInfo().GetType() == "fermata.no_slot" {
			refused++
		}
	}
	require.Positive(t, refused, "the other workers took none of the steps")
}

// A worker dies in a payment. The workers of a new build, which has another step before it, drop the
// payment and ask for it again. It may have been made, so it is not made again.
func TestADroppedPaymentIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	testenv.Long(t)
	var paid counts
	crash := &testsuite.Crash{Step: 3, When: testsuite.CrashDuring}
	buys := flow.New("buys", func(c flow.Context, _ string) (string, error) {
		if crash.Happened() { // a new build
			if _, err := flow.Do(c, "first", func(context.Context, *tool.Call) (int, error) { return 0, nil }, nil); err != nil {
				return "", err
			}
		}
		var pays error
		err := flow.Parallel(c,
			flow.Branch{Name: "pays", Do: func(c flow.Context) error {
				_, pays = flow.Tool[string](c, "pay", struct{}{}, nil)
				return nil
			}},
			flow.Branch{Name: "asks", Do: func(c flow.Context) error {
				_, err := flow.Ask[string](c, "Go on?", nil)
				return err
			}})
		return fmt.Sprint(pays), err
	}, &flow.Options{Tools: []string{"pay"}})
	pay := tool.New("pay", "pays", func(context.Context, *tool.Call, struct{}) (string, error) {
		paid.add("pay")
		return "paid", nil
	}, nil)
	s := testsuite.New(t, &testsuite.Options{
		Worker: &worker.Options{Flows: []flow.Flow{buys}, Tools: []tool.Tool{pay}},
		Server: dial(t, shared(t)), Connection: connection(slog.DiscardHandler), Crash: crash, Model: testsuite.NewScript(),
	})
	run := s.Start("buys", "go", nil)
	require.Eventually(t, crash.Happened, patience, time.Millisecond)
	require.Equal(t, activities.CallTool.Name, crash.Steps()[crash.Step-1])
	run.Command(agent.AnswerCommand{Request: "q-1", Text: "yes"})
	out := run.Completed()
	require.Contains(t, out.Text, "branch.pays/pay (pay): unknown")
	require.Equal(t, 1, paid.n["pay"])
}
