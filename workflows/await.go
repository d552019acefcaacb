package workflows

import (
	"slices"

	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/loop"
)

// awaited is a future, and what to do once when it is ready.
type awaited struct {
	future workflow.Future
	do     func()
}

// onReady calls do once when a future is ready, from takeReady.
func (r *run) onReady(f workflow.Future, do func()) {
	r.awaited = append(r.awaited, awaited{f, do})
}

// await makes an input of a future when it is ready. input may return nil for none.
func await[Out any](ctx workflow.Context, r *run, f durable.Future[Out], input func(Out, *agent.Error) loop.Input) {
	r.onReady(f.Raw, func() {
		if in := input(f.Get(ctx)); in != nil {
			r.stepLive(in)
		}
	})
}

// selector waits for anything that the run can take: a signal, a cancellation of the
// workflow, a result, or a timer.
//
// All signals wake the loop through one channel, so their order is kept. The selector is
// made again each time: the SDK's selector keeps every future that it was given, with its
// payload. It only wakes the run; takeReady takes what is ready, in the machine's order
// and not the selector's.
func (r *run) selector() workflow.Selector {
	s := workflow.NewNamedSelector(r.ctx, "signals, results and the clock")
	s.AddReceive(r.wakeup, func(bell workflow.ReceiveChannel, _ bool) { bell.Receive(r.ctx, nil) })
	// Done stays ready for ever. A selector that had it again would never wait.
	if !r.cancelSeen {
		s.AddReceive(r.outer.Done(), func(workflow.ReceiveChannel, bool) {})
	}
	for _, a := range r.awaited {
		s.AddFuture(a.future, func(workflow.Future) {})
	}
	return s
}

// wake makes the run look again for something to take.
func (r *run) wake() { r.wakeup.SendAsync(true) }

// nextReady returns the index of the first awaited future that is ready; -1 if there is
// none.
func (r *run) nextReady() int {
	return slices.IndexFunc(r.awaited, func(a awaited) bool { return a.future.IsReady() })
}

// takeReady takes all that is ready: results of activities and children first, so that
// nothing finished is lost, then a cancellation of the workflow, then signals.
func (r *run) takeReady() {
	r.recorded(r.ctx) // also a task in which nothing asks may be the last one that is replayed
	for i := r.nextReady(); i >= 0 && !r.over; i = r.nextReady() {
		// Remove it before do: do may add futures, and must not run twice.
		do := r.awaited[i].do
		r.awaited = slices.Delete(r.awaited, i, i+1) // which also clears the freed slot of the slice
		do()
	}
	if r.cancelled() {
		r.cancelSeen = true
		r.stepLive(loop.Cancel{})
	}
	r.takeSignals()
	if r.signalsAsked {
		r.signalsAsked = false
		r.stepLive(loop.SignalsTaken{})
	}
}

// cancelled reports whether the workflow was cancelled and the machine has not been told.
func (r *run) cancelled() bool { return !r.cancelSeen && r.outer.Err() != nil }
