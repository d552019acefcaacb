package billing_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/worker"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/devserver"
	"github.com/fermata-agents/fermata/examples/billing"
	"github.com/fermata-agents/fermata/flow"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/worker"
)

// existing is a server with the worker that was there before.
func existing(t *testing.T) client.Client {
	t.Helper()
	c := devserver.ForTest(t).Client(t)
	w := sdk.New(c, billing.TaskQueue, sdk.Options{})
	billing.Register(w)
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	return c
}

func TestAnAgentChargesAndShips(t *testing.T) {
	clerk := billing.Clerk
	clerk.Model = "script"
	s := testsuite.New(t, &testsuite.Options{
		Server: existing(t),
		Worker: &worker.Options{Agents: []agent.Definition{clerk}, Tools: billing.Tools},
		Model: testsuite.NewScript(
			testsuite.Reply{Calls: []testsuite.Call{{Tool: "charge", Arguments: map[string]any{"card": "visa", "cents": 900}}}},
			testsuite.Reply{Match: `"id":"r-1"`, Calls: []testsuite.Call{{Tool: "ship", Arguments: map[string]any{"item": "kettle"}}}},
			testsuite.Reply{Match: "kettle is on its way", Text: "Done."}),
	})
	run := s.Start("clerk", "Sell the kettle.", nil)
	require.Equal(t, "charge", run.Suspended().Requests[0].Call.Tool)
	run.Approve()
	require.Equal(t, "Done.", run.Completed().Text)
}

func TestAFlowChargesAndShips(t *testing.T) {
	s := testsuite.New(t, &testsuite.Options{Server: existing(t), Worker: &worker.Options{Flows: []flow.Flow{billing.Buy}}})
	require.Equal(t, "kettle is on its way, receipt r-1", s.Start("buy", `{"card":"visa","cents":900,"item":"kettle"}`, nil).Completed().Text)
	out := s.Start("buy", `{"card":"expired","cents":900,"item":"kettle"}`, nil).Ended()
	require.Equal(t, agent.CodeStepFailed, out.Error.Code)
	require.Contains(t, out.Error.Message, "the card has expired")
}
