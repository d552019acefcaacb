package client

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/fermata-agents/fermata/agent"
)

// Of one listing comes every open request; no run is asked (HL-92).
func TestInbox(t *testing.T) {
	long := time.Now().Add(-48 * time.Hour).Truncate(time.Second).UTC()
	late := time.Now().Add(-time.Minute).Truncate(time.Second).UTC()
	memo := agent.Memo{V: 1, Run: "01a2", Status: agent.StatusSuspended, Suspension: "s-3", Requests: []agent.MemoRequest{
		{ID: "q-8", Type: agent.RequestQuestion, Text: "Where to?", Choices: []string{"Rome", "Oslo"}, Opened: late, Deadline: late.Add(time.Hour), Default: "Rome"},
		{ID: "q-7", Type: agent.RequestApproval, Text: "Run pay?", Tool: "pay", Digest: "9f2c41aa03b1c2d4", Approvers: []string{"ana"}, Opened: long, Reminded: true},
	}}
	info := execution(t, "trip-42/pay-1", "02b2", running, memo, map[string]any{agent.AttrAgent: "payer"})
	info.FirstRunId = "" // listings do not tell it
	f := &fake{list: func(string) []*workflowpb.WorkflowExecutionInfo { return []*workflowpb.WorkflowExecutionInfo{info} }}
	ids := func(filter InboxOptions) (out []string) {
		for w, err := range New(f, nil).Inbox(t.Context(), &filter) {
			require.NoError(t, err)
			out = append(out, w.ID)
		}
		return out
	}
	require.Equal(t, []string{"q-7", "q-8"}, ids(InboxOptions{}), "the oldest first")
	require.Equal(t, []string{"q-7"}, ids(InboxOptions{Older: time.Hour}))
	require.Equal(t, []string{"q-7"}, ids(InboxOptions{WaitsFor: "approval"}))
	require.Equal(t, []string{"q-7"}, ids(InboxOptions{Approver: "ana", TaskQueue: "orders"}))
	require.Equal(t, []string{"q-8"}, ids(InboxOptions{WaitsFor: "question", Agent: "o'hara", Session: "trip-42", Approver: ""}))
	live := "WorkflowType = 'fermata.run' AND ExecutionStatus = 'Running' AND "
	all, base := live+"(FermataWaitsFor = 'input_required' OR FermataWaitsFor = 'worker_lost')", live+"FermataWaitsFor = 'input_required'"
	require.Equal(t, []string{
		all, all, base + " AND FermataWaitsFor = 'approval'", all + " AND FermataWaitsFor = 'approver:ana' AND TaskQueue = 'orders'",
		base + " AND FermataWaitsFor = 'question' AND FermataAgent = 'o''hara' AND (WorkflowId = 'trip-42' OR WorkflowId STARTS_WITH 'trip-42/')",
	}, unique(f.queries))

	for w, err := range New(f, nil).Inbox(t.Context(), &InboxOptions{WaitsFor: "question"}) {
		require.NoError(t, err)
		require.Equal(t, []any{late.Add(time.Hour), "Rome"}, []any{w.Deadline, w.Default})
	}
	for w, err := range New(f, nil).Inbox(t.Context(), &InboxOptions{WaitsFor: "approval"}) {
		require.NoError(t, err)
		require.GreaterOrEqual(t, w.Age, agent.Duration(48*time.Hour))
		w.Age = 0
		require.Equal(t, InboxItem{Reminded: true, Request: agent.Request{
			ID: "q-7", Type: agent.RequestApproval, Session: "trip-42/pay-1", Run: "01a2", Suspension: "s-3", Agent: "payer", Text: "Run pay?",
			Call: &agent.RequestCall{Tool: "pay"}, Digest: "9f2c41aa03b1c2d4", Approvers: []string{"ana"}, Opened: long,
		}}, w)
	}
}

// unique leaves out the further pages' queries.
func unique(queries []string) (out []string) {
	for i, q := range queries {
		if i%2 == 0 {
			out = append(out, q)
		}
	}
	return out
}

// The whole request comes from the run.
func TestRequest(t *testing.T) {
	one := agent.Request{ID: "q-7", Call: &agent.RequestCall{Tool: "pay", Arguments: []byte(`{"eur":800}`)}}
	two := agent.Request{ID: "q-8"}
	for _, c := range []struct {
		open []agent.Request
		id   string
		code agent.Code
		says string
	}{
		{[]agent.Request{one}, "", "", ""},
		{[]agent.Request{one}, "q-7", "", ""},
		{[]agent.Request{two, one}, "q-7", "", ""},
		{[]agent.Request{one, two}, "", agent.CodeInvalidInput, "name one of q-7, q-8"},
		{[]agent.Request{one, two}, "q-6", agent.CodeNotFound, "request q-6 of session a is not open; open is q-7, q-8"},
		{nil, "q-7", agent.CodeNotFound, "request q-7 of session a is not open; nothing is, it is running"},
		{nil, "", agent.CodeNotFound, "session a has no open request"},
	} {
		f := &fake{status: func(context.Context) (agent.RunStatus, error) {
			s := agent.RunStatus{Session: "a", Run: "01a1", Status: agent.StatusRunning}
			if c.open != nil {
				s.Suspension = &agent.Suspension{Requests: c.open}
			}
			return s, nil
		}}
		got, err := New(f, nil).Request(t.Context(), "a", c.id)
		if c.code == "" {
			require.NoError(t, err)
			require.Equal(t, one, got)
			continue
		}
		var e *agent.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, c.code, e.Code)
		require.Contains(t, e.Message, c.says)
		require.Equal(t, "01a1", e.Run)
	}
}

// What a start may say beside its text reaches the run (HL-82, HL-120).
func TestStartParkedWithABriefing(t *testing.T) {
	var begun agent.Start
	f := &fake{begin: func(s agent.Start) (string, error) { begun = s; return "01a1", nil }}
	c := New(f, nil)
	o := &StartOptions{Park: &agent.Conditions{After: agent.Duration(time.Hour)}, Briefing: &agent.Handoff{
		V: 1, Session: "a", Run: "01a0", Agent: "payer", Status: agent.StatusStopped, Task: "pay", Reason: "requested", Summary: "half is paid", SummarizedBy: agent.SummarizedByRule,
	}}
	_, err := c.Start(t.Context(), "payer", "", o)
	require.NoError(t, err)
	require.Equal(t, o.Park, begun.Park)
	require.Equal(t, o.Briefing, begun.Input.Briefing)
	o.Park = &agent.Conditions{Event: &agent.EventCondition{Topic: "no blanks"}}
	f.begin = func(agent.Start) (string, error) { t.Error("it was begun"); return "", nil }
	_, err = c.Start(t.Context(), "payer", "go on", o)
	require.ErrorIs(t, err, agent.CodeInvalidInput)
}

// A query can't reach what the other conditions leave out.
func TestAQueryStaysInItsParentheses(t *testing.T) {
	f := &fake{list: func(string) []*workflowpb.WorkflowExecutionInfo { return nil }}
	for query, sound := range map[string]bool{
		"a = 'x' OR (b = 'y')": true, `a = 'it''s )' AND b = "(" AND c = '\')'`: true, "a = '--;#'": true, "": true,
		"a = 'x') OR (b = 'y'": false, "a = 'x') --": false, "a = 'x' # y": false, "a = 'x'; b": false, "a /* ( */": false, "(a = 'x'": false, "a = 'x": false, ")(": false,
	} {
		_, err := New(f, nil).ListPage(t.Context(), &ListOptions{TaskQueue: "mine", Query: query})
		if sound {
			require.NoError(t, err, query)
		} else {
			require.ErrorIs(t, err, agent.CodeInvalidInput, query)
		}
	}
}
