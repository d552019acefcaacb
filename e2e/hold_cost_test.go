package e2e

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/testenv"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

// What a hold of a tree costs the server is bounded by the tree, however many processes
// there are: none of them reads along, and only those are told that work for it. The root is
// looked at again until the server knows that its steps have ended, for half a second at most.
func TestAHoldCostsWhatTheTreeIsLarge(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	const agents, tools, again = 7, 3, 13
	for _, processes := range []int{1, 10, 100} {
		t.Run(fmt.Sprint(processes), func(t *testing.T) {
			f := plant(t, 2, 2)
			f.worker.Stop() // of the stage
			f.first.Stop()
			n := &rpcs{calls: map[string]int{}}
			home := f.temporal
			f.temporal = dialHearing(t, shared(t), n.hear)
			for range processes {
				f.tend(t)
			}
			f.temporal = home
			run := f.grown(t, agents, tools)
			before := n.all()
			said := time.Now()
			_, err := run.Interrupt(t.Context(), "", nil)
			require.NoError(t, err)
			require.Eventually(t, func() bool { return f.busy.Load() == 0 }, patience, time.Millisecond)
			took := time.Since(said)
			f.still(t, run, agents, agent.StatusSuspended)
			cost := n.all()
			maps.DeleteFunc(cost, func(method string, calls int) bool {
				cost[method] = calls - before[method]
				return cost[method] == 0
			})
			t.Logf("%d processes: %d agents quiet in %v: %v", processes, agents, took, cost)
			require.Zero(t, cost[polls], "nobody reads along")
			require.LessOrEqual(t, cost[describes], agents+again, "a look at each run of the tree, and again at the root")
			if processes > 1 {
				require.NotZero(t, cost[queries], "others are told")
			}
			require.LessOrEqual(t, cost[queries], agents+tools+1, "a question to each process that works for it")
			require.LessOrEqual(t, cost["DescribeTaskQueue"], agents, "who there is, is asked once for holds that come together")
			require.LessOrEqual(t, cost["SignalWorkflowExecution"], agents, "and a run is told once")
			require.Zero(t, cost["StartWorkflowExecution"]+cost["SignalWithStartWorkflowExecution"], "nothing is written")
		})
	}
}

// worksUntilStopped is a tool that tells when it begins, and when it was stopped.
func worksUntilStopped() (works tool.Tool, begun, given chan struct{}) {
	begun, given = make(chan struct{}, 10), make(chan struct{}, 10)
	return tool.New("works", "", func(ctx context.Context, _ *tool.Call, _ struct{}) (string, error) {
		begun <- struct{}{}
		<-ctx.Done()
		given <- struct{}{}
		return "half", nil
	}, nil), begun, given
}

// A process that is told of a hold ends what it has in flight below it, before the run
// hears of anything.
func TestAProcessThatIsToldEndsItsSteps(t *testing.T) {
	t.Parallel()
	works, begun, given := worksUntilStopped()
	s := setup(t, agent.Definition{}, testsuite.NewScript(testsuite.Reply{Match: ".*", Calls: call("works", nil)}), works)
	run := s.begin(t, "go", nil)
	<-begun
	process := s.processOf(t, run.Session)
	_, err := signals.Held.Ask(t.Context(), s.temporal, signals.ProcessID(process), "", agent.HoldRef{Session: run.Session, N: 7, Verb: agent.VerbInterrupt})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(given) > 0 }, patience, time.Millisecond)
	_, err = run.Cancel(t.Context(), "enough", nil)
	require.NoError(t, err)
	require.Equal(t, agent.StatusCancelled, s.rest(t, run).Status)
}

// processOf returns the worker process that has a session's step in flight.
func (s *stage) processOf(t *testing.T, session string) (process string) {
	t.Helper()
	require.Eventually(t, func() bool { // the server shows a step that was begun with a task once it has heard of it
		d, err := s.temporal.DescribeWorkflowExecution(t.Context(), session, "")
		require.NoError(t, err)
		for _, a := range d.GetPendingActivities() {
			process = a.GetLastWorkerIdentity()
		}
		return process != ""
	}, patience, 5*time.Millisecond)
	return process
}
