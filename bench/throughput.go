package main

import (
	"context"
	"fmt"
	"time"
)

var throughputBench = benchmark{
	name: "throughput", about: "1, 32 and 500 runs at once, from the first start to the last end",
	example: "-only '^32 runs' -check", reps: 5, run: throughput,
}

// concurrentRuns is a number of runs at once, each of some turns.
type concurrentRuns struct {
	runs, turns int
	local       bool
}

func throughput(ctx context.Context, b *bench) error {
	return withBenchEnv(ctx, b, nil, func(s *benchEnv, c *workerProcs, lanes []runner) error {
		crowds := []concurrentRuns{{1, 25, false}, {1, 25, true}, {32, 25, false}, {32, 25, true}, {32, 1, true}, {500, 5, true}}
		for _, one := range pick(b, crowds, []concurrentRuns{{1, 10, true}, {32, 1, false}}) {
			p := plan{Turns: one.turns, Size: 1 << 10, Local: one.local}
			cell := fmt.Sprintf("%d runs of %d turns, %s", one.runs, one.turns, p.kind())
			if !b.wants(cell) {
				continue
			}
			if err := s.manyRuns(ctx, c, lanes, cell, one.runs, p); err != nil {
				return err
			}
		}
		return nil
	})
}

// kind returns the plan's kind of tool in words.
func (p plan) kind() string {
	if p.Local {
		return "local tool"
	}
	return "regular tool"
}

// manyRuns measures many runs at once.
func (s *benchEnv) manyRuns(ctx context.Context, c *workerProcs, lanes []runner, cell string, n int, p plan) error {
	var sides []side
	for _, l := range lanes {
		sides = append(sides, side{l.side(), func(ctx context.Context, rep int) (sample, error) {
			stop, err := s.profiled(c, fmt.Sprintf("throughput-%s-%s-%d", l.side(), cell, rep))
			if err != nil {
				return nil, err
			}
			defer stop()
			return clocked(ctx, c, n*p.Turns, func() (sample, error) {
				began := time.Now()
				err := each(n, n, func(int) error { return play(ctx, l, name("crowd"), p) })
				return sample{"turns": float64(n*p.Turns) / time.Since(began).Seconds()}, err
			})
		}})
	}
	t, err := s.compare(ctx, cell, sides...)
	if err != nil {
		return err
	}
	var limit *target
	if n == 32 && p.Turns > 1 {
		limit = atLeast(0.90)
	}
	s.add(row{Cell: cell, What: "all runs", Unit: "turns/s", Ours: t.of(sideFermata, "turns"), Beside: t.of(sideBaseline, "turns"), Reference: sideBaseline, Target: limit})
	for _, what := range []string{workerCPU, allCPU} {
		s.beside(cell, t, what, "ms", nil)
	}
	return nil
}
