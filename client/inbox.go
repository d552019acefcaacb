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

// Lost is the type of an entry of the inbox that nobody can answer: a step of the run has
// lost five workers. If the run is suspended, Resume makes the step again. Else the step
// stores the log, and the run tries again by itself.
const Lost = agent.RequestType(agent.WorkerLost)

// InboxFilter says which open requests to list; the zero value means all.
type InboxFilter struct {
	Agent string
	// WaitsFor is the requests' type (question, approval, client_tool, limit), [Lost], or
	// another value of the search attribute FermataWaitsFor.
	WaitsFor string
	// Older lists requests that have been open for at least so long.
	Older time.Duration
	// Approver lists requests that name this approver.
	Approver string
	// Session lists the requests of a session and of all below it.
	Session string
}

// Waiting is an open request as listings know it: without the arguments of its
// call, for which see [Client.Request], and with the beginning of its text. One of the type
// [Lost] is no request; its ID is the suspension's, if there is one.
type Waiting struct {
	agent.Request
	// Age is how long it has been open.
	Age agent.Duration `json:"age"`
	// Reminded tells that it has waited for longer than it should.
	Reminded bool `json:"reminded,omitempty"`
}

// Inbox yields the open requests of all sessions, and runs that keep losing workers, from one listing: no run and no
// worker is asked, so it may be behind by a moment. The order is the listing's,
// that of the run that began last first; of one run, the oldest request first.
// Errors are those of reaching the server.
func (c *Client) Inbox(ctx context.Context, f InboxFilter) iter.Seq2[Waiting, error] {
	return func(yield func(Waiting, error) bool) {
		now := time.Now()
		for info, err := range c.executions(ctx, f.query()) {
			if err != nil {
				yield(Waiting{}, fmt.Errorf("listing open requests: %w", err))
				return
			}
			for _, w := range f.waiting(info, now) {
				if !yield(w, nil) {
					return
				}
			}
		}
	}
}

func (f InboxFilter) query() string {
	q := liveOnes
	switch f.WaitsFor {
	case string(agent.InputRequired), string(Lost):
		q += isWaitingFor(f.WaitsFor)
	case "":
		q += fmt.Sprintf(" AND (%[1]s = %[2]s OR %[1]s = %[3]s)", agent.AttrWaitsFor, signals.Quote(string(agent.InputRequired)), signals.Quote(string(Lost)))
	default:
		q += isWaitingFor(string(agent.InputRequired)) + isWaitingFor(f.WaitsFor)
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

// waiting are a run's open requests that fit the filter.
func (f InboxFilter) waiting(info *workflowpb.WorkflowExecutionInfo, now time.Time) (out []Waiting) {
	memo := MemoOf(info)
	for _, q := range memo.Requests {
		age := now.Sub(q.Opened)
		if age >= f.Older && f.isOf(q) {
			out = append(out, Waiting{requestOf(info, memo, q), agent.Duration(age.Truncate(time.Second)), q.Reminded})
		}
	}
	lost, age := agent.MemoRequest{ID: memo.Suspension, Type: Lost, Opened: memo.Since, Text: lostText(memo)}, now.Sub(memo.Since)
	if slices.Contains(waitsFor(info), string(Lost)) && age >= f.Older && f.isOf(lost) {
		w := Waiting{Request: requestOf(info, memo, lost), Age: agent.Duration(age.Truncate(time.Second))}
		w.Cause = agent.WorkerLost
		out = append(out, w)
	}
	slices.SortStableFunc(out, func(a, b Waiting) int { return a.Opened.Compare(b.Opened) })
	return out
}

func lostText(memo agent.Memo) string {
	if memo.Status == agent.Suspended {
		return "a step has lost five workers; find out why, then resume"
	}
	return "storing the log has lost five workers; find out why: it is tried again"
}

// isOf reports whether one of a run's requests is of the type and for the approver
// that the run was found by.
func (f InboxFilter) isOf(q agent.MemoRequest) bool {
	switch t := agent.RequestType(f.WaitsFor); t {
	case agent.Question, agent.Approval, agent.ClientTool, agent.LimitAsk, Lost:
		if q.Type != t {
			return false
		}
	}
	return f.Approver == "" || slices.Contains(q.Approvers, f.Approver)
}
