package client

import (
	workflowpb "go.temporal.io/api/workflow/v1"
)

// watch is what a reader knows of the execution that it looks at, and what tells
// it that there is more.
type watch struct {
	read    *workflowpb.WorkflowExecutionInfo // as it was when all of it was read; nil where it was not
	history *follower                         // nil where none is followed
	news    <-chan struct{}                   // of the history; nil where no more comes
	woken   bool                              // the history has told of something
	looks   *looks
}

// seen tells whether nothing has come since all was read.
func (w *watch) seen(info *workflowpb.WorkflowExecutionInfo) bool {
	return w.read != nil && w.read.GetExecution().GetRunId() == info.GetExecution().GetRunId() &&
		w.read.GetStatus() == info.GetStatus() && w.read.GetHistoryLength() == info.GetHistoryLength()
}

// grown is what the history tells of the execution; nil where the server has to be asked.
func (w *watch) grown() *workflowpb.WorkflowExecutionInfo {
	if !w.woken || !w.current() {
		return nil
	}
	return &workflowpb.WorkflowExecutionInfo{
		Execution: w.read.GetExecution(), FirstRunId: w.read.GetFirstRunId(), Status: w.read.GetStatus(),
		HistoryLength: max(w.history.grown(), w.read.GetHistoryLength()),
	}
}

// begin follows the history of an execution, if it is open and not followed yet.
func (w *watch) begin(c *Client, session string, info *workflowpb.WorkflowExecutionInfo) {
	if !open(info) || w.news != nil && w.history.execution == info.GetExecution().GetRunId() {
		return
	}
	w.end()
	w.history = c.follow(info, session, true)
	w.news = w.history.news
}

// heard heeds what the history says: it grew, or there is no more of it to come.
func (w *watch) heard(more bool) {
	if w.woken = more; more {
		w.looks.begin()
		return
	}
	w.end()
}

// patience says how seldom a look may be: all of an execution whose history tells more
// is read, or something can be found by looking alone.
func (w *watch) patience() {
	w.looks.most = pollBlind
	if w.current() {
		w.looks.most = pollMost
	}
}

// current tells whether the execution that was read last is the one that is followed.
func (w *watch) current() bool {
	return w.news != nil && w.read != nil && w.read.GetExecution().GetRunId() == w.history.execution
}

func (w *watch) end() {
	if w.history != nil {
		w.history.leave()
	}
	w.history, w.news = nil, nil
}
