package worker

import (
	"context"
	"fmt"
)

// Drain waits until each of [Options.Observers] has received everything that this worker
// observed before the call (OA-110). A gap counts as received. What runs do during the call
// does not count. The error is [agent.CodeTimeout] if the context ends before; it names the
// observers, and how much each has to receive.
//
// Once a client knows a run's outcome, all events of the run up to its end have been
// observed, by the workers that executed it. An observer must not call Drain: it would wait
// for itself.
func (w *Worker) Drain(ctx context.Context) error { return drained(w.seen.Drain(ctx, "")) }

// DrainSession waits as [Worker.Drain] does, for what was observed of one session and of the
// sessions of its sub-agents.
func (w *Worker) DrainSession(ctx context.Context, session string) error {
	return drained(w.seen.Drain(ctx, session))
}

// Drain waits as [Worker.Drain] does.
func (p *Components) Drain(ctx context.Context) error {
	return drained(p.acts.Observers.Drain(ctx, ""))
}

func drained(err error) error {
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	return nil
}
