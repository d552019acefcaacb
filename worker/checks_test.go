package worker

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/tool"
)

// A worker does not start with a check that calls a tool without the person that the tool asks for, or
// that gives what a model wrote to a tool that changes something.
func TestToolsThatChecksMustNotCall(t *testing.T) {
	fn := func(context.Context, *tool.Call, agent.Proposal) (string, error) { return "", nil }
	shell := func(context.Context, *tool.Call, struct {
		Command string `json:"command"`
	}) (string, error) {
		return "", nil
	}
	tools := map[string]tool.Tool{}
	for _, one := range []tool.Tool{
		tool.New("look", "looks", fn, &tool.Options{ReadOnly: true}), tool.New("deploy", "deploys", fn, nil),
		tool.New("pay", "pays", fn, &tool.Options{ReadOnly: true, Approval: &agent.ToolApproval{}}), tool.New(agent.ShellTool, "runs", shell, nil),
	} {
		tools[one.Spec().Name] = one
	}
	faults := func(k agent.Check, approvals map[string]agent.ToolApproval) []error {
		k.Name = "c"
		a := activities.Agent{Spec: agent.Spec{Definition: agent.Definition{Name: "a", Verify: agent.Verify{Checks: []agent.Check{k}}}}}
		return addChecks(&a, &activities.Activities{Tools: tools, Approvals: approvals})
	}
	require.Empty(t, faults(agent.Check{Tool: "look"}, nil))
	require.Empty(t, faults(agent.Check{Tool: "deploy", Arguments: json.RawMessage(`{}`)}, nil))
	require.Empty(t, faults(agent.Check{Command: "make"}, nil))
	for want, got := range map[string][]error{
		"the tool deploy is not read-only, and without arguments it gets the answer": faults(agent.Check{Tool: "deploy"}, nil),
		"the tool pay needs a person's approval":                                     faults(agent.Check{Tool: "pay", Arguments: json.RawMessage(`{}`)}, nil),
		"the tool shell_run needs a person's approval":                               faults(agent.Check{Command: "make"}, map[string]agent.ToolApproval{"shell_*": {}}),
	} {
		require.Len(t, got, 1, want)
		require.ErrorIs(t, got[0], agent.CodeInvalidInput)
		require.ErrorContains(t, got[0], want)
	}
}
