package client

import (
	"context"

	workflowpb "go.temporal.io/api/workflow/v1"
)

// watch is what a reader knows of the execution that it looks at, and what tells
// it that there is more.
type watch struct {
	info    *workflowpb.WorkflowExecutionInfo // as it was when all of it was read; nil: look again
	of      string                            // the execution whose history is watched
	changed <-chan struct{}                   // nil where no history is
	stop    context.CancelFunc
}

// seen tells whether nothing has come since all was read.
func (w *watch) seen(info *workflowpb.WorkflowExecutionInfo) bool {
	return w.info != nil && w.info.GetExecution().GetRunId() == info.GetExecution().GetRunId() &&
		w.info.GetStatus() == info.GetStatus() && w.info.GetHistoryLength() == info.GetHistoryLength()
}

// begin watches the history of the execution, if it is open and not watched yet.
func (w *watch) begin(ctx context.Context, r *reader) {
	if w.info == nil || !open(w.info) || w.of == w.info.GetExecution().GetRunId() {
		return
	}
	w.end()
	ctx, w.stop = context.WithCancel(ctx)
	w.of = w.info.GetExecution().GetRunId()
	w.changed = (&Run{client: r.client, Session: r.session}).changes(ctx, w.info)
}

// news heeds what the history says: it grew, or there is no more of it to come.
func (w *watch) news(more bool) {
	if w.info = nil; !more {
		w.changed = nil
	}
}

// idle lets a history that could not be read be watched again, if it is open still.
func (w *watch) idle() {
	if w.changed == nil {
		w.of = ""
	}
}

func (w *watch) end() {
	if w.stop != nil {
		w.stop()
	}
}
