package testsuite_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// payer pays, when somebody lets it, and looks a week later whether it has arrived.
func payer(paid *[]string) *worker.Options {
	pay := tool.New("pay", "pays an amount", func(_ context.Context, c *tool.Call, in struct{ EUR int }) (string, error) {
		*paid = append(*paid, c.Key)
		return "paid", nil
	}, nil)
	return &worker.Options{
		Tools: []tool.Tool{pay},
		Agents: []agent.Definition{{
			Name: "payer", Model: "anthropic/claude-sonnet-5", Tools: []string{"pay", agent.AskUserTool, agent.ParkTool},
			Rules: []agent.Rule{{Do: agent.Ask, Tools: []string{"pay"}}},
		}},
	}
}

func payment() *testsuite.Script {
	return testsuite.NewScript(
		testsuite.Reply{Calls: []testsuite.Call{{Tool: "pay", Arguments: map[string]any{"EUR": 800}}}},
		testsuite.Reply{Calls: []testsuite.Call{{Tool: agent.ParkTool, Arguments: map[string]any{"reason": "the bank is slow", "conditions": map[string]any{"after": "168h"}}}}},
		testsuite.Reply{Text: "It has arrived."},
	)
}

func TestAWholeStory(t *testing.T) {
	var paid []string
	s := testsuite.New(t, &testsuite.Options{Worker: payer(&paid), Model: payment()})
	run := s.Start("payer", "Pay invoice 118", nil)
	rest := run.Rest()
	require.Equal(t, agent.InputRequired, rest.Kind)
	require.Equal(t, "pay", rest.Requests[0].Call.Tool)
	require.Empty(t, paid)
	run.Approve()
	require.Equal(t, agent.WaitingFor, run.Rest().Kind)
	require.Len(t, paid, 1)
	s.Skip(6 * 24 * time.Hour)
	require.Equal(t, agent.WaitingFor, run.Rest().Kind)
	s.Skip(24 * time.Hour)
	o := run.Completed()
	require.Equal(t, "It has arrived.", o.Text)
	require.InDelta(t, 7*24*time.Hour, time.Duration(o.Parked), float64(time.Second))
	run.Golden("testdata/payer.txt")
	require.Contains(t, run.Transcript()[0].TextOf(), "Summed up", "after a long wait the model goes on from a summary")
	require.Equal(t, agent.Closed, run.Refused(agent.PauseOrder{}).Code)
	raw, err := json.Marshal(run.Status())
	require.NoError(t, err)
	require.Contains(t, string(raw), `"status":"completed"`)

	again := s.Start("payer", "And 119", &client.StartOptions{Session: run.Session})
	require.Equal(t, agent.Failed, again.End().Status, "the script has come to its end")
	require.NotEqual(t, o.Run, again.Wait().Run)
}
