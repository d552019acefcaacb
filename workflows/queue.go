package workflows

import (
	"slices"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/signals"
)

// queue holds a run's signals in the order in which they were sent. A channel for
// each name would lose that order, and channels are read later than updates.
type queue struct {
	signals []signal
	wake    func() // wakes the run; nil before it waits
}

type signal struct {
	name string
	data []byte
	bad  *agent.Error // why the payload was refused
}

// remove takes a signal out. It is nearly always the first: to move up the thousands
// that may wait behind it, each time, would take longer than to hear them.
func (q *queue) remove(i int) {
	if i > 0 {
		q.signals = slices.Delete(q.signals, i, i+1)
		return
	}
	q.signals[0] = signal{}
	q.signals = q.signals[1:]
}

// Interceptor puts every signal of a run into its one queue. A worker, a replayer
// and a test environment all need it beside [Shell.Register].
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

// ExecuteWorkflow gives the run its queue.
func (i *inbound) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	return i.Next.ExecuteWorkflow(workflow.WithValue(ctx, queueKey{}, i.queue), in)
}

// HandleSignal is called for every signal, in the order of the history.
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

// queueOf finds the run's queue. Without one no signal would ever be heard: that
// is a fault of the program that registered the workflow, and fails the task.
func queueOf(ctx workflow.Context) *queue {
	q, ok := ctx.Value(queueKey{}).(*queue)
	if !ok {
		panic(agent.Errorf(agent.CodeInternal, "the workflow %s is registered without workflows.Shell.Interceptor", signals.WorkflowType))
	}
	return q
}
