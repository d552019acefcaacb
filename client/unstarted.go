package client

import (
	"context"
	"errors"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
)

// endUnbegun terminates a run whose first workflow task keeps failing. Such a run can't
// process a stop or a cancel, and has nothing to hand over. A run that has completed a
// task is left alone, and so is one that no worker has tried.
func (c *Client) endUnbegun(ctx context.Context, session string, command agent.Command) (ended bool, err error) {
	var run string
	switch o := command.(type) {
	case agent.StopCommand:
		run = o.Run
	case agent.CancelCommand:
		run = o.Run
	default:
		return false, nil
	}
	info, err := c.last(ctx, session)
	if err != nil {
		return false, nil // the signal that follows reports it
	}
	execution := info.GetExecution().GetRunId()
	if durable.Closed(info) || run != "" && run != info.GetFirstRunId() || execution != info.GetFirstRunId() {
		return false, nil
	}
	failed := false
	events := c.temporal.GetWorkflowHistory(ctx, session, execution, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			return false, durable.FromRPC(err)
		}
		switch e.GetEventType() {
		case enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
			return false, nil
		case enums.EVENT_TYPE_WORKFLOW_TASK_FAILED, enums.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT:
			failed = true
		}
	}
	if !failed {
		return false, nil
	}
	err = c.temporal.TerminateWorkflow(ctx, session, execution, "its first task fails, so that it takes no "+string(command.Verb()))
	if errors.As(err, new(*serviceerror.NotFound)) {
		return false, nil // it has ended meanwhile
	}
	return err == nil, durable.FromRPC(err)
}
