package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/loop"
)

func (r *run) callModel(ctx workflow.Context, e loop.CallModel) {
	in := activities.AskInput{ModelStep: e.ModelStep, Upto: r.share(ctx, e.Seq)}
	timeout := time.Duration(r.state.Spec.ModelTimeout) * time.Duration(len(r.state.Spec.Models()))
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
