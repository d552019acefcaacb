package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	historypb "go.temporal.io/api/history/v1"
	sdk "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/worker"
)

var replayBench = benchmark{
	name: "replay", about: "histories replayed in a second, of runs of 10 and 100 turns",
	example: "-reps 10", reps: 5, run: replays,
}

func replays(ctx context.Context, b *bench) error {
	return withBenchEnv(ctx, b, nil, func(s *benchEnv, c *workerProcs, lanes []runner) error {
		for _, turns := range pick(b, []int{10, 100}, []int{10}) {
			for _, local := range []bool{false, true} {
				p := plan{Turns: turns, Size: 1 << 10, Local: local}
				cell := fmt.Sprintf("%d turns, %s", turns, p.kind())
				if !b.wants(cell) {
					continue
				}
				if err := s.replaysOf(ctx, c, lanes, cell, p); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func (s *benchEnv) replaysOf(ctx context.Context, c *workerProcs, lanes []runner, cell string, p plan) error {
	const what = "histories"
	replay := map[string]func(string, *historypb.History) error{sideBaseline: replayBaseline, sideFermata: replayFermata}
	var sides []side
	for _, l := range lanes {
		id := name("replay")
		if err := play(ctx, l, id, p); err != nil {
			return err
		}
		events, err := eventsOf(ctx, s.temporal, id)
		if err != nil {
			return err
		}
		h := &historypb.History{Events: events}
		sides = append(sides, side{l.side(), func(_ context.Context, rep int) (sample, error) {
			stop, err := s.profiled(c, fmt.Sprintf("replay-%s-%s-%d", l.side(), cell, rep))
			if err != nil {
				return nil, err
			}
			defer stop()
			n, began := pick(s.bench, 2000, 200)/p.Turns, time.Now()
			for range n {
				if err := replay[l.side()](id, h); err != nil {
					return nil, err
				}
			}
			return sample{what: float64(n) / time.Since(began).Seconds()}, nil
		}})
	}
	t, err := s.compare(ctx, cell, sides...)
	if err != nil {
		return err
	}
	s.beside(cell, t, what, "histories/s", nil)
	return nil
}

// known is what a worker has: it is made once for all histories, as preflight does.
var known = sync.OnceValue(planned)

// replayFermata replays a history as preflight does.
func replayFermata(_ string, h *historypb.History) error {
	v, err := worker.Replay(h, known())
	if err != nil {
		return err
	}
	return v.Err()
}

func replayBaseline(id string, h *historypb.History) error {
	r, err := sdk.NewWorkflowReplayerWithOptions(sdk.WorkflowReplayerOptions{DisableDeadlockDetection: true})
	if err != nil {
		return err
	}
	(&baseline{}).register(r)
	return r.ReplayWorkflowHistoryWithOptions(silence, h, sdk.ReplayWorkflowHistoryOptions{
		OriginalExecution: workflow.Execution{ID: id, RunID: h.Events[0].GetWorkflowExecutionStartedEventAttributes().GetOriginalExecutionRunId()},
	})
}
