package main

import (
	"context"
	"fmt"
	"time"
)

var turnBench = benchmark{
	name: "turn", about: "what a turn takes: a model that answers at once and a tool, one run",
	example: "-only '10 kB' -reps 5", reps: 7, run: turns,
}

// The measures of whole runs.
const (
	aTurn    = "a turn"
	wholeRun = "the run"
)

// variant is a plan of one side, with a name.
type variant struct {
	name string
	lane runner
	plan plan
}

// turns measures one run, with messages of several sizes and both kinds of tools.
func turns(ctx context.Context, b *bench) error {
	return withBenchEnv(ctx, b, nil, func(s *benchEnv, c *workerProcs, lanes []runner) error {
		for _, kB := range pick(b, []int{0, 1, 10}, []int{0, 1}) {
			cell := fmt.Sprintf("%d kB", kB)
			if b.wants(cell) {
				if err := s.turnsOf(ctx, c, lanes, cell, plan{Turns: pick(b, 50, 10), Size: kB << 10}); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func (s *benchEnv) turnsOf(ctx context.Context, c *workerProcs, lanes []runner, cell string, p plan) error {
	local, naive := p, p
	local.Local, naive.ByValue = true, true
	variants := []variant{
		{"floor, regular", lanes[0], p}, {"regular", lanes[1], p},
		{"floor, local", lanes[0], local}, {"local", lanes[1], local},
		{"floor, by value", lanes[0], naive},
	}
	var sides []side
	for _, v := range variants {
		sides = append(sides, side{v.name, func(ctx context.Context, rep int) (sample, error) {
			return clocked(ctx, c, v.plan.Turns, func() (sample, error) { return s.timed(ctx, c, v, cell, rep) })
		}})
	}
	t, err := s.compare(ctx, cell, sides...)
	if err != nil {
		return err
	}
	for _, r := range []struct {
		cell, what, ours, beside string
		bar                      *target
	}{
		{"regular tool", aTurn, "regular", "floor, regular", atMost(1.10)},
		{"local tool", aTurn, "local", "floor, regular", atMost(0.60)},
		{"local tool", aTurn, "local", "floor, local", nil},
		{"regular tool", wholeRun, "regular", "floor, regular", nil},
		{"local tool", wholeRun, "local", "floor, local", nil},
		{"regular tool", aTurn, "regular", "floor, by value", nil},
		{"regular tool", workerCPU, "regular", "floor, regular", nil},
		{"regular tool", allCPU, "regular", "floor, regular", nil},
		{"local tool", workerCPU, "local", "floor, local", nil},
		{"local tool", allCPU, "local", "floor, local", nil},
	} {
		what := r.what
		if what == wholeRun {
			what = fmt.Sprintf("a run of %d turns", p.Turns)
		}
		s.add(row{Cell: cell + ", " + r.cell, What: what, Unit: "ms", Ours: t.of(r.ours, r.what), Beside: t.of(r.beside, r.what), Reference: r.beside, Target: r.bar})
	}
	return nil
}

// timed plays a run, and measures the time from its first model call to its last.
func (s *benchEnv) timed(ctx context.Context, c *workerProcs, v variant, cell string, rep int) (sample, error) {
	c.forget()
	id := name("turn")
	stop, err := s.profiled(c, fmt.Sprintf("turn-%s-%s-%d", v.name, cell, rep))
	if err != nil {
		return nil, err
	}
	began := time.Now()
	err = play(ctx, v.lane, id, v.plan)
	whole := since(began)
	stop()
	if err != nil {
		return nil, err
	}
	calls, err := c.calledBy(ctx, id, v.plan.asks())
	return sample{aTurn: ms(calls.last.Sub(calls.first)) / float64(v.plan.Turns), wholeRun: whole}, err
}
