package client

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"iter"
	"math"
	"strings"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/signals"
)

// ListOptions says which runs are listed; nil means all.
type ListOptions struct {
	// Agent lists only runs of this agent.
	Agent string
	// Status lists only runs with this status.
	Status agent.Status
	// Older lists only runs that have had their status for at least this long.
	Older time.Duration
	// TaskQueue lists only runs of this task queue; empty means those of all.
	TaskQueue string
	// Query is a condition in Temporal's list filter language. Runs have to match it too.
	Query string
	// PageSize is the most runs that [Client.ListPage] returns; zero means the server's
	// default.
	PageSize int
	// PageToken is where the listing begins: the [RunPage.NextPageToken] of a listing with
	// the same options. Empty means its beginning.
	PageToken string
}

// RunPage is a page of a listing of runs.
type RunPage struct {
	Runs []RunInfo `json:"runs"`
	// NextPageToken is where the next page begins; empty after the last.
	NextPageToken string `json:"next_page_token,omitempty"`
}

// RunInfo is a run as listings know it. No run and no worker is asked.
type RunInfo struct {
	Session string       `json:"session"`
	Run     string       `json:"run"`
	Agent   string       `json:"agent"`
	Status  agent.Status `json:"status"`
	// Reason is why the run ended or is suspended: the first 200 bytes.
	Reason  string    `json:"reason,omitempty"`
	Task    string    `json:"task,omitempty"`
	Since   time.Time `json:"since"`
	Turn    int       `json:"turn"`
	Cost    agent.USD `json:"cost_usd"`
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended,omitzero"`
	// DeleteAfter is the end of an ended run's retention, see [Client.DeleteExpired]: its session is
	// deleted then, unless it has a later run. Zero means forever.
	DeleteAfter time.Time `json:"delete_after,omitzero"`
	// WaitsFor says what a suspended run waits for: its suspension's kind, then the
	// details (docs/wire.md §8). It is empty for all other runs.
	WaitsFor []string `json:"waits_for,omitempty"`
}

// List yields runs, the latest first. A run that has continued as new comes once. Errors
// are [agent.CodeInvalidInput] for a page token that no listing returned, or a Query that is no
// condition by itself, and those of reaching the server.
func (c *Client) List(ctx context.Context, o *ListOptions) iter.Seq2[RunInfo, error] {
	return func(yield func(RunInfo, error) bool) {
		next := *cmp.Or(o, &ListOptions{})
		for more := true; more; more = next.PageToken != "" {
			page, err := c.ListPage(ctx, &next)
			if err != nil {
				yield(RunInfo{}, err)
				return
			}
			for _, r := range page.Runs {
				if !yield(r, nil) {
					return
				}
			}
			next.PageToken = page.NextPageToken
		}
	}
}

// ListPage returns one page of what [Client.List] yields, with the same errors.
func (c *Client) ListPage(ctx context.Context, o *ListOptions) (RunPage, error) {
	o = cmp.Or(o, &ListOptions{})
	if err := checkQuery(o.Query); err != nil {
		return RunPage{}, err
	}
	infos, token, err := c.page(ctx, o.query(time.Now()), o.PageSize, o.PageToken)
	if err != nil {
		return RunPage{}, fmt.Errorf("listing runs: %w", err)
	}
	p := RunPage{Runs: make([]RunInfo, len(infos)), NextPageToken: token}
	for i, info := range infos {
		p.Runs[i] = listed(info)
	}
	return p, nil
}

// page returns one page of a listing, and the token of the next one.
func (c *Client) page(ctx context.Context, query string, size int, token string) (infos []*workflowpb.WorkflowExecutionInfo, next string, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || size < 0 || size > math.MaxInt32 {
		return nil, "", agent.Errorf(agent.CodeInvalidInput, "a page has a size of 0 or more, and its token is one that a listing returned")
	}
	p, err := c.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: query, PageSize: int32(size), NextPageToken: raw})
	if err != nil {
		return nil, "", durable.FromRPC(err)
	}
	return p.GetExecutions(), base64.RawURLEncoding.EncodeToString(p.GetNextPageToken()), nil
}

// executions yields what a query finds, the latest first. An error ends it.
func (c *Client) executions(ctx context.Context, query string) iter.Seq2[*workflowpb.WorkflowExecutionInfo, error] {
	return func(yield func(*workflowpb.WorkflowExecutionInfo, error) bool) {
		token := ""
		for more := true; more; more = token != "" {
			infos, next, err := c.page(ctx, query, 0, token)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, info := range infos {
				if !yield(info, nil) {
					return
				}
			}
			token = next
		}
	}
}

// query returns the options in Temporal's list filter language.
func (f *ListOptions) query(now time.Time) string {
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
	return strings.Join(terms, " AND ") + ofTaskQueue(f.TaskQueue)
}

// checkQuery refuses a condition that could end the parentheses around it: it would match runs that the
// other options leave out.
func checkQuery(query string) error {
	depth, quote, escaped := 0, rune(0), false
	for i, r := range query {
		switch {
		case quote != 0: // a doubled quotation mark ends one text and begins another
			if r == quote && !escaped {
				quote = 0
			}
			escaped = r == '\\' && !escaped
		case strings.ContainsRune("'\"`", r):
			quote = r
		case r == '(':
			depth++
		case r == ')':
			depth--
		case strings.ContainsRune("#;", r), strings.HasPrefix(query[i:], "--"), strings.HasPrefix(query[i:], "/*"):
			return agent.Errorf(agent.CodeInvalidInput, "the query has a comment or a ';' at %q", query[i:]).WithPath("query")
		}
		if depth < 0 {
			break
		}
	}
	if depth != 0 || quote != 0 {
		return agent.Errorf(agent.CodeInvalidInput, "the query's parentheses or quotation marks have no pair").WithPath("query")
	}
	return nil
}

// status trusts Temporal's status over the attribute: a terminated run keeps its last
// attributes for ever (docs/wire.md §8).
func (f *ListOptions) status() string {
	switch f.Status {
	case agent.StatusCompleted:
		return "ExecutionStatus = 'Completed' AND " + agent.AttrStatus + " = 'completed'"
	case agent.StatusStopped:
		return "ExecutionStatus = 'Completed' AND " + agent.AttrStatus + " = 'stopped'"
	case agent.StatusFailed:
		return "ExecutionStatus IN ('Failed', 'TimedOut')"
	case agent.StatusPending: // a run that the plain temporal CLI started has no attribute yet
		return "ExecutionStatus = 'Running' AND (" + agent.AttrStatus + " = 'pending' OR " + agent.AttrStatus + " IS NULL)"
	case agent.StatusCancelled:
		return "ExecutionStatus IN ('Canceled', 'Terminated')"
	}
	return "ExecutionStatus = 'Running' AND " + agent.AttrStatus + " = " + signals.Quote(string(f.Status))
}

// ours and openRuns are conditions of queries.
var (
	ours     = "WorkflowType = " + signals.Quote(signals.WorkflowType)
	openRuns = ours + " AND ExecutionStatus = 'Running'"
)

// ofTaskQueue returns the condition that a run is one of a task queue; nothing if it is empty.
func ofTaskQueue(name string) string {
	if name == "" {
		return ""
	}
	return " AND TaskQueue = " + signals.Quote(name)
}

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
	if !durable.Closed(info) && l.Status == agent.StatusSuspended {
		l.WaitsFor = waitsFor(info)
	}
	// The run could not write its end into the memo, as after a termination.
	if durable.Closed(info) && !l.Status.Ended() {
		l.Status, l.Reason, l.Since = durable.ClosedStatus(info), "", l.Ended
	}
	if l.Status.Ended() && memo.Retention > 0 {
		l.DeleteAfter = l.Ended.Add(time.Duration(memo.Retention))
	}
	return l
}

// runOf returns the run's id. Listings know only the execution's id, which equals the
// run's until the run writes its memo.
func runOf(info *workflowpb.WorkflowExecutionInfo) string {
	return cmp.Or(info.GetFirstRunId(), ReadMemo(info).Run, info.GetExecution().GetRunId())
}

func agentOf(info *workflowpb.WorkflowExecutionInfo) (name string) {
	attribute(info, agent.AttrAgent, &name)
	return name
}

// waitsFor returns the value of the run's search attribute: its suspension's kind, then
// the details.
func waitsFor(info *workflowpb.WorkflowExecutionInfo) (what []string) {
	attribute(info, agent.AttrWaitsFor, &what)
	return what
}

func attribute(info *workflowpb.WorkflowExecutionInfo, name string, into any) {
	if p, ok := info.GetSearchAttributes().GetIndexedFields()[name]; ok {
		_ = converter.GetDefaultDataConverter().FromPayload(p, into) // a value of another type is not ours
	}
}
