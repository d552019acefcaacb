package workflows

import (
	"encoding/json"

	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/signals"
)

// answerQueries sets the query handlers, which also answer after the run's end. Call it
// in the first task.
func (r *run) answerQueries(ctx workflow.Context) error {
	return firstError(
		signals.Status.Handle(ctx, func(signals.None) (agent.RunStatus, error) {
			v := r.state.View(workflow.Now(ctx))
			v.Build, v.Execution = r.shell.Build, r.execution
			return v, nil
		}),
		signals.Suspension.Handle(ctx, func(signals.None) (signals.SuspensionAnswer, error) {
			return signals.SuspensionAnswer{V: agent.Version, Suspension: r.state.Suspension()}, nil
		}),
		signals.Tree.Handle(ctx, func(signals.None) (signals.TreeAnswer, error) {
			return signals.TreeAnswer{V: agent.Version, AsOf: workflow.Now(ctx).UTC(), Nodes: r.state.Nodes()}, nil
		}),
		signals.Transcript.Handle(ctx, func(p signals.Page) (signals.TranscriptAnswer, error) {
			l := r.state.Log
			return signals.MessagesOf(l.Head, l.Seq, l.Tail, p)
		}),
		signals.Events.Handle(ctx, func(p signals.EventPage) (signals.EventList, error) {
			l := r.state.Log
			return signals.EventsOf(r.state.Session, r.state.Run, l.Seq, l.Tail, p)
		}),
		signals.State.Handle(ctx, func(signals.None) (json.RawMessage, error) { return json.Marshal(r.state) }),
		signals.Machine.Handle(ctx, func(signals.None) (json.RawMessage, error) {
			// The tail can be large, and has a query of its own.
			s := r.state
			s.Log.Tail = nil
			return json.Marshal(s)
		}),
		signals.Tail.Handle(ctx, func(a signals.TailArgs) (signals.OpenTail, error) {
			return signals.TailOf(r.state.Log.Head, r.state.Log.Tail, a), nil
		}),
	)
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
