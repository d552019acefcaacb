package workflows

import (
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/handoff"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/loop"
)

func (r *run) callModel(ctx workflow.Context, e loop.CallModel) {
	in := activities.AskInput{
		Session: r.state.Session, Run: r.state.Run, Turn: e.Turn, Upto: r.share(ctx, e.Seq), AfterToolResult: e.AfterToolResult,
		Note: e.Note, Squeeze: e.ForceFit, Within: agent.Duration(e.Within), Heard: r.state.Holds.Heard, Parent: r.parent(), Trace: r.state.Stint.Trace,
	}
	timeout := time.Duration(r.state.Spec.ModelTimeout) * time.Duration(len(r.state.Spec.Models()))
	switch e.Summary {
	case loop.SumHandoff:
		in.Summary, in.Note, in.Output = true, handoff.Prompt, handoff.SummarySchema()
	case loop.SumFresh:
		in.Summary, in.Note = true, freshPrompt
	case loop.SumCompact:
		in.Compact, in.Note = true, compactPrompt
	}
	a := asking{r: r, ctx: r.work, in: in, options: workflow.ActivityOptions{
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
	lost    int // workers in a row
}

func (a asking) step(queue string) step[activities.AskInput, agent.Reply] {
	options := a.options
	options.TaskQueue = queue
	return step[activities.AskInput, agent.Reply]{do: activities.AskModel, in: a.in, options: options, lane: activities.ModelLane, mayKill: true, lost: a.lost}
}

// rated makes the call where the provider's rate allows it. The server counts what it
// hands out of the provider's task queue, to any process. One that would have to fetch a
// long log does not make the call, but says that it may be made: then it is made here.
func (a asking) rated() {
	start(a.ctx, a.r, a.step(a.r.state.Spec.ModelQueue), func(reply agent.Reply, err *agent.Error) loop.Input {
		if err != nil || reply.Finish != agent.FinishNear {
			return a.input(reply, err)
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
		case errors.Is(err, durable.ErrFull): // this process makes as many calls as it may
			a.in.Fetch = 0
			a.rated()
			return nil
		case errors.Is(err, durable.ErrLost):
			if a.lost++; a.lost < maxLost {
				a.r.later(a.ctx, lostWait(a.ctx, a.lost), a.rated)
				return nil
			}
			err = errLost()
		case err.Retryable:
			a.in.Tried++
			a.lost = 0
			a.r.later(a.ctx, max(err.RetryAfter, time.Second), a.rated)
			return nil
		}
		return a.input(reply, err)
	})
}

// parent is the run above at which steps look, since its end ends this one; nil for a
// root, and for a run that its parent waits for: the server cancels that one when the
// parent closes, however that happens.
func (r *run) parent() *agent.Parent {
	if b := r.state.Parent.Birth; b == nil || !b.Background {
		return nil
	}
	return &r.state.Parent.Birth.Parent
}

// freshPrompt asks for what the run goes on with in the place of all that was said.
const freshPrompt = "Sum up this conversation for yourself: what the task is, what was done and found, what is decided, what is still to do, " +
	"and every name, number and path that you need to go on. Your summary will replace the conversation. Answer with the summary alone."

// compactPrompt asks for what stands in the place of what is older.
const compactPrompt = "Sum up this conversation so far: it has become too long, and your summary will replace all but its newest messages. " +
	"Keep what the task is, what was done and found, what is decided, what is still to do, and every name, number and path that may be needed. Answer with the summary alone."
