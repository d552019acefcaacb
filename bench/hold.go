package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	temporal "go.temporal.io/sdk/client"

	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/devserver"
)

var holdBench = benchmark{
	name: "hold", about: "50 updates at once; a resume to the next model call, warm and cold; a stop to the handoff",
	example: "-only '^resume, cold'", reps: 5, run: hold,
}

func hold(ctx context.Context, b *bench) error {
	for _, part := range []func(context.Context, *bench) error{updates, resumes, stops} {
		if err := part(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// concurrentUpdates is how many resumes are sent at once.
const concurrentUpdates = 50

// updates measures resumes of one run by many at once. Exactly one must win.
func updates(ctx context.Context, b *bench) error {
	for _, limit := range []int{10, 1000} {
		cell := fmt.Sprintf("%d updates at once, %d in flight", concurrentUpdates, limit)
		if !b.wants(cell) {
			continue
		}
		if err := updatesAt(ctx, b, cell, limit); err != nil {
			return err
		}
	}
	return nil
}

func updatesAt(ctx context.Context, b *bench, cell string, limit int) error {
	return withBenchEnv(ctx, b, &devserver.Options{InMemory: true, UpdatesInFlight: limit}, func(s *benchEnv, _ *workerProcs, lanes []runner) error {
		ours := lanes[1].(*fermataRunner)
		var own []*client.Client // one for each sender, as in separate processes
		for range concurrentUpdates {
			own = append(own, client.New(s.temporal, nil))
		}
		const oneClient = "fermata, one client"
		sides := []side{
			{sideBaseline, s.race(lanes[0], func(ctx context.Context, id string, _ int) error { return s.update(ctx, id) })},
			{sideFermata, s.race(ours, func(ctx context.Context, id string, i int) error {
				run, err := own[i].Get(ctx, id)
				if err == nil {
					_, err = run.Resume(ctx, nil)
				}
				return err
			})},
			{oneClient, s.race(ours, func(ctx context.Context, id string, _ int) error { return ours.resume(ctx, id) })},
		}
		t, err := s.compare(ctx, cell, sides...)
		if err != nil {
			return err
		}
		for _, what := range []string{"all answered", "refused"} {
			unit := map[string]string{"all answered": "ms"}[what]
			s.beside(cell, t, what, unit, nil)
			s.add(row{Cell: cell + ", by one client", What: what, Unit: unit, Ours: t.of(oneClient, what), Beside: t.of(sideBaseline, what), Reference: sideBaseline})
		}
		return nil
	})
}

func (s *benchEnv) update(ctx context.Context, id string) error {
	h, err := s.temporal.UpdateWorkflow(ctx, temporal.UpdateWorkflowOptions{WorkflowID: id, UpdateName: baselineResume, WaitForStage: temporal.WorkflowUpdateStageCompleted})
	if err == nil {
		err = h.Get(ctx, nil)
	}
	return err
}

// race sends many resumes to a suspended run. Exactly one must win, and the run must then
// continue.
func (s *benchEnv) race(l runner, say func(ctx context.Context, id string, i int) error) func(context.Context, int) (sample, error) {
	return func(ctx context.Context, _ int) (sample, error) {
		id := name("update")
		if err := l.start(ctx, id, plan{Rests: 1}); err != nil {
			return nil, err
		}
		if err := l.awaitSuspended(ctx, id); err != nil {
			return nil, err
		}
		began := time.Now()
		var refused atomic.Int64
		_ = each(concurrentUpdates, concurrentUpdates, func(i int) error { // refusals are counted
			if say(ctx, id, i) != nil {
				refused.Add(1)
			}
			return nil
		})
		m := sample{"all answered": since(began), "refused": float64(refused.Load())}
		if won := concurrentUpdates - refused.Load(); won != 1 {
			return m, fault("%d of %d resumes were taken", won, concurrentUpdates)
		}
		return m, l.awaitEnd(ctx, id)
	}
}

// toAsk is the time from a resume to the next model call.
const toAsk = "to the next model call"

// resumes measures the time from a resume to the next model call, for runs of several
// lengths: in a worker that has the run in its cache, and in a new one.
func resumes(ctx context.Context, b *bench) error {
	s, err := newBenchEnv(ctx, b, nil)
	if err != nil {
		return err
	}
	defer s.close()
	for _, turns := range pick(b, []int{10, 100, 1000}, []int{10}) {
		for _, cold := range []bool{false, true} {
			cell := fmt.Sprintf("resume, %s, %d turns", map[bool]string{false: "warm", true: "cold"}[cold], turns)
			if !b.wants(cell) {
				continue
			}
			if err := s.resumesOf(ctx, cell, turns, cold); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *benchEnv) resumesOf(ctx context.Context, cell string, turns int, cold bool) error {
	j := s.job()
	lanes, err := s.lanes(j)
	if err != nil {
		return err
	}
	var sides []side
	for _, l := range lanes {
		j.Work = []string{l.side()}
		c, err := startWorkers(ctx, j, 1)
		if err != nil {
			return err
		}
		defer func() { c.shutDown() }()
		id, work := name("resume"), j
		if err := l.start(ctx, id, plan{Turns: turns, Size: 1 << 10, Rests: 1 << 20}); err != nil {
			return err
		}
		sides = append(sides, side{l.side(), func(once context.Context, _ int) (sample, error) {
			if err := l.awaitSuspended(once, id); err != nil {
				return nil, err
			}
			if cold {
				c.shutDown()
				if c, err = startWorkers(ctx, work, 1); err != nil { // it runs on after this repetition
					return nil, err
				}
			}
			c.forget()
			began := time.Now()
			if err := l.resume(once, id); err != nil {
				return nil, err
			}
			calls, err := c.calledBy(once, id, 1)
			return sample{toAsk: ms(calls.first.Sub(began))}, err
		}})
	}
	t, err := s.compare(ctx, cell, sides...)
	if err != nil {
		return err
	}
	var limit *target
	if cold && turns == 1000 {
		limit = within(1000)
	}
	s.beside(cell, t, toAsk, "ms", limit)
	return nil
}

// stops measures the time from a stop to the end, of a run whose model thinks. The call
// is cancelled, and the model is asked for a summary.
func stops(ctx context.Context, b *bench) error {
	const cell, what = "stop, 10 turns", "to the handoff"
	if !b.wants(cell) {
		return nil
	}
	return withBenchEnv(ctx, b, nil, func(s *benchEnv, c *workerProcs, lanes []runner) error {
		p := plan{Turns: 10, Size: 1 << 10, Thinks: true}
		var sides []side
		for _, l := range lanes {
			sides = append(sides, side{l.side(), func(ctx context.Context, _ int) (sample, error) {
				c.forget()
				id := name("stop")
				if err := l.start(ctx, id, p); err != nil {
					return nil, err
				}
				if _, err := c.calledBy(ctx, id, p.asks()); err != nil {
					return nil, err
				}
				began := time.Now()
				if err := l.stop(ctx, id); err != nil {
					return nil, err
				}
				err := l.awaitEnd(ctx, id)
				return sample{what: since(began)}, err
			}})
		}
		t, err := s.compare(ctx, cell, sides...)
		if err != nil {
			return err
		}
		s.beside(cell, t, what, "ms", nil)
		return nil
	})
}
