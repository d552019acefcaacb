package e2e

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	sdk "go.temporal.io/sdk/worker"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/worker"
)

// A workflow task waits for the process that has the run in its cache as long as Temporal has it by
// default: a busy process keeps its runs. An option makes it shorter, to lose less time with a lost worker.
func TestATaskWaitsForItsProcessAsLongAsTemporalSays(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set  func(worker.Lane, *sdk.Options)
		want time.Duration
	}{
		"by default": {stopsSoon, 5 * time.Second},
		"set":        {func(_ worker.Lane, o *sdk.Options) { o.StickyScheduleToStartTimeout = time.Second }, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s := on(t, shared(t))
			var mu sync.Mutex
			seen := map[time.Duration]bool{}
			listening := dialHearing(t, shared(t), func(_ string, in any) error {
				done, ok := in.(*workflowservice.RespondWorkflowTaskCompletedRequest)
				if ok && done.GetStickyAttributes().GetWorkerTaskQueue().GetNormalName() == s.queue { // not the process's own queue
					mu.Lock()
					defer mu.Unlock()
					seen[done.GetStickyAttributes().GetScheduleToStartTimeout().AsDuration()] = true
				}
				return nil
			})
			w, err := worker.New(listening, &worker.Options{
				TaskQueue: s.queue, Store: s.store, Logger: zap.NewNop(), Temporal: c.set, Agents: []agent.Definition{{Name: "tester", Model: "script"}},
				Models: map[string]model.Model{"script": testsuite.NewScript(testsuite.Reply{Text: "done"})},
			})
			require.NoError(t, err)
			require.NoError(t, w.Start(t.Context()))
			t.Cleanup(w.Stop)
			require.Equal(t, agent.StatusCompleted, s.result(t, s.begin(t, "go", nil)).Status)
			mu.Lock()
			defer mu.Unlock()
			require.Equal(t, map[time.Duration]bool{c.want: true}, seen)
		})
	}
}
