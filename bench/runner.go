package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	temporal "go.temporal.io/sdk/client"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/store"
)

// runner starts and steers runs of plans: ours, or the baseline's.
type runner interface {
	side() string
	start(ctx context.Context, id string, p plan) error
	// awaitSuspended waits until a run is suspended.
	awaitSuspended(ctx context.Context, id string) error
	resume(ctx context.Context, id string) error
	// stop ends a working run, with a summary of its model.
	stop(ctx context.Context, id string) error
	// awaitEnd waits for a run's end. A bad end is an error.
	awaitEnd(ctx context.Context, id string) error
}

// baselineRunner runs the baseline.
type baselineRunner struct {
	temporal temporal.Client
	queue    string
}

func (l *baselineRunner) side() string { return sideBaseline }

func (l *baselineRunner) start(ctx context.Context, id string, p plan) error {
	_, err := l.temporal.ExecuteWorkflow(ctx, temporal.StartWorkflowOptions{ID: id, TaskQueue: l.queue}, baselineWorkflow, p)
	return err
}

func (l *baselineRunner) awaitSuspended(ctx context.Context, id string) error {
	return until(ctx, id+" to rest", func() (bool, error) {
		v, err := l.temporal.QueryWorkflow(ctx, id, "", baselineStatus)
		if err != nil {
			return false, err
		}
		var status string
		err = v.Get(&status)
		return status == baselineSuspended, err
	})
}

func (l *baselineRunner) resume(ctx context.Context, id string) error {
	return l.temporal.SignalWorkflow(ctx, id, "", baselineResume, nil)
}

func (l *baselineRunner) stop(ctx context.Context, id string) error {
	return l.temporal.SignalWorkflow(ctx, id, "", baselineStop, nil)
}

func (l *baselineRunner) awaitEnd(ctx context.Context, id string) error {
	return l.temporal.GetWorkflow(ctx, id, "").Get(ctx, nil)
}

// fermataRunner runs ours.
type fermataRunner struct {
	baselineRunner // waiting for an end is the same
	client         *client.Client
	runs           sync.Map // *client.Run by session
}

func newFermataRunner(c temporal.Client, j job) (*fermataRunner, error) {
	dir, err := store.OpenDir(j.Dir, nil)
	if err != nil {
		return nil, err
	}
	o := &client.Options{TaskQueue: j.queue(sideFermata), Store: dir}
	return &fermataRunner{baselineRunner: baselineRunner{temporal: c}, client: client.New(c, o)}, nil
}

func (l *fermataRunner) side() string { return sideFermata }

func (l *fermataRunner) start(ctx context.Context, id string, p plan) error {
	task, err := json.Marshal(p)
	if err != nil {
		return err
	}
	run, err := l.client.Start(ctx, p.agent(), string(task), &client.StartOptions{Session: id})
	l.runs.Store(id, run)
	return err
}

// run returns a run that was started here.
func (l *fermataRunner) run(id string) *client.Run {
	run, _ := l.runs.Load(id)
	return run.(*client.Run)
}

func (l *fermataRunner) awaitSuspended(ctx context.Context, id string) error {
	o, err := l.run(id).Wait(ctx)
	if err == nil && o.Status != agent.StatusSuspended {
		err = fmt.Errorf("run %s is %s (%s): %w", id, o.Status, o.Reason, o.Err())
	}
	return err
}

func (l *fermataRunner) resume(ctx context.Context, id string) error {
	_, err := l.run(id).Resume(ctx, nil)
	return err
}

func (l *fermataRunner) stop(ctx context.Context, id string) error {
	_, err := l.run(id).Stop(ctx, "measured", nil)
	return err
}
