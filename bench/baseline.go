package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	temporal "go.temporal.io/sdk/client"
	sdktemporal "go.temporal.io/sdk/temporal"
	sdk "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/activities"
)

// The baseline: a plain workflow that calls a model and tools, as one would write it by
// hand. It keeps its messages in the workflow. Its model gets a reference to them, and
// finds them in a cache of the process.
const (
	sideBaseline      = "floor"
	baselineWorkflow  = "floor.loop"
	baselineModel     = "floor.model"
	baselineTool      = "floor.tool"
	baselineResume    = "resume" // a signal, and an update
	baselineStop      = "stop"   // a signal
	baselineStatus    = "status" // a query
	baselineSuspended = "resting"
)

// baselineMessage is a message of the baseline's conversation.
type baselineMessage struct {
	Role string   `json:"role"`
	Text string   `json:"text,omitempty"`
	Call *payload `json:"call,omitempty"`
}

type baselineReply struct {
	Message baselineMessage `json:"message"`
	Finish  move            `json:"finish"`
}

type baselineRequest struct {
	Turn int  `json:"turn"`
	Plan plan `json:"plan"`
	// Seen is how many messages the model must see. Messages has them if they are passed
	// by value. Summary requests a last summary.
	Seen     int               `json:"seen"`
	Messages []baselineMessage `json:"messages,omitempty"`
	Summary  bool              `json:"summary,omitempty"`
}

// baseline has the messages of a worker process's runs.
type baseline struct {
	known sync.Map // by run id
}

// baselineRun is a run in progress.
type baselineRun struct {
	plan     plan
	messages []baselineMessage
	status   string
	resumed  bool
	stopped  bool
	giveUp   workflow.CancelFunc
}

func (f *baseline) loop(ctx workflow.Context, p plan) (string, error) {
	r := &baselineRun{plan: p, status: "running"}
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: long, HeartbeatTimeout: quietFor, WaitForCancellation: true,
		RetryPolicy: &sdktemporal.RetryPolicy{MaximumAttempts: 4},
	})
	ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{StartToCloseTimeout: time.Second})
	working, giveUp := workflow.WithCancel(ctx)
	r.giveUp = giveUp
	if err := r.listen(ctx); err != nil {
		return "", err
	}
	for turn := 1; ; turn++ {
		reply, err := f.ask(working, r, turn, false)
		switch {
		case r.stopped:
			last, err := f.ask(ctx, r, turn, true)
			return last.Message.Text, err
		case err != nil:
			return "", err
		}
		r.messages = append(r.messages, reply.Message)
		switch reply.Finish {
		case isDone:
			return reply.Message.Text, nil
		case wantsRest:
			if err := r.rest(ctx); err != nil {
				return "", err
			}
		default:
			if err := r.call(working, *reply.Message.Call); err != nil {
				return "", err
			}
		}
	}
}

// listen handles the run's signals, updates and queries.
func (r *baselineRun) listen(ctx workflow.Context) error {
	workflow.Go(ctx, func(ctx workflow.Context) {
		for {
			workflow.GetSignalChannel(ctx, baselineResume).Receive(ctx, nil)
			r.resumed = true
		}
	})
	workflow.Go(ctx, func(ctx workflow.Context) {
		workflow.GetSignalChannel(ctx, baselineStop).Receive(ctx, nil)
		r.stopped = true
		r.giveUp()
	})
	err := workflow.SetQueryHandler(ctx, baselineStatus, func() (string, error) { return r.status, nil })
	return errors.Join(err, workflow.SetUpdateHandlerWithOptions(ctx, baselineResume, func(workflow.Context) error {
		r.resumed = true
		return nil
	}, workflow.UpdateHandlerOptions{Validator: func() error {
		if r.status != baselineSuspended || r.resumed {
			return errors.New("it does not rest")
		}
		return nil
	}}))
}

func (r *baselineRun) rest(ctx workflow.Context) error {
	r.status = baselineSuspended
	err := workflow.Await(ctx, func() bool { return r.resumed || r.stopped })
	r.status, r.resumed = "running", false
	return err
}

func (f *baseline) ask(ctx workflow.Context, r *baselineRun, turn int, summary bool) (reply baselineReply, err error) {
	in := baselineRequest{Turn: turn, Plan: r.plan, Seen: len(r.messages), Summary: summary}
	if r.plan.ByValue {
		in.Messages = r.messages
	}
	f.known.Store(workflow.GetInfo(ctx).WorkflowExecution.RunID, r.messages) //workflowcheck:ignore it changes nothing that the run sees
	err = workflow.ExecuteActivity(ctx, baselineModel, in).Get(ctx, &reply)
	return reply, err
}

func (r *baselineRun) call(ctx workflow.Context, in payload) error {
	start := workflow.ExecuteActivity
	if r.plan.Local {
		start = workflow.ExecuteLocalActivity
	}
	var out string
	err := start(ctx, baselineTool, in).Get(ctx, &out)
	r.messages = append(r.messages, baselineMessage{Role: "tool", Text: out})
	return err
}

// model is the baseline's model activity.
func (f *baseline) model(ctx context.Context, in baselineRequest) (baselineReply, error) {
	defer beat(ctx)()
	if in.Summary {
		return baselineReply{Message: baselineMessage{Role: "assistant", Text: summary}, Finish: isDone}, nil
	}
	messages := in.Messages
	if here, ok := f.known.Load(activity.GetInfo(ctx).WorkflowExecution.RunID); ok && !in.Plan.ByValue {
		messages = here.([]baselineMessage)
	}
	// A reply to fewer messages would be cheaper, and the comparison unfair.
	if len(messages) < in.Seen {
		return baselineReply{}, fmt.Errorf("the model sees %d messages of %d", len(messages), in.Seen)
	}
	in.Plan.wait(ctx)
	r := baselineReply{Message: baselineMessage{Role: "assistant", Text: text(in.Plan.Size, in.Turn)}, Finish: in.Plan.next(in.Turn)}
	switch r.Finish {
	case callsTool:
		r.Message.Call = &payload{N: in.Turn, Size: in.Plan.Size}
	case thinks:
		<-ctx.Done()
		return r, context.Cause(ctx)
	}
	return r, nil
}

func baselineCall(ctx context.Context, in payload) (string, error) {
	if !activity.GetInfo(ctx).IsLocalActivity {
		defer beat(ctx)()
	}
	return text(in.Size, -in.N&0xffff), nil
}

// beatEvery is how often our activities send heartbeats, and quietFor how long they may
// send none.
const (
	quietFor  = activities.CallHeartbeat
	beatEvery = quietFor * 2 / 5
)

// beat sends heartbeats as often as our activities do.
func beat(ctx context.Context) (stop func()) {
	done := make(chan struct{})
	go func() {
		tick := time.NewTicker(beatEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				activity.RecordHeartbeat(ctx)
			case <-done:
				return
			}
		}
	}()
	return func() { close(done) }
}

func (f *baseline) register(r interface {
	RegisterWorkflowWithOptions(w any, o workflow.RegisterOptions)
}) {
	r.RegisterWorkflowWithOptions(f.loop, workflow.RegisterOptions{Name: baselineWorkflow})
}

// workBaseline starts a worker with the same options as ours.
func workBaseline(_ context.Context, c temporal.Client, j job, _ *recorder) (stop func(), err error) {
	f := &baseline{}
	w := sdk.New(c, j.queue(sideBaseline), sdk.Options{
		WorkerStopTimeout: time.Second, MaxHeartbeatThrottleInterval: activities.HeartbeatThrottle,
	})
	f.register(w)
	w.RegisterActivityWithOptions(f.model, activity.RegisterOptions{Name: baselineModel})
	w.RegisterActivityWithOptions(baselineCall, activity.RegisterOptions{Name: baselineTool})
	return w.Stop, w.Start()
}
