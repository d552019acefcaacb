package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/converter"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite"
)

// Temporal's own UI tells what a run waits for, what to say to it, and what its
// timers and activities are for.
func TestWhatTemporalsUIShows(t *testing.T) {
	t.Parallel()
	s := setup(t, agent.Definition{Tools: []string{agent.AskUserTool}, AnswerTimeouts: agent.AnswerTimeouts{Deadline: agent.Duration(time.Hour)}}, testsuite.NewScript(asks("Where to?"), testsuite.Reply{Text: "done"}))
	run := s.begin(t, "Book a trip", nil)
	s.suspended(t, run)

	value, err := s.temporal.QueryWorkflow(t.Context(), run.Session, "", "__temporal_workflow_metadata")
	require.NoError(t, err)
	var about sdkpb.WorkflowMetadata
	require.NoError(t, value.Get(&about))
	require.Contains(t, about.GetCurrentDetails(), "**suspended** since ")
	require.Contains(t, about.GetCurrentDetails(), "`fermata answer "+run.Session+" --request q-1`, until ")
	require.NotContains(t, about.GetCurrentDetails(), "Where to?", "what is asked is for those who may read it")

	said := map[enums.EventType][]string{}
	for _, e := range s.history(t, run.Session, "") {
		if summary := text(t, e.GetUserMetadata().GetSummary()); summary != "" {
			said[e.GetEventType()] = append(said[e.GetEventType()], summary)
		}
	}
	require.Equal(t, []string{"tester"}, said[enums.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED])
	require.Equal(t, []string{"script"}, said[enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED][:1])
	require.Contains(t, said[enums.EVENT_TYPE_TIMER_STARTED], "going on in a new execution")
	_, err = run.Cancel(t.Context(), "", nil)
	require.NoError(t, err)
}

func text(t *testing.T, p *commonpb.Payload) (s string) {
	t.Helper()
	if p != nil {
		require.NoError(t, converter.GetDefaultDataConverter().FromPayload(p, &s))
	}
	return s
}

// An agent that redacts shows in no listing what it was asked, nor what it asks.
func TestARedactedAgentIsSilentInListings(t *testing.T) {
	t.Parallel()
	s := setup(t, agent.Definition{Tools: []string{agent.AskUserTool}, Redact: true}, testsuite.NewScript(asks("Which card, 4711?"), testsuite.Reply{Text: "done"}))
	run := s.begin(t, "Pay with the card of Ana", nil)
	s.suspended(t, run)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		described, err := s.temporal.DescribeWorkflowExecution(t.Context(), run.Session, "")
		require.NoError(c, err)
		var m agent.Memo
		require.NoError(c, converter.GetDefaultDataConverter().FromPayload(described.GetWorkflowExecutionInfo().GetMemo().GetFields()[agent.MemoKey], &m))
		require.Equal(c, agent.StatusSuspended, m.Status)
		require.Empty(c, m.Task)
		require.Len(c, m.Requests, 1)
		require.Empty(c, m.Requests[0].Text)
	}, patience, 50*time.Millisecond)
	_, err := run.Cancel(t.Context(), "", nil)
	require.NoError(t, err)
}
