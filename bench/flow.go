package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/flow"
	playing "github.com/fermata-agents/fermata/internal/play"
	"github.com/fermata-agents/fermata/store"
)

var flowBench = benchmark{
	name: "flow", about: "a flow of agents and steps beside the same by hand; an interrupt; a function run again; 10,000 steps",
	example: "-only '^5 agents'", reps: 7, run: flowsOf,
}

func flowsOf(ctx context.Context, b *bench) error {
	// Before there is a server in this process: it measures the processor time of all of it.
	if err := b.playedAgain(ctx); err != nil {
		return err
	}
	s, err := newBenchEnv(ctx, b, nil)
	if err != nil {
		return err
	}
	defer s.close()
	j := s.job(sideFlow, sideByHand)
	c, err := startWorkers(ctx, j, 1)
	if err != nil {
		return err
	}
	defer c.shutDown()
	dir, err := store.OpenDir(j.Dir, nil)
	if err != nil {
		return err
	}
	f := &flowEnv{s, client.New(s.temporal, &client.Options{TaskQueue: j.queue(sideFlow), Store: dir}), c, j.queue(sideByHand)}
	for _, part := range []func(context.Context) error{f.besideHand, f.interrupted, f.manySteps} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// flowEnv has the workers of flows and of what is written by hand.
type flowEnv struct {
	*benchEnv
	client  *client.Client
	workers *workerProcs
	byHand  string // the queue
}

// play runs a flow to its end.
func (f *flowEnv) play(ctx context.Context, p flowPlan) (*client.Run, error) {
	run, err := f.start(ctx, p)
	if err != nil {
		return nil, err
	}
	o, err := run.Result(ctx)
	if err == nil && o.Status != agent.StatusCompleted {
		err = fault("the flow is %s (%s): %v", o.Status, o.Reason, o.Err())
	}
	return run, err
}

func (f *flowEnv) start(ctx context.Context, p flowPlan) (*client.Run, error) {
	task, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	return f.client.Start(ctx, fanFlow, string(task), nil)
}

// The measures of a flow.
const (
	flowTook   = "start to end"
	flowEvents = "events"
	flowRow    = "a step"
	flowCPU    = "CPU"
	flowAllCPU = "CPU of worker, server and client"
)

// besideHand compares a flow of five agents and five steps with the same by hand; also either
// alone, which shows what costs.
func (f *flowEnv) besideHand(ctx context.Context) error {
	for _, one := range []struct {
		cell         string
		plan         flowPlan
		took, events *target
	}{
		{"5 agents, 5 steps", flowPlan{Agents: 5, Width: 5, Steps: 5}, atMost(1.25), atMost(1.45)},
		{"5 agents alone", flowPlan{Agents: 5, Width: 5}, nil, nil},
		{"5 steps alone", flowPlan{Steps: 5}, nil, nil},
	} {
		if !f.wants(one.cell) {
			continue
		}
		t, err := f.besideHandOf(ctx, one.cell, one.plan)
		if err != nil {
			return err
		}
		f.add(row{Cell: one.cell, What: flowTook, Unit: "ms", Ours: t.of(sideFlow, flowTook), Beside: t.of(sideByHand, flowTook), Reference: sideByHand, Target: one.took})
		f.add(row{Cell: one.cell, What: flowAllCPU, Unit: "ms", Ours: t.of(sideFlow, allCPU), Beside: t.of(sideByHand, allCPU), Reference: sideByHand})
		f.add(row{Cell: one.cell, What: flowEvents, Ours: t.of(sideFlow, flowEvents), Beside: t.of(sideByHand, flowEvents), Reference: sideByHand, Target: one.events})
	}
	return nil
}

func (f *flowEnv) besideHandOf(ctx context.Context, cell string, p flowPlan) (taken, error) {
	measure := func(name string, once func(context.Context) (id string, err error)) side {
		return side{name, func(ctx context.Context, rep int) (sample, error) {
			stop, err := f.profiled(f.workers, fmt.Sprintf("flow-%s-%s-%d", name, cell, rep))
			if err != nil {
				return nil, err
			}
			defer stop()
			var id string
			m, err := clocked(ctx, f.workers, 1, func() (m sample, err error) {
				began := time.Now()
				id, err = once(ctx)
				return sample{flowTook: since(began)}, err
			})
			if err != nil {
				return nil, err
			}
			events, err := eventsOf(ctx, f.temporal, id)
			m[flowEvents] = float64(len(events))
			return m, err
		}}
	}
	return f.compare(ctx, cell,
		measure(sideByHand, func(ctx context.Context) (string, error) { return f.playByHand(ctx, p) }),
		measure(sideFlow, func(ctx context.Context) (string, error) {
			run, err := f.play(ctx, p)
			if err != nil {
				return "", err
			}
			return run.Session, nil
		}))
}

// interrupted measures the time from an interrupt of a wide flow until nothing is in flight.
func (f *flowEnv) interrupted(ctx context.Context) error {
	const cell, width = "60 agents, width 20, interrupt", 20
	if !f.wants(cell) {
		return nil
	}
	p := flowPlan{Agents: 60, Width: width, Leaf: plan{Thinks: true}}
	t, err := f.compare(ctx, cell, side{sideFlow, func(ctx context.Context, _ int) (sample, error) {
		f.workers.forget()
		run, err := f.start(ctx, p)
		if err != nil {
			return nil, err
		}
		at := func(n int) func() (bool, error) {
			return func() (bool, error) { return f.workers.callsInFlight() == n, f.workers.fault() }
		}
		if err := until(ctx, "all agents of the width to work", at(width)); err != nil {
			return nil, err
		}
		time.Sleep(settle)
		began := time.Now()
		if _, err := run.Interrupt(ctx, "measured", nil); err != nil {
			return nil, err
		}
		if err := until(ctx, "no agent to work", at(0)); err != nil {
			return nil, err
		}
		m := sample{quiet: ms(f.workers.lastEnd(true).Sub(began))}
		o, err := run.Wait(ctx)
		if err != nil {
			return nil, err
		}
		m[rootRest] = since(began)
		if o.Status != agent.StatusSuspended {
			return m, fault("interrupted, the flow is %s (%s)", o.Status, o.Reason)
		}
		_, err = run.Cancel(ctx, "measured", nil)
		return m, err
	}})
	if err != nil {
		return err
	}
	f.add(row{Cell: cell, What: quiet, Unit: "ms", Ours: t.of(sideFlow, quiet), Target: within(50)})
	f.add(row{Cell: cell, What: rootRest, Unit: "ms", Ours: t.of(sideFlow, rootRest)})
	return nil
}

// manySteps measures a long flow of local steps. Each step must be made once.
func (f *flowEnv) manySteps(ctx context.Context) error {
	steps := pick(f.bench, 10_000, 100)
	cell := fmt.Sprintf("%s steps in a row", number(float64(steps)))
	if !f.wants(cell) {
		return nil
	}
	few := *f.bench
	few.reps = min(f.reps, 2) // each takes minutes
	t, err := few.inTurns(ctx, cell, side{sideFlow, func(ctx context.Context, _ int) (sample, error) {
		f.workers.forget()
		began := time.Now()
		run, err := f.play(ctx, flowPlan{Steps: steps, Local: true})
		if err != nil {
			return nil, err
		}
		m := sample{flowRow: since(began) / float64(steps)}
		made := f.workers.calls()
		for key, n := range made {
			if n != 1 {
				return m, fault("the step %s was made %d times", key, n)
			}
		}
		if len(made) != steps {
			return m, fault("%d of %d steps were made, in session %s", len(made), steps, run.Session)
		}
		return m, nil
	}})
	if err != nil {
		return err
	}
	f.add(row{Cell: cell, What: flowRow, Unit: "ms", Ours: t.of(sideFlow, flowRow)})
	return nil
}

// playedAgain measures the processor time of running a function again on its results, as a
// worker does that does not have the function in memory, beside reading the results' JSON alone.
func (b *bench) playedAgain(ctx context.Context) error {
	const steps, sideJSON = 1000, "JSON alone"
	for _, bytes := range []int{200, 1000} {
		cell := fmt.Sprintf("1,000 steps of %d bytes, run again", bytes)
		if !b.wants(cell) {
			continue
		}
		f, results, err := playedSteps(steps, bytes)
		if err != nil {
			return err
		}
		t, err := b.compare(ctx, cell, side{sideFlow, clockedAgain(func() error {
			p := playing.Start(f.Function(), fmt.Appendf(nil, `{"steps":%d}`, steps), time.Time{})
			defer p.Close()
			if err := p.Run(ctx, time.Minute, results); err != nil {
				return err
			}
			if _, ended, err := p.Done(); err != nil || !ended {
				return fault("the function did not come to its end: %v", err)
			}
			return nil
		})}, side{sideJSON, clockedAgain(func() error {
			for _, r := range results {
				if err := json.Unmarshal([]byte(r.Text), &playedResult{}); err != nil {
					return err
				}
			}
			return nil
		})})
		if err != nil {
			return err
		}
		limit := within(5)
		if bytes > 200 {
			limit = nil // most of it is the author's JSON
		}
		b.add(row{Cell: cell, What: flowCPU, Unit: "ms", Ours: t.of(sideFlow, flowCPU), Beside: t.of(sideJSON, flowCPU), Reference: sideJSON, Target: limit})
	}
	return nil
}

// clockedAgain measures the processor time of something short, as the mean of several times.
func clockedAgain(do func() error) func(context.Context, int) (sample, error) {
	return func(context.Context, int) (sample, error) {
		const times = 50
		before := spentCPU()
		for range times {
			if err := do(); err != nil {
				return nil, err
			}
		}
		return sample{flowCPU: ms(spentCPU()-before) / times}, nil
	}
}

// playedResult is a result of a step.
type playedResult struct {
	N    int    `json:"n"`
	Text string `json:"text"`
}

// playedSteps returns a flow of steps in a row, and the results of all of them.
func playedSteps(steps, bytes int) (flow.Flow, []playing.Result, error) {
	f := flow.New("again", func(c flow.Context, in flowPlan) (int, error) {
		sum := 0
		for i := range in.Steps {
			v, err := flow.Tool[playedResult](c, regularTool, payload{N: i, Size: bytes}, nil)
			if err != nil {
				return 0, err
			}
			sum += v.N
		}
		return sum, nil
	}, nil)
	var results []playing.Result
	for i := range steps {
		raw, err := json.Marshal(playedResult{i, text(bytes, i)})
		if err != nil {
			return f, nil, err
		}
		path := regularTool
		if i > 0 {
			path = fmt.Sprintf("%s#%d", regularTool, i+1)
		}
		results = append(results, playing.Result{Path: path, Status: agent.CallOK, Text: string(raw), At: time.Unix(int64(i), 0)})
	}
	return f, results, f.Err()
}
