package workflows

import (
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/internal/wire"
)

func (r *run) callModel(ctx workflow.Context, e loop.CallModel) {
	in := activities.ModelInput{ModelArgs: e.ModelArgs, UpTo: r.cacheTail(ctx, e.Seq)}
	// All models of the fallback chain may be asked within one attempt.
	timeout := time.Duration(r.state.Spec.ModelTimeout) * time.Duration(len(r.state.Spec.Models()))
	a := modelCall{r: r, ctx: r.work, in: in, delayed: func(until time.Time, err *agent.Error) {
		r.stepLive(loop.ModelDelayed{AskSeq: e.Seq, Until: until, Err: err})
	}, options: workflow.ActivityOptions{
		StartToCloseTimeout: timeout + timeoutMargin, HeartbeatTimeout: activities.CallHeartbeat, WaitForCancellation: true, RetryPolicy: &retryForever, Summary: r.state.Spec.Model,
	}, input: func(reply wire.Reply, err *agent.Error) loop.Input {
		if err != nil {
			return loop.ModelFailed{AskSeq: e.Seq, Err: err}
		}
		return loop.ModelReplied{AskSeq: e.Seq, Reply: reply}
	}}
	if r.state.Spec.ModelQueue != "" {
		// The size decides whether another process may fetch the log, or leaves the call
		// to this one.
		a.in.Fetch = r.state.Log.Bytes
		if r.state.Log.Head != "" {
			a.in.Fetch += assumedSealedBytes
		}
		a.callOnRatedQueue()
		return
	}
	start(a.ctx, r, a.step(""), a.input)
}

// assumedSealedBytes stands for the stored part of a log, whose size no run knows.
const assumedSealedBytes = 256 << 10

// modelCall is a model call that is repeated until it has an answer.
type modelCall struct {
	r       *run
	ctx     workflow.Context
	in      activities.ModelInput
	options workflow.ActivityOptions
	input   func(wire.Reply, *agent.Error) loop.Input
	delayed func(until time.Time, err *agent.Error)
	lost    int // in a row
}

func (a modelCall) step(queue string) activityCall[activities.ModelInput, wire.Reply] {
	options := a.options
	options.TaskQueue = queue
	return activityCall[activities.ModelInput, wire.Reply]{activity: activities.CallModel, in: a.in, options: options, lane: activities.ModelLane, countLostWorkers: true, lost: a.lost, setAttempts: setModelAttempts, onDelay: a.delayed, takeOver: (*activities.ModelInput).TakeOver, addCharges: activities.ModelInput.AddCharges}
}

func setModelAttempts(s *activityCall[activities.ModelInput, wire.Reply], n int) { s.in.Tried += n }

// callOnRatedQueue makes the call on the provider's task queue. The server limits how
// many activities of that queue start in all processes together. A process that would
// have to fetch a long log does not make the call. It answers FinishElsewhere: the rate
// allows one call, and this process makes it.
func (a modelCall) callOnRatedQueue() {
	start(a.ctx, a.r, a.step(a.r.state.Spec.ModelQueue), func(reply wire.Reply, err *agent.Error) loop.Input {
		if err != nil || reply.Finish != wire.FinishElsewhere {
			return a.input(reply, err)
		}
		a.in.Carryover = nil
		if len(reply.Charges) > 0 {
			a.in.Carryover = &activities.Carryover{Charges: reply.Charges}
		}
		a.callHere()
		return nil
	})
}

// callHere makes one attempt in the run's own process. The rate allowed that one; the
// next goes to the provider's queue again.
func (a modelCall) callHere() {
	in, options := a.in, a.options
	in.Fetch, in.Lane = 0, activities.RatedLane(a.r.state.Spec.Model)
	// The server must not retry: each attempt needs the rate's permission.
	options.RetryPolicy = &temporal.RetryPolicy{MaximumAttempts: 1}
	await(a.r.ctx, a.r, activities.CallModel.Start(a.ctx, options, in), func(reply wire.Reply, err *agent.Error) loop.Input {
		switch {
		case err == nil:
		case errors.As(err, new(durable.NoSlot)): // this process has no free slot
			a.in.Fetch = 0
			a.in.TakeOver(err)
			a.callOnRatedQueue()
			return nil
		case errors.Is(err, durable.ErrLost):
			a.in.TakeOver(err)
			if a.lost++; a.lost < maxLostWorkers {
				a.r.later(a.ctx, lostWorkerDelay(a.ctx, a.lost), a.callOnRatedQueue)
				return nil
			}
			err = a.in.AddCharges(lostWorkerError())
		case err.Retryable:
			a.in.Tried++
			// Outside of the rated queue no retry policy spaces attempts, so the run
			// waits itself.
			a.in.TakeOver(err)
			a.lost = 0
			wait := max(err.RetryAfter, time.Second)
			if errors.As(err, new(durable.Delayed)) {
				a.delayed(workflow.Now(a.ctx).Add(wait), err)
			}
			a.r.later(a.ctx, wait, a.callOnRatedQueue)
			return nil
		}
		return a.input(reply, err)
	})
}
