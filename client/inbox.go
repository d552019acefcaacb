package client

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/signals"
)

// RequestWorkerLost is the type of an entry of the inbox that nobody can answer: a step of the run has
// lost five workers. If the run is suspended, Resume makes the step again. Else the step
// stores the log, and the run tries again by itself.
const RequestWorkerLost = agent.RequestType(agent.CodeWorkerLost)

// InboxFilter says which open requests to list; the zero value means all.
type InboxFilter struct {
	Agent string
	// WaitsFor is the requests' type (question, approval, client_tool, limit), [RequestWorkerLost], or
	// another value of the search attribute FermataWaitsFor.
	WaitsFor string
	// Older lists requests that have been open for at least so long.
	Older time.Duration
	// Approver lists requests that name this approver.
	Approver string
	// Session lists the requests of a session and of all below it.
	Session string
}

// InboxItem is an open request as listings know it: without the arguments of its
// call, for which see [Client.Request], and with the beginning of its text. One of the type
// [RequestWorkerLost] is no request; its ID is the suspension's, if there is one.
type InboxItem struct {
	agent.Request
	// Age is how long it has been open.
	Age agent.Duration `json:"age"`
	// Reminded means that it has waited for longer than it should.
	Reminded bool `json:"reminded,omitempty"`
}

// Inbox yields the open requests of all sessions, and runs that keep losing workers, from one listing: no run and no
// worker is asked, so it may be behind by a moment. The order is the listing's,
// that of the run that began last first; of one run, the oldest request first.
// Errors are those of reaching the server.
func (c *Client) Inbox(ctx context.Context, f InboxFilter) iter.Seq2[InboxItem, error] {
	return func(yield func(InboxItem, error) bool) {
		now := time.Now()
		for info, err := range c.executions(ctx, f.query()) {
			if err != nil {
				yield(InboxItem{}, fmt.Errorf("listing open requests: %w", err))
				return
			}
			for _, w := range f.items(info, now) {
				if !yield(w, nil) {
					return
				}
			}
		}
	}
}

func (f InboxFilter) query() string {
	q := openRuns
	switch f.WaitsFor {
	case string(agent.SuspensionInputRequired), string(RequestWorkerLost):
		q += isWaitingFor(f.WaitsFor)
	case "":
		q += fmt.Sprintf(" AND (%[1]s = %[2]s OR %[1]s = %[3]s)", agent.AttrWaitsFor, signals.Quote(string(agent.SuspensionInputRequired)), signals.Quote(string(RequestWorkerLost)))
	default:
		q += isWaitingFor(string(agent.SuspensionInputRequired)) + isWaitingFor(f.WaitsFor)
	}
	if f.Approver != "" {
		q += isWaitingFor("approver:" + f.Approver)
	}
	if f.Agent != "" {
		q += " AND " + agent.AttrAgent + " = " + signals.Quote(f.Agent)
	}
	if f.Session != "" {
		q += " AND " + within(f.Session)
	}
	return q
}

// within is the condition of being a session or below it.
func within(session string) string {
	return "(WorkflowId = " + signals.Quote(session) + " OR WorkflowId STARTS_WITH " + signals.Quote(session+"/") + ")"
}

// items are a run's open requests that fit the filter.
func (f InboxFilter) items(info *workflowpb.WorkflowExecutionInfo, now time.Time) (out []InboxItem) {
	memo := ReadMemo(info)
	for _, q := range memo.Requests {
		age := now.Sub(q.Opened)
		if age >= f.Older && f.isOf(q) {
			out = append(out, InboxItem{requestOf(info, memo, q), agent.Duration(age.Truncate(time.Second)), q.Reminded})
		}
	}
	lost, age := agent.MemoRequest{ID: memo.Suspension, Type: RequestWorkerLost, Opened: memo.Since, Text: lostText(memo)}, now.Sub(memo.Since)
	if slices.Contains(waitsFor(info), string(RequestWorkerLost)) && age >= f.Older && f.isOf(lost) {
		w := InboxItem{Request: requestOf(info, memo, lost), Age: agent.Duration(age.Truncate(time.Second))}
		w.Cause = agent.CodeWorkerLost
		out = append(out, w)
	}
	slices.SortStableFunc(out, func(a, b InboxItem) int { return a.Opened.Compare(b.Opened) })
	return out
}

func lostText(memo agent.Memo) string {
	if memo.Status == agent.StatusSuspended {
		return "a step has lost five workers; find out why, then resume"
	}
	return "storing the log has lost five workers; find out why: it is tried again"
}

// isOf reports whether one of a run's requests is of the type and for the approver
// that the run was found by.
func (f InboxFilter) isOf(q agent.MemoRequest) bool {
	switch t := agent.RequestType(f.WaitsFor); t {
	case agent.RequestQuestion, agent.RequestApproval, agent.RequestClientTool, agent.RequestLimit, RequestWorkerLost:
		if q.Type != t {
			return false
		}
	}
	return f.Approver == "" || slices.Contains(q.Approvers, f.Approver)
}
