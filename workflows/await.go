package workflows

import (
	"slices"

	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/loop"
)

// awaited is a future, and what is done once when it is ready. The SDK's selector is not
// used for that: it keeps every future that it was ever given, with its payload, and
// visits them all each time.
type awaited struct {
	future workflow.Future
	do     func()
}

// when does something once when a future is ready.
func (r *run) when(f workflow.Future, do func()) {
	r.awaited = append(r.awaited, awaited{f, do})
}

// await makes the machine's input of a future when it is ready.
func await[Out any](ctx workflow.Context, r *run, f durable.Future[Out], input func(Out, *agent.Error) loop.Input) {
	r.when(f.Raw, func() {
		if in := input(f.Get(ctx)); in != nil {
			r.take(in)
		}
	})
}

// ring lets the run look again at what it waits for.
func (r *run) ring() { r.woken = true }

// ready reports whether there is something to settle.
func (r *run) ready() bool { return r.woken || r.cancelled() || r.arrived() >= 0 }

// arrived is the first of the awaited futures that is ready; -1 where none is.
func (r *run) arrived() int {
	return slices.IndexFunc(r.awaited, func(a awaited) bool { return a.future.IsReady() })
}

// settle takes all that is ready: first what came of model and tool calls, so that
// nothing finished is dropped, then a cancellation of the workflow, then what was said.
func (r *run) settle() {
	for i := r.arrived(); i >= 0 && !r.over; i = r.arrived() {
		do := r.awaited[i].do
		r.awaited = slices.Delete(r.awaited, i, i+1) // and clears its place
		do()
	}
	if r.cancelled() {
		r.heeded = true
		r.take(loop.Cancel{})
	}
	r.hear()
}

// cancelled reports whether the workflow was cancelled and the machine does not know.
func (r *run) cancelled() bool { return !r.heeded && r.outer.Err() != nil }
