package workflows

import (
	"slices"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/signals"
)

// queue holds a run's signals in the order in which they were sent. Channels, one for
// each name, would lose that order, and the SDK reads them after it has run updates.
type queue struct {
	signals []signal
	wake    func() // wakes the run; nil before it waits
}

type signal struct {
	name string
	data []byte
	bad  *agent.Error // why the payload was refused
}

// remove takes a signal out. It is nearly always the first. Moving up thousands that wait
// behind it, each time, would take longer than stepping them.
func (q *queue) remove(i int) {
	if i > 0 {
		q.signals = slices.Delete(q.signals, i, i+1)
		return
	}
	q.signals[0] = signal{} // lets its payload be freed
	q.signals = q.signals[1:]
}

// Interceptor returns the interceptor that puts every signal of a run into one queue. A
// worker, a replayer and a test environment need it beside [Shell.Register].
func (s *Shell) Interceptor() interceptor.WorkerInterceptor { return &signalInterceptor{} }

type signalInterceptor struct {
	interceptor.WorkerInterceptorBase
}

func (*signalInterceptor) InterceptWorkflow(ctx workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	if workflow.GetInfo(ctx).WorkflowType.Name != signals.WorkflowType {
		return next
	}
	return &inbound{WorkflowInboundInterceptorBase: interceptor.WorkflowInboundInterceptorBase{Next: next}, queue: &queue{}}
}

type inbound struct {
	interceptor.WorkflowInboundInterceptorBase
	queue *queue
}

type queueKey struct{}

// ExecuteWorkflow passes the queue to the workflow.
func (i *inbound) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	return i.Next.ExecuteWorkflow(workflow.WithValue(ctx, queueKey{}, i.queue), in)
}

// HandleSignal queues a signal. The SDK calls it for every signal, in the order of the
// history. It does not call Next, so that no channel keeps the signal too.
func (i *inbound) HandleSignal(_ workflow.Context, in *interceptor.HandleSignalInput) error {
	var payload *commonpb.Payload
	if p := in.Arg.GetPayloads(); len(p) > 0 {
		payload = p[0]
	}
	data, bad := dataOf(payload)
	i.queue.signals = append(i.queue.signals, signal{in.SignalName, data, bad})
	if i.queue.wake != nil {
		i.queue.wake()
	}
	return nil
}

// queueOf returns the run's queue. Without one the run would receive no signal: the
// program registered the workflow without its interceptor, and the task fails.
func queueOf(ctx workflow.Context) *queue {
	q, ok := ctx.Value(queueKey{}).(*queue)
	if !ok {
		panic(agent.Errorf(agent.CodeInternal, "the workflow %s is registered without workflows.Shell.Interceptor", signals.WorkflowType))
	}
	return q
}
