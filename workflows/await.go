package workflows

import (
	"slices"

	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/loop"
)

// awaited is a future, and what is done once when it is ready.
type awaited struct {
	future workflow.Future
	do     func()
}

// onReady does something once when a future is ready.
func (r *run) onReady(f workflow.Future, do func()) {
	r.awaited = append(r.awaited, awaited{f, do})
}

// await makes the machine's input of a future when it is ready.
func await[Out any](ctx workflow.Context, r *run, f durable.Future[Out], input func(Out, *agent.Error) loop.Input) {
	r.onReady(f.Raw, func() {
		if in := input(f.Get(ctx)); in != nil {
			r.stepLive(in)
		}
	})
}

// selector awaits whatever comes next: an interrupt, a pause, a resume or any other signal,
// which all ring one bell so that their order is kept; a cancellation of the workflow; a
// result; the clock. It is made anew each time, since the SDK's selector keeps every future
// that it was ever given, with its payload. It only wakes the run: settle takes what is
// ready, in the machine's order and not the selector's.
func (r *run) selector() workflow.Selector {
	s := workflow.NewNamedSelector(r.ctx, "signals, results and the clock")
	s.AddReceive(r.wakeup, func(bell workflow.ReceiveChannel, _ bool) { bell.Receive(r.ctx, nil) })
	if !r.cancelSeen {
		s.AddReceive(r.outer.Done(), func(workflow.ReceiveChannel, bool) {})
	}
	for _, a := range r.awaited {
		s.AddFuture(a.future, func(workflow.Future) {})
	}
	return s
}

// wake lets the run look again at what has come.
func (r *run) wake() { r.wakeup.SendAsync(true) }

// nextReady is the first of the awaited futures that is ready; -1 where none is.
func (r *run) nextReady() int {
	return slices.IndexFunc(r.awaited, func(a awaited) bool { return a.future.IsReady() })
}

// takeReady takes all that is ready: first what came of model and tool calls, so that
// nothing finished is dropped, then a cancellation of the workflow, then what was said.
func (r *run) takeReady() {
	for i := r.nextReady(); i >= 0 && !r.over; i = r.nextReady() {
		do := r.awaited[i].do
		r.awaited = slices.Delete(r.awaited, i, i+1) // and clears its place
		do()
	}
	if r.cancelled() {
		r.cancelSeen = true
		r.stepLive(loop.Cancel{})
	}
	r.takeSignals()
}

// cancelled reports whether the workflow was cancelled and the machine does not know.
func (r *run) cancelled() bool { return !r.cancelSeen && r.outer.Err() != nil }
