package client

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/signals"
)

// ListFilter says which runs to list; the zero Filter means all.
type ListFilter struct {
	Agent  string
	Status agent.Status
	// Older lists runs that have had their status for at least so long.
	Older time.Duration
	// Query is a condition in Temporal's list filter language, beside the others.
	Query string
}

// RunInfo is a run as listings know it: no run and no worker is asked.
type RunInfo struct {
	Session string       `json:"session"`
	Run     string       `json:"run"`
	Agent   string       `json:"agent"`
	Status  agent.Status `json:"status"`
	// Reason is why the run ended, or why it is suspended: its first 200 bytes.
	Reason  string    `json:"reason,omitempty"`
	Task    string    `json:"task,omitempty"`
	Since   time.Time `json:"since"`
	Turn    int       `json:"turn"`
	Cost    agent.USD `json:"cost_usd"`
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended,omitzero"`
	// WaitsFor is what a suspended run waits for, its suspension's kind first and
	// then what (docs/wire.md §8); empty for all others.
	WaitsFor []string `json:"waits_for,omitempty"`
}

// List yields runs, the latest first. An execution that was continued as new is
// not a run of its own.
func (c *Client) List(ctx context.Context, f ListFilter) iter.Seq2[RunInfo, error] {
	return func(yield func(RunInfo, error) bool) {
		for info, err := range c.executions(ctx, f.query(time.Now())) {
			if err != nil {
				yield(RunInfo{}, fmt.Errorf("listing runs: %w", err))
				return
			}
			if !yield(listed(info), nil) {
				return
			}
		}
	}
}

// executions yields what a listing finds, the latest first; an error is the last.
func (c *Client) executions(ctx context.Context, query string) iter.Seq2[*workflowpb.WorkflowExecutionInfo, error] {
	return func(yield func(*workflowpb.WorkflowExecutionInfo, error) bool) {
		req := &workflowservice.ListWorkflowExecutionsRequest{Query: query}
		for {
			page, err := c.temporal.ListWorkflow(ctx, req)
			if err != nil {
				yield(nil, durable.FromRPC(err))
				return
			}
			for _, info := range page.GetExecutions() {
				if !yield(info, nil) {
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
func (f ListFilter) query(now time.Time) string {
	terms := []string{ours, "ExecutionStatus != 'ContinuedAsNew'"}
	if f.Agent != "" {
		terms = append(terms, agent.AttrAgent+" = "+signals.Quote(f.Agent))
	}
	if f.Status != "" {
		terms = append(terms, f.status())
	}
	if f.Older > 0 {
		terms = append(terms, fmt.Sprintf("%s < %s", agent.AttrSince, signals.Quote(now.Add(-f.Older).UTC().Format(time.RFC3339))))
	}
	if f.Query != "" {
		terms = append(terms, "("+f.Query+")")
	}
	return strings.Join(terms, " AND ")
}

// status believes Temporal first: a run that was terminated keeps its last
// attributes forever (docs/wire.md §8).
func (f ListFilter) status() string {
	switch f.Status {
	case agent.StatusCompleted:
		return "ExecutionStatus = 'Completed' AND " + agent.AttrStatus + " = 'completed'"
	case agent.StatusStopped:
		return "ExecutionStatus = 'Completed' AND " + agent.AttrStatus + " = 'stopped'"
	case agent.StatusFailed:
		return "ExecutionStatus IN ('Failed', 'TimedOut')"
	case agent.StatusCancelled:
		return "ExecutionStatus IN ('Canceled', 'Terminated')"
	}
	return "ExecutionStatus = 'Running' AND " + agent.AttrStatus + " = " + signals.Quote(string(f.Status))
}

// ours, liveOnes and isWaitingFor are conditions of listings.
var (
	ours     = "WorkflowType = " + signals.Quote(signals.WorkflowType)
	openRuns = ours + " AND ExecutionStatus = 'Running'"
)

func isWaitingFor(what string) string {
	return " AND " + agent.AttrWaitsFor + " = " + signals.Quote(what)
}

func listed(info *workflowpb.WorkflowExecutionInfo) RunInfo {
	memo := ReadMemo(info)
	l := RunInfo{
		Session: info.GetExecution().GetWorkflowId(), Run: runOf(info), Agent: agentOf(info),
		Status: cmp.Or(memo.Status, agent.StatusPending), Reason: memo.Reason, Task: memo.Task, Since: memo.Since, Turn: memo.Turn, Cost: memo.Cost,
		Started: info.GetStartTime().AsTime(),
	}
	if info.GetCloseTime() != nil {
		l.Ended = info.GetCloseTime().AsTime()
	}
	if open(info) && l.Status == agent.StatusSuspended {
		l.WaitsFor = waitsFor(info)
	}
	if !open(info) && !l.Status.Ended() {
		l.Status, l.Reason, l.Since = closedStatus(info.GetStatus()), "", l.Ended
	}
	return l
}

func closedStatus(s enums.WorkflowExecutionStatus) agent.Status {
	switch s {
	case enums.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		return agent.StatusCompleted
	case enums.WORKFLOW_EXECUTION_STATUS_CANCELED, enums.WORKFLOW_EXECUTION_STATUS_TERMINATED:
		return agent.StatusCancelled
	}
	return agent.StatusFailed
}

// open tells that an execution is not closed. (One that the server itself was
// told to pause is not.)
func open(info *workflowpb.WorkflowExecutionInfo) bool {
	s := info.GetStatus()
	return s == enums.WORKFLOW_EXECUTION_STATUS_RUNNING || s == enums.WORKFLOW_EXECUTION_STATUS_PAUSED
}

// runOf is the run's id. Listings know only the execution's, which is the run's
// as long as the run has not written its memo.
func runOf(info *workflowpb.WorkflowExecutionInfo) string {
	return cmp.Or(info.GetFirstRunId(), ReadMemo(info).Run, info.GetExecution().GetRunId())
}

func agentOf(info *workflowpb.WorkflowExecutionInfo) (name string) {
	attribute(info, agent.AttrAgent, &name)
	return name
}

// waitsFor is what the run's attribute says, its suspension's kind first.
func waitsFor(info *workflowpb.WorkflowExecutionInfo) (what []string) {
	attribute(info, agent.AttrWaitsFor, &what)
	return what
}

func attribute(info *workflowpb.WorkflowExecutionInfo, name string, into any) {
	if p, ok := info.GetSearchAttributes().GetIndexedFields()[name]; ok {
		_ = converter.GetDefaultDataConverter().FromPayload(p, into) // another type's is none of ours
	}
}
