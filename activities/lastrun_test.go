package activities

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/internal/toolcall"
)

// Ids of calls begin again in each run. A check of calls sees those of its own run, whatever an earlier
// run has done under the same ids; and with nothing to look at it fails.
func TestChecksSeeTheCallsOfTheirRun(t *testing.T) {
	call := func(of string) agent.ToolCall {
		return agent.ToolCall{ID: "t1.1", Tool: "read", Arguments: json.RawMessage(`{"of":"` + of + `"}`)}
	}
	done := agent.Event{Type: agent.EventCallDone, Call: &agent.CallUpdate{Call: "t1.1", Tool: "read"}}
	began := agent.Event{Started: &agent.Started{Spec: &agent.Spec{}}}
	log := checkedLog(agent.Spec{}, userSays("one", ""), modelCalls("", call("notes")), done, began, userSays("two", ""), modelCalls("", call("secrets")))
	p, err := proposedCalls(log, 1)
	require.NoError(t, err)
	require.Equal(t, []agent.ProposedCall{{ID: "t1.1", Tool: "read", Arguments: json.RawMessage(`{"of":"secrets"}`)}}, p.Calls)

	_, err = proposedCalls(checkedLog(agent.Spec{}, userSays("one", ""), modelCalls("", call("notes")), done), 1)
	require.ErrorIs(t, err, agent.CodeInternal)
	_, err = proposedCalls(checkedLog(agent.Spec{}, userSays("one", ""), modelCalls("", call("notes")), began, userSays("two", "")), 1)
	require.ErrorIs(t, err, agent.CodeInternal, "the calls of an earlier run are none of this one's")
}

// A check sees the text with which the run would end: no text of an earlier run, and none that an
// interrupt has cut off.
func TestChecksSeeTheTextOfTheirRun(t *testing.T) {
	spec := agent.Spec{Definition: agent.Definition{Completion: agent.CompletionTool, Output: json.RawMessage(`{"type":"object"}`)}}
	old := agent.TextMessage(agent.RoleAssistant, "Invoice 1 is paid and verified.")
	finish := agent.ToolCall{ID: "t1.1", Tool: agent.FinishTool, Arguments: json.RawMessage(`{"paid":[]}`)}
	log := checkedLog(spec, userSays("invoice 1", ""), agent.Event{Message: &old}, agent.Event{Started: &agent.Started{Spec: &spec}}, userSays("invoice 2", ""), modelCalls("", finish))
	p, err := proposalIn(log, "t1.1", 1)
	require.NoError(t, err)
	require.Empty(t, p.Text)

	half, call := agent.TextMessage(agent.RoleAssistant, "All is done and tested."), agent.ToolCall{ID: "t1.1", Tool: "add"}
	half.Partial = true
	log = checkedLog(agent.Spec{}, userSays("go", ""), modelCalls("I begin.", call), agent.Event{Message: &half}, modelCalls("", call))
	require.Equal(t, "I begin.", lastWords(log, 4).Text)
}

// No judge reads a secret argument, neither of the calls that it looks at nor of those before.
func TestAJudgeReadsNoSecretArguments(t *testing.T) {
	call := agent.ToolCall{ID: "t1.1", Tool: "sign_in", Arguments: json.RawMessage(`{"user":"ann","password":"hunter2"}`)}
	log := checkedLog(agent.Spec{Toolset: []agent.ToolSpec{{Name: "sign_in", Secrets: []string{"password"}}}}, userSays("go", ""), modelCalls("", call))
	p, err := proposedCalls(log, 1)
	require.NoError(t, err)
	q, err := callsQuestion(log, p)
	require.NoError(t, err)
	text := q.prompt(agent.Check{Judge: &agent.Judge{Model: "other/j"}}, log.Spec(), "").Text
	require.Contains(t, text, "ann")
	require.NotContains(t, text, "hunter2")
}

// A build that lacks a hook's tool decides nothing: another worker is looked for.
func TestABuildWithoutAHooksToolDecidesNothing(t *testing.T) {
	run := func(check *loop.CheckArgs) error {
		in := ToolInput{}
		in.Tool, in.Attempts, in.Check = "gate", 3, check
		var err error
		require.NoError(t, inActivity(t, func(ctx context.Context) error {
			_, err = (&Activities{}).runTool(ctx, in, callOf(in, 1).With(&toolcall.Hooks{}), &toolcall.Hooks{})
			return nil
		}))
		return err
	}
	require.ErrorAs(t, run(&loop.CheckArgs{Point: agent.PointBeforeResume, Name: "gate"}), new(durable.NoSlot))

	err := run(nil) // the model's own call: it reads that the tool is missing
	require.ErrorIs(t, err, agent.CodeUnknownTool)
	require.False(t, errors.As(err, new(durable.NoSlot)))
}

// A notebook outlives its run, and ids of calls do not: what a fact cites is the result of its own run's
// call, also when another run has a call of that id.
func TestANotebookCitesTheCallOfItsRun(t *testing.T) {
	call := agent.ToolCall{ID: "t1.1", Tool: "fetch", Arguments: json.RawMessage(`{}`)}
	began := agent.Event{Started: &agent.Started{Spec: &agent.Spec{}}}
	result := func(text string) agent.Event {
		return returned(agent.ToolResult{Call: "t1.1", Tool: "fetch", Status: agent.CallOK, Text: text})
	}
	log := checkedLog(agent.Spec{}, userSays("one", ""), modelCalls("", call), result("IBAN OF THE CONTRACT"), began, userSays("two", ""), modelCalls("", call), result("IBAN OF A MAIL"))
	sources := newCitable(log, log.Entries())
	id, ok := sources.resolve("t1.1#4")
	require.True(t, ok, sources.String())
	newest, ok := sources.resolve("t1.1")
	require.True(t, ok)
	require.NotEqual(t, id, newest)
	cited := func(id string) string {
		return citedBodies(log.Events(), agent.Notebook{Version: 1, Facts: []agent.Fact{{Text: "the IBAN", Source: id}}}, nil, 4096)
	}
	require.Contains(t, cited(id), "IBAN OF THE CONTRACT")
	require.NotContains(t, cited(id), "IBAN OF A MAIL")
	require.Contains(t, cited(newest), "IBAN OF A MAIL")
}
