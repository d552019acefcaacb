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
)

func (r *run) callModel(ctx workflow.Context, e loop.CallModel) {
	in := activities.AskInput{ModelStep: e.ModelStep, Upto: r.share(ctx, e.Seq)}
	timeout := time.Duration(r.state.Spec.ModelTimeout) * time.Duration(len(r.state.Spec.Models()))
	a := asking{r: r, ctx: r.work, in: in, delayed: func(until time.Time, err *agent.Error) {
		r.take(loop.Delayed{Ask: e.Seq, Until: until, Err: err})
	}, options: workflow.ActivityOptions{
		StartToCloseTimeout: timeout + grace, HeartbeatTimeout: activities.CallHeartbeat, WaitForCancellation: true, RetryPolicy: &forever, Summary: r.state.Spec.Model,
	}, input: func(reply agent.Reply, err *agent.Error) loop.Input {
		if err != nil {
			return loop.ModelFailed{Ask: e.Seq, Err: err}
		}
		return loop.Replied{Ask: e.Seq, Reply: reply}
	}}
	if r.state.Spec.ModelQueue != "" {
		a.in.Fetch = r.state.Log.Bytes
		if r.state.Log.Head != "" {
			a.in.Fetch += sealedBytes
		}
		a.rated()
		return
	}
	start(a.ctx, r, a.step(""), a.input)
}

// sealedBytes is what is assumed of the sealed part of a log, whose size no run knows.
const sealedBytes = 256 << 10

// asking is a model call under way.
type asking struct {
	r       *run
	ctx     workflow.Context
	in      activities.AskInput
	options workflow.ActivityOptions
	input   func(agent.Reply, *agent.Error) loop.Input
	delayed func(until time.Time, err *agent.Error)
	lost    int // workers in a row
}

func (a asking) step(queue string) step[activities.AskInput, agent.Reply] {
	options := a.options
	options.TaskQueue = queue
	return step[activities.AskInput, agent.Reply]{do: activities.AskModel, in: a.in, options: options, lane: activities.ModelLane, mayKill: true, lost: a.lost, tried: modelTried, delayed: a.delayed, carry: (*activities.AskInput).Carry, unpaid: activities.AskInput.Unpaid}
}

func modelTried(s *step[activities.AskInput, agent.Reply], n int) { s.in.Tried += n }

// rated makes the call where the provider's rate allows it. The server counts what it
// hands out of the provider's task queue, to any process. One that would have to fetch a
// long log does not make the call, but says that it may be made: then it is made here.
func (a asking) rated() {
	start(a.ctx, a.r, a.step(a.r.state.Spec.ModelQueue), func(reply agent.Reply, err *agent.Error) loop.Input {
		if err != nil || reply.Finish != agent.FinishNear {
			return a.input(reply, err)
		}
		a.in.Left = nil
		if len(reply.Spent) > 0 {
			a.in.Left = &activities.Left{Spent: reply.Spent}
		}
		a.near()
		return nil
	})
}

// near makes a call here that may be made. It has the leave for one attempt: the next goes
// to the provider's queue again.
func (a asking) near() {
	in, options := a.in, a.options
	in.Fetch, in.Lane = 0, activities.RatedLane(a.r.state.Spec.Model)
	options.RetryPolicy = &temporal.RetryPolicy{MaximumAttempts: 1}
	await(a.r.ctx, a.r, activities.AskModel.Start(a.ctx, options, in), func(reply agent.Reply, err *agent.Error) loop.Input {
		switch {
		case err == nil:
		case errors.As(err, new(durable.Full)): // this process makes as many calls as it may
			a.in.Fetch = 0
			a.in.Carry(err)
			a.rated()
			return nil
		case errors.Is(err, durable.ErrLost):
			a.in.Carry(err)
			if a.lost++; a.lost < maxLost {
				a.r.later(a.ctx, lostWait(a.ctx, a.lost), a.rated)
				return nil
			}
			err = a.in.Unpaid(errLost())
		case err.Retryable:
			a.in.Tried++
			a.in.Carry(err)
			a.lost = 0
			wait := max(err.RetryAfter, time.Second)
			if errors.As(err, new(durable.Delayed)) {
				a.delayed(workflow.Now(a.ctx).Add(wait), err)
			}
			a.r.later(a.ctx, wait, a.rated)
			return nil
		}
		return a.input(reply, err)
	})
}
