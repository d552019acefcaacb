package main

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	temporal "go.temporal.io/sdk/client"

	"github.com/fermata-agents/fermata/devserver"
)

var costBench = benchmark{
	name: "cost", about: "what a turn costs at turn 10, 100 and 1,000: events, bytes of history, billable actions, RPCs",
	example: "-only '^turn 100, 1 kB'", reps: 1, run: cost,
}

// The costs of a turn. The events are those of a usual turn; all others are means.
const (
	costEvents  = "events of a turn"
	costAll     = "events of all turns, a turn"
	costBytes   = "history a turn"
	costActions = "actions a turn"
	costReports = "RPCs a turn"
	costBeats   = "heartbeats a model call"
	costWhole   = "history of all turns, a turn"
)

// costOf identifies the samples of a plan.
type costOf struct {
	turn, kB int
	local    bool
}

func cost(ctx context.Context, b *bench) error {
	m := newMeter()
	return withBenchEnv(ctx, b, &devserver.Options{InMemory: true, Metrics: m}, func(s *benchEnv, _ *workerProcs, lanes []runner) error {
		early := map[costOf]taken{}
		for _, at := range pick(b, []int{10, 100, 1000}, []int{10, 100}) {
			for _, kB := range pick(b, []int{1, 10}, []int{1}) {
				for _, local := range []bool{false, true} {
					p := plan{Turns: at, Size: kB << 10, Local: local}
					cell := fmt.Sprintf("turn %d, %d kB, %s", at, kB, p.kind())
					if !b.wants(cell) {
						continue
					}
					t, err := s.spent(ctx, lanes, m, cell, p)
					if err != nil {
						return err
					}
					if at == 10 {
						early[costOf{0, kB, local}] = t
					}
					s.addCost(cell, p, t, early[costOf{0, kB, local}])
				}
			}
		}
		return s.slow(ctx, lanes, m)
	})
}

// slowCall is how long the model takes in [benchEnv.slow].
const slowCall = 30 * time.Second

// slow counts what a turn with a slow model costs: heartbeats are billable actions.
func (s *benchEnv) slow(ctx context.Context, lanes []runner, m *meter) error {
	cell := "a model that takes 30 s, local tool"
	if !s.bench.wants(cell) {
		return nil
	}
	p := plan{Turns: 3, Local: true, Each: slowCall}
	var sides []side
	for _, l := range lanes {
		sides = append(sides, side{l.side(), func(ctx context.Context, _ int) (sample, error) {
			m.take()
			err := play(ctx, l, name("slow"), p)
			beats := m.heartbeats()
			actions, _ := m.take()
			return sample{costActions: float64(actions) / float64(p.Turns), costBeats: float64(beats) / float64(p.asks())}, err
		}})
	}
	t, err := s.inTurns(ctx, cell, sides...)
	if err == nil {
		s.beside(cell, t, costActions, "", nil)
		s.beside(cell, t, costBeats, "", within(2))
	}
	return err
}

// spent plays a run of so many turns, and counts the cost of its last ten.
func (s *benchEnv) spent(ctx context.Context, lanes []runner, m *meter, cell string, p plan) (taken, error) {
	var sides []side
	for _, l := range lanes {
		sides = append(sides, side{l.side(), func(ctx context.Context, _ int) (sample, error) {
			id := name("cost")
			m.take()
			if err := play(ctx, l, id, p); err != nil {
				return nil, err
			}
			actions, reports := m.take()
			events, err := eventsOf(ctx, s.temporal, id)
			if err != nil {
				return nil, err
			}
			n, bytes, err := lastTen(events, p.Turns)
			return sample{
				costEvents: n, costBytes: bytes, costAll: float64(len(events)) / float64(p.Turns), costWhole: size(events) / float64(p.Turns),
				costActions: float64(actions) / float64(p.Turns), costReports: float64(reports) / float64(p.Turns),
			}, err
		}})
	}
	return s.inTurns(ctx, cell, sides...)
}

// addCost adds a cell's rows; early are the samples of the same plan at turn 10.
func (s *benchEnv) addCost(cell string, p plan, t, early taken) {
	events := within(13)
	if p.Local {
		events = within(7)
	}
	for _, one := range []struct {
		what, unit string
		bar        *target
	}{{costEvents, "", events}, {costAll, "", nil}, {costBytes, "bytes", nil}, {costWhole, "bytes", nil}, {costActions, "", nil}, {costReports, "", nil}} {
		s.beside(cell, t, one.what, one.unit, one.bar)
	}
	var limit *target
	if p.Size >= 10<<10 {
		limit = atMost(1.2) // a message's envelope has the same size for short messages
	}
	s.add(row{Cell: cell, What: costBytes, Unit: "bytes", Ours: t.of(sideFermata, costBytes), Beside: []float64{float64(2 * p.Size)}, Reference: "the messages", Target: limit})
	if p.Turns > 10 && early != nil {
		if limit = nil; p.Turns == 1000 {
			limit = atMost(1.05)
		}
		s.add(row{Cell: cell, What: costBytes, Unit: "bytes", Ours: t.of(sideFermata, costBytes), Beside: early.of(sideFermata, costBytes), Reference: "turn 10", Target: limit})
	}
}

// eventsOf reads the history of a run, over all its executions.
func eventsOf(ctx context.Context, c temporal.Client, id string) (events []*historypb.HistoryEvent, err error) {
	last, err := c.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		return nil, err
	}
	for run := last.GetWorkflowExecutionInfo().GetFirstRunId(); run != ""; {
		history := c.GetWorkflowHistory(ctx, id, run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for history.HasNext() {
			e, err := history.Next()
			if err != nil {
				return nil, err
			}
			events = append(events, e)
		}
		run = events[len(events)-1].GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
	}
	return events, nil
}

// lastTen returns how many events a usual one of a run's last ten turns has, and the mean
// of their bytes. A turn lasts from the scheduling of its model call to that of the next.
func lastTen(events []*historypb.HistoryEvent, turns int) (n, bytes float64, err error) {
	var asked []int // where model calls were scheduled
	for i, e := range events {
		if isAsk(e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName()) {
			asked = append(asked, i)
		}
	}
	if len(asked) != turns+1 {
		return 0, 0, fmt.Errorf("%d model calls in a run of %d turns", len(asked), turns)
	}
	var each []float64
	for i := turns - 10; i < turns; i++ {
		each = append(each, float64(asked[i+1]-asked[i]))
	}
	return median(each), size(events[asked[turns-10]:asked[turns]]) / 10, nil
}

// size returns the length of events as they are stored.
func size(events []*historypb.HistoryEvent) (n float64) {
	for _, e := range events {
		n += float64(e.Size())
	}
	return n
}
