package workflows

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/signals"
)

// between is what a run hears of what another has told it.
func between(t *testing.T, name string, told any) loop.Input {
	t.Helper()
	data, err := json.Marshal(told)
	require.NoError(t, err)
	in, refused := readTree(loop.Revision, signal{name, data})
	require.Nil(t, refused, "%v", refused)
	return in
}

// What one run tells another is heard whatever a model has written in it: nobody tells it
// again, and an end that is not heard is work that is lost.
func TestWhatRunsTellEachOtherIsHeard(t *testing.T) {
	deep := json.RawMessage(strings.Repeat("[", agent.MaxWrittenDepth) + strings.Repeat("]", agent.MaxWrittenDepth))
	tree := agent.Handoff{Requests: []agent.Request{{ID: "q-1", Type: agent.Approval, Call: &agent.RequestCall{ID: "t1.1", Tool: "pay", Arguments: deep}}}}
	for range 16 { // as deep as limits.depth may be
		tree = agent.Handoff{Children: []agent.Handoff{tree}}
	}
	for h := range tree.All() {
		h.Session, h.Run, h.Agent, h.Status, h.Task, h.Reason, h.Summary, h.SummarisedBy = "s", "c", "b", agent.Stopped, "x", "x", "x", agent.ByRule
		for i := range h.Requests {
			h.Requests[i].Session, h.Requests[i].Run, h.Requests[i].Suspension, h.Requests[i].Agent, h.Requests[i].Text = "s", "c", "s-1", "b", "x"
		}
	}
	for what, o := range map[string]agent.Outcome{
		"a blank answer":      {Status: agent.Completed, Text: "\n"},
		"an answer of null":   {Status: agent.Completed, Text: "null", Output: json.RawMessage("null")},
		"nulls in an answer":  {Status: agent.Completed, Text: "x", Output: json.RawMessage(`{"a":[null,""]}`)},
		"a deep answer":       {Status: agent.Completed, Text: "x", Output: deep},
		"a handoff of a tree": {Status: agent.Stopped, Text: "x", Handoff: &tree},
	} {
		t.Run(what, func(t *testing.T) {
			o.Type, o.Session, o.Run, o.Agent, o.Reason = "outcome", "s/b-1", "c", "b", "done"
			told := agent.ChildReport{Run: "p", Session: "s/b-1", From: "c", Seq: 9, Status: o.Status, Outcome: &o}
			heard := between(t, signals.Child, told).(loop.Reported).Report
			want, err := json.Marshal(told)
			require.NoError(t, err)
			got, err := json.Marshal(heard)
			require.NoError(t, err)
			require.JSONEq(t, string(want), string(got))
		})
	}
}

// Nor is an order lost for what the model above has written as its reason.
func TestAnOrderWithoutWordsIsHeard(t *testing.T) {
	plain := agent.Definition{Agents: []agent.SubAgent{{Agent: "b"}}, Lifecycle: true}
	state := stand(t, plain, nil, calls(agent.ToolCall{Tool: "subagent__b", Arguments: json.RawMessage(`{"task":"one","background":true}`)}), loop.ChildStarted{Session: "s/b-1", Run: "c"})
	in := calls(agent.ToolCall{Tool: "subagent_stop", Arguments: json.RawMessage(`{"child":"s/b-1","reason":" "}`)})
	in.Ask = state.Turn.Ask
	_, effects, err := loop.Step(state, loop.Moment{At: noon}, in)
	require.NoError(t, err)
	heard := false
	for _, e := range effects {
		if e, ok := e.(loop.TellChild); ok {
			heard = true
			between(t, signals.Hold, e.Order)
		}
	}
	require.True(t, heard)
}

// What somebody else made up is still refused: what no run has a name for, and what is
// nested so deep that no run of ours wrote it.
func TestWhatNoRunToldIsRefused(t *testing.T) {
	for _, data := range []string{
		`{"run":"p","session":"s/b-1","from":"c","seq":1,"status":"running","more":1}`, `[]`, `{"seq":"one"}`, `{"seq":1,"seq":2}`,
		`{"outcome":{"output":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `}}`,
	} {
		_, refused := readTree(loop.Revision, signal{signals.Child, []byte(data)})
		require.NotNil(t, refused, "%.80s", data)
		require.Equal(t, agent.InvalidInput, refused.Code)
	}
}
