package signals

import (
	"context"
	"reflect"

	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"

	"github.com/fermata-agents/fermata/internal/durable"
)

// Settled calls ask for the tail of an execution, and returns the part of the answer that
// is final. info describes the execution as it was before the call.
//
// A worker without the run in its cache replays the history. If the history has grown
// since the run's last task, the replay goes ahead of the next task, which may decide
// otherwise. A query during an open task is answered after it. So if the history has
// grown in between, Settled asks again, and returns what both answers have in common.
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
		was, info = is, now // a part was stored between the two
	}
	return was, nil
}

// agreed returns the common beginning of two answers.
func agreed(a, b OpenTail) OpenTail {
	n := 0
	for n < min(len(a.Events), len(b.Events)) && reflect.DeepEqual(a.Events[n], b.Events[n]) {
		n++
	}
	return OpenTail{Head: b.Head, Events: b.Events[:n], More: a.More && n == len(a.Events)}
}

// ReadSettled is [ReadTail] of one execution, with only what is final (see [Settled]).
func ReadSettled(ctx context.Context, c client.Client, session string, info *workflowpb.WorkflowExecutionInfo) (OpenTail, error) {
	return Settled(ctx, c, session, info, func() (OpenTail, error) {
		return ReadTail(ctx, c, session, info.GetExecution().GetRunId())
	})
}
