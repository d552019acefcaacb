package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/handoff"
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
	options := workflow.ActivityOptions{
		TaskQueue: r.state.Spec.ModelQueue, StartToCloseTimeout: timeout + grace, HeartbeatTimeout: activities.CallHeartbeat, WaitForCancellation: true,
		RetryPolicy: &forever, Summary: r.state.Spec.Model,
	}
	start(r.work, r, step[activities.AskInput, agent.Reply]{activities.AskModel, in, options, activities.ModelLane}, func(reply agent.Reply, err *agent.Error) loop.Input {
		if err != nil {
			return loop.ModelFailed{Ask: e.Seq, Err: err}
		}
		return loop.Replied{Ask: e.Seq, Reply: reply}
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
