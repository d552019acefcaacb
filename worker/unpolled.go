package worker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/tool"
)

// polledFor is how long a starting worker asks who polls the task queues that its tools
// call.
const polledFor = 5 * time.Second

// calledQueue is a task queue that tools call.
type calledQueue struct {
	name  string
	kind  enums.TaskQueueType
	tools []string
}

// calledQueues returns the task queues that tools call.
func calledQueues(tools []tool.Tool) (queues []calledQueue) {
	for _, t := range tools {
		to := t.Spec().Temporal
		if to == nil || to.TaskQueue == "" {
			continue
		}
		q := calledQueue{to.TaskQueue, enums.TASK_QUEUE_TYPE_ACTIVITY, nil}
		if to.Kind == agent.TemporalWorkflow {
			q.kind = enums.TASK_QUEUE_TYPE_WORKFLOW
		}
		i := slices.IndexFunc(queues, func(o calledQueue) bool { return o.name == q.name && o.kind == q.kind })
		if i < 0 {
			i, queues = len(queues), append(queues, q)
		}
		queues[i].tools = append(queues[i].tools, t.Spec().Name)
	}
	return queues
}

// warnOfUnpolled warns of task queues that tools call and that no worker polls: a call would
// wait. A worker may come later, so it is no fault. If the server does not say, there is no
// warning.
func (w *Worker) warnOfUnpolled(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, polledFor)
	defer cancel()
	for _, q := range w.called {
		d, err := w.temporal.DescribeTaskQueue(ctx, q.name, q.kind)
		if err != nil || len(d.GetPollers()) > 0 {
			continue
		}
		what := "activities"
		if q.kind == enums.TASK_QUEUE_TYPE_WORKFLOW {
			what = "workflows"
		}
		w.logger.Warn(fmt.Sprintf("no worker polls the task queue %s for %s, which the tools %s call: calls wait until one does", q.name, what, strings.Join(q.tools, ", ")))
	}
}
