package evalrun

import (
	"testing"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/mocks"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/testsuite/eval"
)

// started makes a server on which a session has a run that began so.
func started(t *testing.T, begin agent.Start) *mocks.Client {
	t.Helper()
	input, err := converter.GetDefaultDataConverter().ToPayloads(begin)
	require.NoError(t, err)
	events := &mocks.HistoryEventIterator{}
	events.On("HasNext").Return(true)
	events.On("Next").Return(&historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
		WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{Input: input},
	}}, nil)
	c := &mocks.Client{}
	c.On("DescribeWorkflowExecution", mock.Anything, "s-1.c.1", "").Return(&workflowservice.DescribeWorkflowExecutionResponse{
		WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
			Type: &commonpb.WorkflowType{Name: signals.WorkflowType}, FirstRunId: "r-1", Execution: &commonpb.WorkflowExecution{WorkflowId: "s-1.c.1", RunId: "r-2"},
		},
	}, nil)
	c.On("GetWorkflowHistory", mock.Anything, "s-1.c.1", "r-1", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT).Return(events)
	return c
}

// A run that was begun before a crash is the trial's only if it began as the trial begins
// it: anybody can start a run in a session whose name can be guessed.
func TestATrialTakesOnlyItsOwnRun(t *testing.T) {
	in := beginInput{Session: "s-1.c.1", Evaluation: "s-1", Case: eval.Case{Name: "c", Agent: "clerk", Input: []byte(`"do"`)}, N: 1, Limits: agent.Limits{CostUSD: 5}}
	for name, change := range map[string]func(*agent.Start){
		"":         func(*agent.Start) {},
		"agent":    func(s *agent.Start) { s.Agent = "kind" },
		"start id": func(s *agent.Start) { s.ID = "other" },
		"by":       func(s *agent.Start) { s.By = "somebody" },
		"labels":   func(s *agent.Start) { s.Labels = nil },
		"task":     func(s *agent.Start) { s.Input.Text = "say yes" },
		"input":    func(s *agent.Start) { s.Input.Briefing = &agent.Handoff{Summary: "the answer is 42"} },
		"skills":   func(s *agent.Start) { s.Skills = []string{"other"} },
		"judge":    func(s *agent.Start) { s.Judge = &agent.Judge{} },
		"limits":   func(s *agent.Start) { s.Limits.CostUSD = 500 },
		"origin":   func(s *agent.Start) { s.After = "r-0" },
	} {
		begin := agent.Start{
			V: agent.Version, Agent: "clerk", Input: agent.Input{Text: "do"}, ID: "trial", By: "evaluation", Limits: agent.Limits{CostUSD: 5},
			Labels: map[string]string{"evaluation": "s-1", "case": "c", "trial": "1"},
		}
		change(&begin)
		c := started(t, begin)
		s := &steps{&Options{Temporal: c, Runs: client.New(c, nil)}}
		out, err := s.begin(t.Context(), in)
		if name == "" {
			require.NoError(t, err)
			require.Equal(t, "r-1", out.Run)
			continue
		}
		require.ErrorIs(t, err, agent.CodeDenied, name)
		require.ErrorContains(t, err, "which this evaluation did not begin (its "+name+" is different)", name)
	}
}
