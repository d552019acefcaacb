package client

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/signals"
)

// Filter says which runs to list; the zero Filter means all.
type Filter struct {
	Agent  string
	Status agent.Status
	// Older lists runs that have had their status for at least so long.
	Older time.Duration
	// Query is a condition in Temporal's list filter language, beside the others.
	Query string
}

// Listed is a run as listings know it: no run and no worker is asked.
type Listed struct {
	Session string       `json:"session"`
	Run     string       `json:"run"`
	Agent   string       `json:"agent"`
	Status  agent.Status `json:"status"`
	Reason  string       `json:"reason,omitempty"`
	Task    string       `json:"task,omitempty"`
	Since   time.Time    `json:"since"`
	Turn    int          `json:"turn"`
	Cost    agent.USD    `json:"cost_usd"`
	Started time.Time    `json:"started"`
	Ended   time.Time    `json:"ended,omitzero"`
}

// List yields runs, the latest first. An execution that was continued as new is
// not a run of its own.
func (c *Client) List(ctx context.Context, f Filter) iter.Seq2[Listed, error] {
	return func(yield func(Listed, error) bool) {
		req := &workflowservice.ListWorkflowExecutionsRequest{Query: f.query(time.Now())}
		for {
			page, err := c.temporal.ListWorkflow(ctx, req)
			if err != nil {
				yield(Listed{}, fmt.Errorf("listing runs: %w", durable.ArriveRPC(err)))
				return
			}
			for _, info := range page.GetExecutions() {
				if !yield(listed(info), nil) {
					return
				}
			}
			if req.NextPageToken = page.GetNextPageToken(); len(req.NextPageToken) == 0 {
				return
			}
		}
	}
}

// query writes the filter in Temporal's language.
func (f Filter) query(now time.Time) string {
	terms := []string{"WorkflowType = " + quote(signals.WorkflowType), "ExecutionStatus != 'ContinuedAsNew'"}
	if f.Agent != "" {
		terms = append(terms, agent.AttrAgent+" = "+quote(f.Agent))
	}
	if f.Status != "" {
		terms = append(terms, f.status())
	}
	if f.Older > 0 {
		terms = append(terms, fmt.Sprintf("%s < %s", agent.AttrSince, quote(now.Add(-f.Older).UTC().Format(time.RFC3339))))
	}
	if f.Query != "" {
		terms = append(terms, "("+f.Query+")")
	}
	return strings.Join(terms, " AND ")
}

// status believes Temporal first: a run that was terminated keeps its last
// attributes for ever (wire §8).
func (f Filter) status() string {
	switch f.Status {
	case agent.Completed:
		return "ExecutionStatus = 'Completed' AND " + agent.AttrStatus + " = 'completed'"
	case agent.Stopped:
		return "ExecutionStatus = 'Completed' AND " + agent.AttrStatus + " = 'stopped'"
	case agent.Failed:
		return "ExecutionStatus IN ('Failed', 'TimedOut')"
	case agent.Cancelled:
		return "ExecutionStatus IN ('Canceled', 'Terminated')"
	}
	return "ExecutionStatus = 'Running' AND " + agent.AttrStatus + " = " + quote(string(f.Status))
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func listed(info *workflowpb.WorkflowExecutionInfo) Listed {
	memo := MemoOf(info)
	l := Listed{
		Session: info.GetExecution().GetWorkflowId(), Run: info.GetFirstRunId(), Agent: agentOf(info),
		Status: memo.Status, Reason: memo.Reason, Task: memo.Task, Since: memo.Since, Turn: memo.Turn, Cost: memo.Cost,
		Started: info.GetStartTime().AsTime(),
	}
	if info.GetCloseTime() != nil {
		l.Ended = info.GetCloseTime().AsTime()
	}
	if closed := info.GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING; closed && !l.Status.Ended() {
		l.Status, l.Reason, l.Since = closedStatus(info.GetStatus()), "", l.Ended
	}
	return l
}

func closedStatus(s enums.WorkflowExecutionStatus) agent.Status {
	switch s {
	case enums.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		return agent.Completed
	case enums.WORKFLOW_EXECUTION_STATUS_CANCELED, enums.WORKFLOW_EXECUTION_STATUS_TERMINATED:
		return agent.Cancelled
	}
	return agent.Failed
}

func agentOf(info *workflowpb.WorkflowExecutionInfo) (name string) {
	if p, ok := info.GetSearchAttributes().GetIndexedFields()[agent.AttrAgent]; ok {
		name = strings.Trim(string(p.GetData()), `"`)
	}
	return name
}
