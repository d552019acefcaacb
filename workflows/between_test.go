package workflows

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/internal/wire"
	"github.com/fermata-agents/fermata/signals"
)

// between is what a run hears of what another has told it.
func between(t *testing.T, name string, told any) loop.Input {
	t.Helper()
	data, err := json.Marshal(told)
	require.NoError(t, err)
	in, refused := readTreeSignal(loop.Revision, signal{name: name, data: data})
	require.Nil(t, refused, "%v", refused)
	return in
}

// What one run tells another is heard whatever a model has written in it: nobody tells it
// again.
func TestWhatRunsTellEachOtherIsHeard(t *testing.T) {
	for _, words := range []string{"\n", "", "null", "Where?"} {
		told := wire.ChildReport{Run: "p", Session: "s/b-1", From: "c", Seq: 9, Status: agent.StatusSuspended, Suspension: &agent.SuspensionSummary{
			ID: "s-1", Kind: agent.SuspensionInputRequired, Reason: words, Since: noon, Open: 1, Requests: []agent.RequestSummary{{ID: "q-1", Type: agent.RequestQuestion, Text: words}},
		}}
		heard := between(t, signals.ChildReport, told).(loop.ChildReported).Report
		want, err := json.Marshal(told)
		require.NoError(t, err)
		got, err := json.Marshal(heard)
		require.NoError(t, err)
		require.JSONEq(t, string(want), string(got))
	}
}

// Nor is an order lost for what the model above has written as its reason.
func TestAnOrderWithoutWordsIsHeard(t *testing.T) {
	plain := agent.Definition{Agents: []agent.SubAgent{{Agent: "b"}}, Lifecycle: true}
	state := stand(t, plain, nil, calls(agent.ToolCall{Tool: "subagent__b", Arguments: json.RawMessage(`{"task":"one","background":true}`)}), loop.ChildStarted{Session: "s/b-1", Run: "c"})
	in := calls(agent.ToolCall{Tool: "subagent_stop", Arguments: json.RawMessage(`{"child":"s/b-1","reason":" "}`)})
	in.AskSeq = state.Turn.AskSeq
	_, effects, err := loop.Step(state, loop.Moment{At: noon}, in)
	require.NoError(t, err)
	heard := false
	for _, e := range effects {
		if e, ok := e.(loop.OrderChild); ok {
			heard = true
			between(t, signals.ParentOrder, e.Order)
		}
	}
	require.True(t, heard)
}

// What somebody else made up is still refused: what no run has a name for, and what is
// nested so deep that no run of ours wrote it.
func TestWhatNoRunToldIsRefused(t *testing.T) {
	for _, data := range []string{
		`{"run":"p","session":"s/b-1","from":"c","seq":1,"status":"running","more":1}`, `[]`, `{"seq":"one"}`, `{"seq":1,"seq":2}`,
		`{"outcome":{"status":"completed"}}`, `{"budget":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `}`,
	} {
		_, refused := readTreeSignal(loop.Revision, signal{name: signals.ChildReport, data: []byte(data)})
		require.NotNil(t, refused, "%.80s", data)
		require.Equal(t, agent.CodeInvalidInput, refused.Code)
	}
}
