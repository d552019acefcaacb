package client

import (
	"cmp"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/fermata-agents/fermata/internal/durable"
)

// watch is what a reader knows of the execution that it reads, and how it learns that
// there is more.
type watch struct {
	read    *workflowpb.WorkflowExecutionInfo // its state when all of it was read; nil if it was not
	history *follower                         // nil if none is followed
	news    <-chan struct{}                   // the history's notices; nil if no more come
	woken   bool                              // the history has reported something
	over    string                            // the execution whose history reports nothing until the next look
	looks   *pollTimer
	most    time.Duration // how long a look waits at most while a history is followed; zero means pollMost
}

// seen reports whether nothing has come since everything was read.
func (w *watch) seen(info *workflowpb.WorkflowExecutionInfo) bool {
	return w.read != nil && w.read.GetExecution().GetRunId() == info.GetExecution().GetRunId() &&
		w.read.GetStatus() == info.GetStatus() && w.read.GetHistoryLength() == info.GetHistoryLength()
}

// grown returns what the history knows of the execution; nil if the server has to be
// asked.
func (w *watch) grown() *workflowpb.WorkflowExecutionInfo {
	if !w.woken || !w.current() {
		return nil
	}
	return &workflowpb.WorkflowExecutionInfo{
		Execution: w.read.GetExecution(), FirstRunId: w.read.GetFirstRunId(), Status: w.read.GetStatus(), TaskQueue: w.read.GetTaskQueue(),
		HistoryLength: max(w.history.grown(), w.read.GetHistoryLength()),
	}
}

// begin follows the history of the execution that was read, if it is open and not
// followed yet. A reader that ends here follows nothing.
func (w *watch) begin(c *Client, session string) {
	if w.read == nil || durable.Closed(w.read) || w.current() || w.over == w.read.GetExecution().GetRunId() {
		return
	}
	w.end()
	w.history = c.follow(w.read, session, true)
	w.news = w.history.news
}

// heard records a notice of the history: it grew, or no more notices come.
func (w *watch) heard(more bool) {
	if w.woken = more; more {
		w.looks.begin()
		return
	}
	w.over = w.history.execution
	w.end()
}

// looked records that the timer is due, so a history whose poll failed is followed again.
// If the history of a fully read execution is followed, the next look may come late.
// Otherwise only looking finds anything, so it comes soon.
func (w *watch) looked() {
	w.over, w.looks.most = "", pollBlind
	if w.current() {
		w.looks.most = cmp.Or(w.most, pollMost)
	}
	w.looks.next()
}

// current reports whether the followed execution is the one that was read last.
func (w *watch) current() bool {
	return w.news != nil && w.read != nil && w.read.GetExecution().GetRunId() == w.history.execution
}

func (w *watch) end() {
	if w.history != nil {
		w.history.leave()
	}
	w.history, w.news = nil, nil
}
