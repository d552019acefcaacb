package client

import (
	"cmp"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/fermata-agents/fermata/internal/durable"
)

// watch is what a reader knows of the execution that it looks at, and what tells
// it that there is more.
type watch struct {
	read    *workflowpb.WorkflowExecutionInfo // as it was when all of it was read; nil if it was not
	history *follower                         // nil where none is followed
	news    <-chan struct{}                   // of the history; nil if no more comes
	woken   bool                              // the history has told of something
	over    string                            // the execution whose history tells no more until the run goes on
	looks   *pollTimer
	most    time.Duration // how long a look waits at most while a history is followed; zero means pollMost
}

// seen reports whether nothing has come since all was read.
func (w *watch) seen(info *workflowpb.WorkflowExecutionInfo) bool {
	return w.read != nil && w.read.GetExecution().GetRunId() == info.GetExecution().GetRunId() &&
		w.read.GetStatus() == info.GetStatus() && w.read.GetHistoryLength() == info.GetHistoryLength()
}

// grown is what the history tells of the execution; nil if the server has to be asked.
func (w *watch) grown() *workflowpb.WorkflowExecutionInfo {
	if !w.woken || !w.current() {
		return nil
	}
	return &workflowpb.WorkflowExecutionInfo{
		Execution: w.read.GetExecution(), FirstRunId: w.read.GetFirstRunId(), Status: w.read.GetStatus(),
		HistoryLength: max(w.history.grown(), w.read.GetHistoryLength()),
	}
}

// begin follows the history of the execution that was read, behind what was read, if it
// is open and not followed yet. Who reads no further than that follows nothing.
func (w *watch) begin(c *Client, session string) {
	if w.read == nil || durable.Closed(w.read) || w.current() || w.over == w.read.GetExecution().GetRunId() {
		return
	}
	w.end()
	w.history = c.follow(w.read, session, true)
	w.news = w.history.news
}

// heard heeds what the history says: it grew, or there is no more of it to come.
func (w *watch) heard(more bool) {
	if w.woken = more; more {
		w.looks.begin()
		return
	}
	w.over = w.history.execution
	w.end()
}

// looked heeds that it is time to look: a history that could not be read is followed
// again. The next look may come late where all of an execution is read whose history
// tells more, and soon where something can be found by looking alone.
func (w *watch) looked() {
	w.over, w.looks.most = "", pollBlind
	if w.current() {
		w.looks.most = cmp.Or(w.most, pollMost)
	}
	w.looks.next()
}

// current reports whether the execution that was read last is the one that is followed.
func (w *watch) current() bool {
	return w.news != nil && w.read != nil && w.read.GetExecution().GetRunId() == w.history.execution
}

func (w *watch) end() {
	if w.history != nil {
		w.history.leave()
	}
	w.history, w.news = nil, nil
}
