package evalrun

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/converter"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/testsuite/eval"
)

// options are those that a trial's run starts with, without its files.
func (in *beginInput) options() *client.StartOptions {
	return &client.StartOptions{
		Session: in.Session, ID: "trial", By: eval.By, Limits: in.Limits,
		Labels: map[string]string{"evaluation": in.Evaluation, "case": in.Case.Name, "trial": strconv.Itoa(in.N)},
	}
}

// own returns [agent.CodeDenied] unless the run began as the trial begins it. The comparison
// is with the run's input: a memo changes while the run works.
func (s *steps) own(ctx context.Context, run *client.Run, want agent.Start) error {
	events := s.o.Temporal.GetWorkflowHistory(ctx, run.Session, run.ID, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	if !events.HasNext() {
		return strange(run, "it has no history")
	}
	first, err := events.Next()
	if err != nil {
		return fmt.Errorf("reading how run %s began: %w", run.ID, durable.FromRPC(err))
	}
	var got agent.Start
	input := first.GetWorkflowExecutionStartedEventAttributes().GetInput()
	if err := converter.GetDefaultDataConverter().FromPayloads(input, &got); err != nil {
		return strange(run, "its input can't be read")
	}
	return compareStarts(run, got, want)
}

// compareStarts compares what a run began with and what the trial would begin it with.
func compareStarts(run *client.Run, got, want agent.Start) error {
	for _, one := range []struct {
		what string
		same bool
	}{
		{"agent", got.Agent == want.Agent},
		{"start id", got.ID == want.ID},
		{"by", got.By == want.By},
		{"labels", maps.Equal(got.Labels, want.Labels)},
		{"task", got.Input.Text == want.Input.Text},
		{"input", got.Input.Briefing == nil && len(got.Input.Data) == 0 && !slices.ContainsFunc(got.Input.Parts, func(p agent.Part) bool { return p.Text != "" })},
		{"skills", slices.Equal(got.Skills, want.Skills)},
		{"judge", got.Judge == nil},
		{"limits", got.Limits == want.Limits},
		{"origin", got.From == nil && got.Import == "" && got.After == ""},
	} {
		if !one.same {
			return strange(run, "its "+one.what+" is different")
		}
	}
	return nil
}

func strange(run *client.Run, why string) error {
	return agent.Errorf(agent.CodeDenied, "the session %s has the run %s, which this evaluation did not begin (%s): start a new evaluation", run.Session, run.ID, why)
}
