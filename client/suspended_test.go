package client

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/fermata-agents/fermata/agent"
)

// The list of what is suspended has each one's reason, conditions, age, who suspended it, since when,
// and the place in its log (HL-94).
func TestTheListOfWhatIsSuspended(t *testing.T) {
	since := time.Now().Add(-48 * time.Hour).Truncate(time.Second).UTC()
	info := execution(t, "trip-42", "01a1", running, agent.Memo{V: 1, Run: "01a1", Status: agent.StatusSuspended, Since: since, Suspension: "s-3"}, map[string]any{agent.AttrAgent: "payer"})
	status := agent.RunStatus{
		Session: "trip-42", Run: "01a1", Agent: "payer", Status: agent.StatusSuspended, Since: since, Seq: 118,
		Suspension: &agent.Suspension{
			ID: "s-3", Kind: agent.SuspensionParked, Initiator: agent.InitiatorSelf, Reason: "until it is paid", Since: since,
			Conditions: &agent.Conditions{Event: &agent.EventCondition{Topic: "paid"}},
		},
	}
	var failed error
	f := &fake{
		list:     func(string) []*workflowpb.WorkflowExecutionInfo { return []*workflowpb.WorkflowExecutionInfo{info} },
		describe: func(string, string) (*workflowpb.WorkflowExecutionInfo, error) { return info, nil },
		status:   func(context.Context) (agent.RunStatus, error) { return status, failed },
	}
	list := func() (all []SuspendedRun) {
		for s, err := range New(f, nil).Suspended(t.Context(), nil) {
			require.NoError(t, err)
			all = append(all, s)
		}
		return all
	}
	raw, err := json.Marshal(list()[0])
	require.NoError(t, err)
	var line struct {
		Session    string           `json:"session"`
		Reason     string           `json:"reason"`
		Since      time.Time        `json:"since"`
		AgeMS      int64            `json:"age_ms"`
		Snapshot   string           `json:"snapshot"`
		Suspension agent.Suspension `json:"suspension"`
	}
	require.NoError(t, json.Unmarshal(raw, &line))
	require.Equal(t, []string{"trip-42", "until it is paid", "118", "self", "paid"},
		[]string{line.Session, line.Reason, line.Snapshot, string(line.Suspension.Initiator), line.Suspension.Conditions.Event.Topic})
	require.Equal(t, since, line.Since)
	require.InDelta(t, 48*time.Hour.Milliseconds(), line.AgeMS, 60_000)
	require.Contains(t, f.queries[0], "FermataStatus = 'suspended'")

	failed = agent.Errorf(agent.CodeNoWorker, "no worker")
	silent := list()
	require.Equal(t, agent.CodeNoWorker, silent[0].Error.Code)
	require.Equal(t, since, silent[0].Since, "what the listing has")
	failed, status.Status, status.Suspension = nil, agent.StatusRunning, nil
	require.Empty(t, list(), "it has gone on")
}
