package client

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/signals"
)

// RequestWorkerLost is the type of an inbox entry that nobody can answer: one activity of
// the run has lost five workers. If the run is suspended, a resume makes the call again.
// If it is not, the failing activity stores the log, and the run tries that again by itself.
const RequestWorkerLost = agent.RequestType(agent.CodeWorkerLost)

// InboxOptions says which open requests are listed; nil means all.
type InboxOptions struct {
	// Agent lists the requests of one agent's runs.
	Agent string
	// WaitsFor is the requests' type (question, approval, client_tool, limit),
	// [RequestWorkerLost], or another value of the search attribute FermataWaitsFor.
	WaitsFor string
	// Older lists requests that have been open for at least so long.
	Older time.Duration
	// Approver lists requests that name this approver.
	Approver string
	// Session lists the requests of a session and of all sessions below it.
	Session string
	// TaskQueue lists the requests of the runs of one task queue; empty means those of all.
	TaskQueue string
	// PageSize is the most runs whose requests [Client.InboxPage] returns; zero means the
	// server's default.
	PageSize int
	// PageToken is where the listing begins: the [InboxPage.NextPageToken] of a listing
	// with the same options. Empty means its beginning.
	PageToken string
}

// InboxPage is a page of open requests.
type InboxPage struct {
	Items []InboxItem `json:"items"`
	// NextPageToken is where the next page begins; empty after the last.
	NextPageToken string `json:"next_page_token,omitempty"`
}

// InboxItem is an open request as listings show it: the beginning of its text, and no
// arguments of its call. [Client.Request] returns the whole request. An item of type
// [RequestWorkerLost] is no request: its ID is the suspension's, if there is one.
type InboxItem struct {
	agent.Request
	// Age is how long the request has been open.
	Age agent.Duration `json:"age"`
	// Reminded means that the request's remind time has passed.
	Reminded bool `json:"reminded,omitempty"`
}

// Inbox yields the open requests of all sessions, and the runs that keep losing workers.
// It reads only the server's listing, so it needs no worker and may be some seconds
// behind. The run that began last comes first; the requests of one run come oldest first.
// Errors are [agent.CodeInvalidInput] for a page token that no listing returned, and
// those of reaching the server.
func (c *Client) Inbox(ctx context.Context, o *InboxOptions) iter.Seq2[InboxItem, error] {
	return func(yield func(InboxItem, error) bool) {
		next := *cmp.Or(o, &InboxOptions{})
		for more := true; more; more = next.PageToken != "" {
			page, err := c.InboxPage(ctx, &next)
			if err != nil {
				yield(InboxItem{}, err)
				return
			}
			for _, w := range page.Items {
				if !yield(w, nil) {
					return
				}
			}
			next.PageToken = page.NextPageToken
		}
	}
}

// InboxPage returns one page of what [Client.Inbox] yields, with the same errors. The
// page size counts runs, so a page may have fewer or more items.
func (c *Client) InboxPage(ctx context.Context, o *InboxOptions) (InboxPage, error) {
	o = cmp.Or(o, &InboxOptions{})
	infos, token, err := c.page(ctx, o.query(), o.PageSize, o.PageToken)
	if err != nil {
		return InboxPage{}, fmt.Errorf("listing open requests: %w", err)
	}
	p := InboxPage{Items: []InboxItem{}, NextPageToken: token}
	for _, info := range infos {
		p.Items = append(p.Items, o.items(info, time.Now())...)
	}
	return p, nil
}

func (f *InboxOptions) query() string {
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
	return q + ofTaskQueue(f.TaskQueue)
}

// within returns the condition that matches a session and all sessions below it.
func within(session string) string {
	return "(WorkflowId = " + signals.Quote(session) + " OR WorkflowId STARTS_WITH " + signals.Quote(session+"/") + ")"
}

// items returns a run's open requests that match the options.
func (f *InboxOptions) items(info *workflowpb.WorkflowExecutionInfo, now time.Time) (out []InboxItem) {
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

// isOf reports whether a request has the type and the approver that the options ask for.
// The query matches runs, and a run may have other requests too.
func (f *InboxOptions) isOf(q agent.MemoRequest) bool {
	switch t := agent.RequestType(f.WaitsFor); t {
	case agent.RequestQuestion, agent.RequestApproval, agent.RequestClientTool, agent.RequestLimit, RequestWorkerLost:
		if q.Type != t {
			return false
		}
	}
	return f.Approver == "" || slices.Contains(q.Approvers, f.Approver)
}
