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

// lane is where runs of plans are started and steered: ours, or the floor's.
type lane interface {
	side() string
	start(ctx context.Context, id string, p plan) error
	// resting waits until a run rests.
	resting(ctx context.Context, id string) error
	resume(ctx context.Context, id string) error
	// stop ends a run that works, with a last word of its model.
	stop(ctx context.Context, id string) error
	// ended waits for a run's end, and wants it to be a good one.
	ended(ctx context.Context, id string) error
}

// floorLane is the floor's.
type floorLane struct {
	temporal temporal.Client
	queue    string
}

func (l *floorLane) side() string { return sideFloor }

func (l *floorLane) start(ctx context.Context, id string, p plan) error {
	_, err := l.temporal.ExecuteWorkflow(ctx, temporal.StartWorkflowOptions{ID: id, TaskQueue: l.queue}, floorWorkflow, p)
	return err
}

func (l *floorLane) resting(ctx context.Context, id string) error {
	return until(ctx, id+" to rest", func() (bool, error) {
		v, err := l.temporal.QueryWorkflow(ctx, id, "", floorStatus)
		if err != nil {
			return false, err
		}
		var status string
		err = v.Get(&status)
		return status == floorResting, err
	})
}

func (l *floorLane) resume(ctx context.Context, id string) error {
	return l.temporal.SignalWorkflow(ctx, id, "", floorResume, nil)
}

func (l *floorLane) stop(ctx context.Context, id string) error {
	return l.temporal.SignalWorkflow(ctx, id, "", floorStop, nil)
}

func (l *floorLane) ended(ctx context.Context, id string) error {
	return l.temporal.GetWorkflow(ctx, id, "").Get(ctx, nil)
}

// ourLane is ours.
type ourLane struct {
	floorLane // waiting for an end is the same
	client    *client.Client
	runs      sync.Map // *client.Run by session
}

func newOurLane(c temporal.Client, j job) (*ourLane, error) {
	dir, err := store.OpenDir(j.Dir, nil)
	if err != nil {
		return nil, err
	}
	o := &client.Options{TaskQueue: j.queue(sideOurs), Store: dir}
	return &ourLane{floorLane: floorLane{temporal: c}, client: client.New(c, o)}, nil
}

func (l *ourLane) side() string { return sideOurs }

func (l *ourLane) start(ctx context.Context, id string, p plan) error {
	task, err := json.Marshal(p)
	if err != nil {
		return err
	}
	run, err := l.client.Start(ctx, p.agent(), string(task), &client.StartOptions{Session: id})
	l.runs.Store(id, run)
	return err
}

// run is one that was started here.
func (l *ourLane) run(id string) *client.Run {
	run, _ := l.runs.Load(id)
	return run.(*client.Run)
}

func (l *ourLane) resting(ctx context.Context, id string) error {
	o, err := l.run(id).Wait(ctx)
	if err == nil && o.Status != agent.Suspended {
		err = fmt.Errorf("run %s is %s (%s): %w", id, o.Status, o.Reason, o.Err())
	}
	return err
}

func (l *ourLane) resume(ctx context.Context, id string) error {
	_, err := l.run(id).Resume(ctx, nil)
	return err
}

func (l *ourLane) stop(ctx context.Context, id string) error {
	_, err := l.run(id).Stop(ctx, "measured", 0)
	return err
}
