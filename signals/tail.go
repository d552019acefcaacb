package signals

import (
	"context"
	"reflect"

	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"

	"github.com/fermata-agents/fermata/internal/durable"
)

// Settled asks an execution, by ask, for what is open of its run's log, and returns
// what of the answer is so for good. info is the execution as it was before.
//
// A worker that does not have the run at hand makes it anew from its history, and
// where that has grown since the run's last task, the worker goes ahead of the next
// one, which may go another way. A question that comes while a task is open is
// answered behind it. So where the history has grown meanwhile the same is asked
// again, and what both answers tell is so.
func Settled(ctx context.Context, c client.Client, session string, info *workflowpb.WorkflowExecutionInfo, ask func() (OpenTail, error)) (OpenTail, error) {
	was, err := ask()
	if err != nil {
		return was, err
	}
	for len(was.Events) > 0 {
		d, err := c.DescribeWorkflowExecution(ctx, session, info.GetExecution().GetRunId())
		if err != nil {
			return was, durable.FromRPC(err)
		}
		now := d.GetWorkflowExecutionInfo()
		if now.GetHistoryLength() == info.GetHistoryLength() {
			return was, nil
		}
		is, err := ask()
		if err != nil || is.Head == was.Head {
			return agreed(was, is), err
		}
		was, info = is, now // a part was sealed between the two
	}
	return was, nil
}

// agreed is what two answers have in common.
func agreed(a, b OpenTail) OpenTail {
	n := 0
	for n < min(len(a.Events), len(b.Events)) && reflect.DeepEqual(a.Events[n], b.Events[n]) {
		n++
	}
	return OpenTail{Head: b.Head, Events: b.Events[:n], More: a.More && n == len(a.Events)}
}

// ReadSettled is [ReadTail] of one execution, and [Settled].
func ReadSettled(ctx context.Context, c client.Client, session string, info *workflowpb.WorkflowExecutionInfo) (OpenTail, error) {
	return Settled(ctx, c, session, info, func() (OpenTail, error) {
		return ReadTail(ctx, c, session, info.GetExecution().GetRunId())
	})
}
