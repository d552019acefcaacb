package workflows

import (
	"slices"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/signals"
)

// queue has a run's signals in the order of the history. Channels, one for
// each name, would lose that order, and the SDK reads them after it has run updates.
type queue struct {
	signals []signal
	wake    func() // wakes the run; nil before it waits
}

type signal struct {
	name string
	data []byte
	bad  *agent.Error // why the payload was refused
	// decoded is the signal as the data converter of the worker's client decodes it; nil if
	// that changes nothing.
	decoded *signal
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
func (i *inbound) HandleSignal(ctx workflow.Context, in *interceptor.HandleSignalInput) error {
	var payload *commonpb.Payload
	if p := in.Arg.GetPayloads(); len(p) > 0 {
		payload = p[0]
	}
	s := signal{name: in.SignalName}
	s.data, s.bad = dataOf(payload)
	if durable.Foreign(payload) {
		s.decoded = decodedBy(ctx, s.name, payload)
	}
	i.queue.signals = append(i.queue.signals, s)
	if i.queue.wake != nil {
		i.queue.wake()
	}
	return nil
}

// decodedBy returns a signal as the context's data converter decodes it; nil if that can't.
// The SDK decodes all other arguments itself, but gives signals to a channel. A channel of
// our own decodes this one.
func decodedBy(ctx workflow.Context, name string, p *commonpb.Payload) *signal {
	c := workflow.NewBufferedChannel(ctx, 1)
	c.SendAsync(&commonpb.Payloads{Payloads: []*commonpb.Payload{p}})
	var raw converter.RawValue
	if !c.ReceiveAsync(&raw) || durable.Foreign(raw.Payload()) {
		return nil
	}
	data, bad := dataOf(raw.Payload())
	return &signal{name: name, data: data, bad: bad}
}

// decodedSignalsSince is the revision from which a run takes signals that a codec of the user's own has
// encoded. Before, it refused them, or recorded a change of its own.
const decodedSignalsSince = 2

// decode returns a signal as the run takes it.
func (r *run) decode(s signal) signal {
	if s.decoded == nil || r.revision < decodedSignalsSince {
		return s
	}
	return *s.decoded
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
