package worker_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/worker"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/worker"
)

// The user's function has the last word about every lane: a tuner or a poller behavior of theirs replaces the numbers
// that Fermata chose, which the SDK would refuse beside it.
func TestTheUsersTunerAndPollersReplaceOurNumbers(t *testing.T) {
	lazy, err := client.NewLazyClient(client.Options{})
	require.NoError(t, err)
	t.Cleanup(lazy.Close)
	tuner, err := sdk.NewFixedSizeTuner(sdk.FixedSizeTunerOptions{NumWorkflowSlots: 5, NumActivitySlots: 5, NumLocalActivitySlots: 5, NumNexusSlots: 5})
	require.NoError(t, err)
	pollers := sdk.NewPollerBehaviorAutoscaling(sdk.PollerBehaviorAutoscalingOptions{})
	const rated = worker.LaneModels + ".p"
	for name, set := range map[string]func(*sdk.Options){
		"tuner":            func(o *sdk.Options) { o.Tuner = tuner },
		"activity pollers": func(o *sdk.Options) { o.ActivityTaskPollerBehavior = pollers },
		"workflow pollers": func(o *sdk.Options) { o.WorkflowTaskPollerBehavior = pollers },
		"all": func(o *sdk.Options) {
			o.Tuner, o.ActivityTaskPollerBehavior, o.WorkflowTaskPollerBehavior = tuner, pollers, pollers
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := store.OpenDir(t.TempDir(), nil)
			require.NoError(t, err)
			seen := map[worker.Lane]bool{}
			require.NotPanics(t, func() {
				_, err = worker.New(lazy, &worker.Options{
					TaskQueue: "q", Store: dir, Logger: zap.NewNop(), Models: map[string]model.Model{"p/m": testsuite.NewScript()},
					Agents: []agent.Definition{{Name: "a", Model: "p/m"}}, RateLimits: map[string]worker.RateLimit{"p": {Concurrent: 5}},
					Temporal: func(l worker.Lane, o *sdk.Options) { seen[l] = true; set(o) },
				})
			})
			require.NoError(t, err)
			require.Equal(t, map[worker.Lane]bool{worker.LaneRuns: true, worker.LaneModels: true, worker.LaneTools: true, worker.LaneStores: true, rated: true}, seen)
		})
	}
}
