package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	temporal "go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/activities"
)

// The bare side: the same tree without an agent runtime. Every node is a workflow that
// starts its children and an activity. An interrupt is a signal to the root, which
// cancels its activity and signals its children, level by level. In the asking variant, a
// node with children waits for a short activity before it starts them, as an agent must
// call its model.
const (
	sideBare     = "bare"
	sideAsking   = "bare that asks first"
	bareActivity = "bare.work"
	bareQuestion = "bare.ask"
	bareWorkflow = "bare.node"
	bareSignal   = "interrupt"
	bareStatus   = "status"
)

// The answers of a bare node to the query status.
const (
	bareRunning = "running"
	bareHeard   = "interrupted" // its activity has not returned yet
	bareRests   = "suspended"
)

// bareNode is a node with its children. It ends when it is terminated.
func bareNode(ctx workflow.Context, fanout []int, asks bool) error {
	status := bareRunning
	if err := workflow.SetQueryHandler(ctx, bareStatus, func() (string, error) { return status, nil }); err != nil {
		return err
	}
	var children []workflow.ChildWorkflowFuture
	n, below := branch(fanout)
	if n > 0 && asks {
		short := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
		if err := workflow.ExecuteActivity(short, bareQuestion).Get(ctx, nil); err != nil {
			return err
		}
	}
	for i := range n {
		children = append(children, workflow.ExecuteChildWorkflow(workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
			WorkflowID: fmt.Sprintf("%s/%d", workflow.GetInfo(ctx).WorkflowExecution.ID, i), ParentClosePolicy: enums.PARENT_CLOSE_POLICY_TERMINATE,
		}), bareWorkflow, below, asks))
	}
	working, giveUp := workflow.WithCancel(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 10 * time.Minute, HeartbeatTimeout: quietFor, WaitForCancellation: true,
	}))
	selector := workflow.NewSelector(ctx)
	selector.AddFuture(workflow.ExecuteActivity(working, bareActivity), func(workflow.Future) { status = bareRests })
	selector.AddReceive(workflow.GetSignalChannel(ctx, bareSignal), func(c workflow.ReceiveChannel, _ bool) {
		c.Receive(ctx, nil)
		if status != bareRunning {
			return
		}
		status = bareHeard
		giveUp()
		for _, child := range children {
			child.SignalChildWorkflow(ctx, bareSignal, nil)
		}
	})
	for {
		selector.Select(ctx)
	}
}

// bareWork works until it is cancelled, with heartbeats like ours. The SDK also cancels
// it if a busy server takes too long over a heartbeat; then it is tried again.
func bareWork(ctx context.Context) error {
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-beat.C:
			activity.RecordHeartbeat(ctx)
		}
	}
}

// workBare starts a worker for a bare side.
func workBare(side string) func(context.Context, temporal.Client, job, *recorder) (stop func(), err error) {
	return func(_ context.Context, c temporal.Client, j job, _ *recorder) (func(), error) {
		return bareWorker(c, j.queue(side))
	}
}

func bareWorker(c temporal.Client, queue string) (stop func(), err error) {
	const pollers = 10 // as in the program that the design's figures come from
	w := sdk.New(c, queue, sdk.Options{
		MaxConcurrentWorkflowTaskPollers: pollers, MaxConcurrentActivityTaskPollers: pollers,
		WorkerStopTimeout: time.Second, MaxHeartbeatThrottleInterval: activities.HeartbeatThrottle,
	})
	w.RegisterWorkflowWithOptions(bareNode, workflow.RegisterOptions{Name: bareWorkflow})
	w.RegisterActivityWithOptions(bareWork, activity.RegisterOptions{Name: bareActivity})
	w.RegisterActivityWithOptions(func(context.Context) error { return nil }, activity.RegisterOptions{Name: bareQuestion})
	return w.Stop, w.Start()
}

// bareTrees starts bare trees.
type bareTrees struct {
	temporal temporal.Client
	queue    string
	fanout   []int
	asks     bool
}

func (g *bareTrees) start(ctx context.Context) (runningTree, error) {
	run, err := g.temporal.ExecuteWorkflow(ctx, temporal.StartWorkflowOptions{
		ID: fmt.Sprintf("bare-%d", time.Now().UnixNano()), TaskQueue: g.queue,
	}, bareWorkflow, g.fanout, g.asks)
	if err != nil {
		return nil, err
	}
	return &bareTree{g.temporal, run.GetID()}, nil
}

type bareTree struct {
	temporal temporal.Client
	root     string
}

func (t *bareTree) id() string { return t.root }

// interrupt returns when the signal is recorded; the root may not know of it yet.
func (t *bareTree) interrupt(ctx context.Context) (heard, rests bool, err error) {
	return false, false, t.temporal.SignalWorkflow(ctx, t.root, "", bareSignal, nil)
}

func (t *bareTree) status(ctx context.Context) (heard, rests bool, err error) {
	v, err := t.temporal.QueryWorkflow(ctx, t.root, "", bareStatus)
	var late *serviceerror.DeadlineExceeded
	switch {
	case errors.As(err, &late), errors.Is(err, context.DeadlineExceeded):
		return false, false, ctx.Err() // it is asked again
	case err != nil:
		return false, false, err
	}
	var status string
	err = v.Get(&status)
	return status != bareRunning, status == bareRests, err
}

// awaitQuiet waits as long as anything might still begin; here nothing does.
func (t *bareTree) awaitQuiet(context.Context) error {
	time.Sleep(200 * time.Millisecond)
	return nil
}

// end terminates the tree. It resumes nothing: there is nothing to compare.
func (t *bareTree) end(ctx context.Context, _ int, _ *workerProcs) error {
	if err := t.temporal.TerminateWorkflow(ctx, t.root, "", "measured"); err != nil {
		return err
	}
	return until(ctx, "the bare tree to be gone", func() (bool, error) {
		n, err := t.temporal.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{
			Query: fmt.Sprintf("RootWorkflowId = '%s' AND ExecutionStatus = 'Running'", t.root),
		})
		return n.GetCount() == 0, err
	})
}
