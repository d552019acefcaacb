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
		"the tool deploy is not read-only, and without arguments it gets what a model wrote": faults(agent.Check{Tool: "deploy"}, nil),
		"the tool pay needs a person's approval":                                             faults(agent.Check{Tool: "pay", Arguments: json.RawMessage(`{}`)}, nil),
		"the tool shell_run needs a person's approval":                                       faults(agent.Check{Command: "make"}, map[string]agent.ToolApproval{"shell_*": {}}),
	} {
		require.Len(t, got, 1, want)
		require.ErrorIs(t, got[0], agent.CodeInvalidInput)
		require.ErrorContains(t, got[0], want)
	}
}

// A flow's function checks its own input and result: a worker does not start with checks that nobody makes.
func TestAFlowHasNoChecksOfItsTask(t *testing.T) {
	k := []agent.Check{{Name: "c", Command: "make"}}
	for want, def := range map[string]agent.Definition{
		"verify is for agents with a model":           {Verify: agent.Verify{Checks: k}},
		"hooks.before_run is for agents with a model": {Hooks: agent.Hooks{BeforeRun: agent.RunHooks{Checks: k}}},
	} {
		a := activities.Agent{Spec: agent.Spec{Definition: def, Flow: true}}
		got := addChecks(&a, &activities.Activities{})
		require.Len(t, got, 1)
		require.ErrorContains(t, got[0], want)
	}
}

// The tool that parks a run belongs to the machine. A worker does not start with a check or a hook that
// calls it, nor with a tool of its own of that name (HL-23).
func TestNothingElseParks(t *testing.T) {
	k := agent.Check{Name: "c", Tool: agent.AwaitResumptionTool, Arguments: json.RawMessage(`{"reason":"why"}`)}
	for _, def := range []agent.Definition{
		{Name: "a", Verify: agent.Verify{Checks: []agent.Check{k}}}, {Name: "a", Hooks: agent.Hooks{AfterResume: agent.HookList{Checks: []agent.Check{k}}}},
	} {
		a := activities.Agent{Spec: agent.Spec{Definition: def}}
		got := addChecks(&a, &activities.Activities{})
		require.Len(t, got, 1)
		require.ErrorIs(t, got[0], agent.CodeInvalidInput)
		require.ErrorContains(t, got[0], "await_resumption belongs to the runtime")
	}
	own := tool.New(agent.AwaitResumptionTool, "parks", func(context.Context, *tool.Call, struct{}) (string, error) { return "", nil }, nil)
	_, err := New(nil, &Options{Tools: []tool.Tool{own}})
	require.ErrorIs(t, err, agent.CodeInvalidInput)
}

// A hook that is told may write, and one that is asked may not.
func TestToolsOfHooks(t *testing.T) {
	write := agent.ToolSpec{Name: "post"}
	k := agent.Check{Name: "c", Tool: "post"}
	require.NoError(t, k.MayCall(agent.PointAfterSuspension, write))
	require.NoError(t, k.MayCall(agent.PointAfterResume, write))
	require.ErrorIs(t, k.MayCall(agent.PointBeforeResume, write), agent.CodeInvalidInput)
}

// Agents whose checks ask one another in a circle are refused: no answer would ever be accepted, and each
// would start a run.
func TestChecksThatLeadBackToTheirAgent(t *testing.T) {
	ask := func(name string, others ...string) agent.Definition {
		def := agent.Definition{Name: name}
		for _, other := range others {
			def.Verify.Checks = append(def.Verify.Checks, agent.Check{Name: other, Agent: other, Task: "Look."})
		}
		return def
	}
	for _, c := range []struct {
		want string
		list []agent.Definition
	}{
		{"", []agent.Definition{ask("a", "b", "c"), ask("b", "c"), ask("c")}},
		{"a asks a", []agent.Definition{ask("a", "b", "a"), ask("b")}},
		{"a asks c asks b asks a", []agent.Definition{ask("a", "c"), ask("b", "a"), ask("c", "b")}},
	} {
		faults := checkCircles(c.list)
		require.Equal(t, c.want == "", len(faults) == 0, "%v", faults)
		if c.want != "" {
			require.ErrorContains(t, faults[0], "("+c.want+")")
			require.ErrorIs(t, faults[0], agent.CodeInvalidInput)
		}
	}
	d := agent.Definition{Name: "d", Hooks: agent.Hooks{BeforeCalls: agent.CallHooks{Checks: []agent.Check{{Name: "x", Agent: "d", Task: "Look."}}}}}
	require.Len(t, checkCircles([]agent.Definition{d}), 1)
}
