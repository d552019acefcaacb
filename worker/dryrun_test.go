package worker_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

type amount struct {
	USD int `json:"usd"`
}

func lookAndPay() []tool.Tool {
	do := func(context.Context, *tool.Call, amount) (string, error) { return "done", nil }
	return []tool.Tool{
		tool.New("look", "Looks.", do, &tool.Options{ReadOnly: true}),
		tool.New("pay", "Pays.", do, nil),
		tool.New("sign", "Signs.", do, &tool.Options{Approval: &agent.ToolApproval{Reason: "It binds us.", Approvers: []string{"ana@acme.com"}}}),
	}
}

func payer() agent.Definition {
	return agent.Definition{
		Name: "payer", Model: "script/m", Role: "reviewer", Instructions: "You pay.", Tools: []string{"look", "pay", "sign", agent.AskUserTool}, Completion: agent.CompletionTool,
		Agents: []agent.SubAgent{{Agent: "payer", Tools: []string{"*"}}},
		Rules: []agent.Rule{
			{Do: agent.RulingAllow, Tools: []string{"sign"}},
			{Do: agent.RulingAsk, Tools: []string{"pay"}, Reason: "It costs money."},
			{Do: agent.RulingDeny, Tools: []string{"pay"}, Arguments: json.RawMessage(`{"properties":{"usd":{"minimum":100}}}`)},
		},
		Default: agent.RulingDeny,
	}
}

// HA-108: a start can be looked at without being made. What is shown is what a run then sends
// as its first request, and no model is called for it.
func TestADryRunIsWhatTheRunWouldBe(t *testing.T) {
	script := testsuite.NewScript(testsuite.Reply{Calls: []testsuite.Call{{Tool: agent.FinishTool, Arguments: map[string]any{"summary": "Paid."}}}})
	o := &worker.Options{Agents: []agent.Definition{payer()}, Tools: lookAndPay(), Models: map[string]model.Model{"script": script}}
	p, err := worker.DryRun(t.Context(), o, agent.Start{Agent: "payer", Input: agent.Input{Text: "Pay 7."}})
	require.NoError(t, err)
	require.Empty(t, script.Requests(), "a look calls no model")

	rulings := map[string]agent.ToolPreview{}
	for _, one := range p.Tools {
		rulings[one.Tool] = one
	}
	require.Equal(t, agent.ToolPreview{Tool: "look", ReadOnly: true, Ruling: agent.RulingDeny}, rulings["look"])
	require.Equal(t, agent.ToolPreview{Tool: "pay", Ruling: agent.RulingAsk, Maybe: []agent.Ruling{agent.RulingDeny}, Reason: "It costs money."}, rulings["pay"])
	require.Equal(t, agent.ToolPreview{Tool: "sign", Ruling: agent.RulingAsk, Approvers: []string{"ana@acme.com"}, Reason: "It binds us."}, rulings["sign"])
	require.Equal(t, agent.RulingAllow, rulings[agent.AskUserTool].Ruling)
	require.Equal(t, agent.RulingAllow, rulings[agent.FinishTool].Ruling)
	require.Equal(t, agent.ExecutorSubAgent, rulings["subagent__payer"].Executor)

	// Every default is filled in, the role's and the runtime's.
	require.Equal(t, "reviewer", p.Spec.Role)
	require.Equal(t, 30, p.Spec.Limits.OwnTurns)
	require.Equal(t, 3, p.Spec.Nudges)
	require.Equal(t, 8, p.Spec.ParallelTools)
	require.Equal(t, "You pay.", p.Spec.Instructions)

	out := testsuite.New(t, &testsuite.Options{Worker: o}).Start("payer", "Pay 7.", nil).Ended()
	require.NoError(t, out.Err())
	sent := script.Requests()[0]
	require.Equal(t, sent.Instructions, p.Instructions)
	require.Equal(t, sent.Tools, p.Spec.Toolset)
	require.Len(t, p.Messages, len(sent.Messages))
	require.Equal(t, sent.Messages[0].Text(), p.Messages[0].Text())
	require.Positive(t, p.Request.Bytes)
	require.Greater(t, int64(p.Request.Bytes), p.Request.Tokens)

	longer, err := worker.DryRun(t.Context(), o, agent.Start{Agent: "payer", Input: agent.Input{Text: "Pay 7, and then 1000 more."}})
	require.NoError(t, err)
	require.Equal(t, p.Request.Bytes+len(", and then 1000 more"), longer.Request.Bytes)
}

// A check of the task is not made, and the first request is the same as without it.
func TestADryRunBehindAGuard(t *testing.T) {
	script := testsuite.NewScript()
	o := &worker.Options{Agents: []agent.Definition{payer()}, Tools: lookAndPay(), Models: map[string]model.Model{"script": script}}
	start := agent.Start{Agent: "payer", Input: agent.Input{Text: "Pay 7."}}
	plain, err := worker.DryRun(t.Context(), o, start)
	require.NoError(t, err)
	require.Positive(t, plain.Request.Bytes)
	o.Agents[0].Hooks.BeforeRun.Checks = []agent.Check{{Name: "guard", Judge: &agent.Judge{Instructions: "Refuse it."}}, {Name: "look", Tool: "look", Arguments: json.RawMessage(`{"usd":1}`)}}
	p, err := worker.DryRun(t.Context(), o, start)
	require.NoError(t, err)
	require.Empty(t, script.Requests(), "a look asks no judge")
	require.Equal(t, plain.Request, p.Request)
	require.Equal(t, plain.Instructions, p.Instructions)
	require.Equal(t, plain.Messages, p.Messages)
}

// What a run would fail with is the look's error.
func TestADryRunThatWouldFail(t *testing.T) {
	o := &worker.Options{Agents: []agent.Definition{payer()}, Tools: lookAndPay(), Models: map[string]model.Model{"script": testsuite.NewScript()}}
	_, err := worker.DryRun(t.Context(), o, agent.Start{Agent: "payer"})
	require.ErrorIs(t, err, agent.CodeInvalidInput)
	require.ErrorContains(t, err, "input is missing")
	_, err = worker.DryRun(t.Context(), o, agent.Start{Agent: "prayer", Input: agent.Input{Text: "Pay."}})
	require.ErrorIs(t, err, agent.CodeUnknownAgent)
	o.Tools = nil
	_, err = worker.DryRun(t.Context(), o, agent.Start{Agent: "payer", Input: agent.Input{Text: "Pay."}})
	require.ErrorIs(t, err, agent.CodeUnknownTool)

	o.Tools = lookAndPay()
	parked, err := worker.DryRun(t.Context(), o, agent.Start{Agent: "payer", Input: agent.Input{Text: "Pay."}, Park: &agent.Conditions{}})
	require.NoError(t, err)
	require.Zero(t, parked.Request, "a parked run begins without a model call")
}
