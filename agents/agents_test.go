package agents_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/agents"
)

// env is a test environment of Temporal's in which a function takes the place of the runs.
func env(t *testing.T, id string, run func(ctx workflow.Context, s agent.Start) (*agent.Outcome, error)) *testsuite.TestWorkflowEnvironment {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	e := suite.NewTestWorkflowEnvironment()
	e.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: id})
	e.RegisterWorkflowWithOptions(run, workflow.RegisterOptions{Name: "fermata.run"})
	return e
}

func completed(text, output string) (*agent.Outcome, error) {
	return &agent.Outcome{V: 1, Type: "outcome", Status: agent.StatusCompleted, Text: text, Output: []byte(output)}, nil
}

// A new session has a valid id, whatever the workflow's own.
func TestSessions(t *testing.T) {
	for id, want := range map[string]string{
		"order-42":                `^order-42-reviewer-[a-z2-7]{8}$`,
		"order/42":                `^order-42-reviewer-[a-z2-7]{8}$`,
		"..Bestellung für 2":      `^Bestellung-f-r-2-reviewer-[a-z2-7]{8}$`,
		"ünï":                     `^n--reviewer-[a-z2-7]{8}$`,
		"//":                      `^workflow-reviewer-[a-z2-7]{8}$`,
		strings.Repeat("x", 1000): `^x{58}-reviewer-[a-z2-7]{8}$`,
	} {
		e := env(t, id, func(ctx workflow.Context, s agent.Start) (*agent.Outcome, error) {
			return completed(workflow.GetInfo(ctx).WorkflowExecution.ID+" "+workflow.GetInfo(ctx).TaskQueueName+" "+s.By, "")
		})
		e.ExecuteWorkflow(func(ctx workflow.Context) (string, error) {
			r := agents.Start[string](ctx, "reviewer", "go", nil)
			text, err := r.Result(ctx)
			if err == nil && text != r.Session+" fermata workflow:"+id {
				err = errors.New("session " + r.Session + " became " + text)
			}
			return r.Session, err
		})
		var session string
		require.NoError(t, e.GetWorkflowResult(&session))
		require.Regexp(t, want, session)
		require.NoError(t, agent.CheckSession(session))
	}
}

type verdict struct {
	Fine bool `json:"fine"`
}

// A task is text or JSON, and so is a result.
func TestTasksAndResults(t *testing.T) {
	e := env(t, "order-42", func(_ workflow.Context, s agent.Start) (*agent.Outcome, error) {
		if s.Input.Text == `{"fine":false}` {
			return completed("fine", `{"fine":true}`)
		}
		return completed(s.Input.Text, "")
	})
	e.ExecuteWorkflow(func(ctx workflow.Context) (out []string, err error) {
		v, err := agents.Execute[verdict](ctx, "a", verdict{}, nil)
		if err != nil || !v.Fine {
			return out, errors.New("no output")
		}
		text, err := agents.Execute[string](ctx, "a", verdict{}, nil)
		if err != nil || text != "fine" {
			return out, errors.New("no text")
		}
		if v, err = agents.Execute[verdict](ctx, "a", `{"fine": true}`, nil); err != nil || !v.Fine {
			return out, errors.New("no output from the text")
		}
		_, err = agents.Execute[verdict](ctx, "a", "well", nil)
		out = append(out, string(agent.CodeOf(err)))
		r := agents.Start[string](ctx, "a", func() {}, nil)
		_, err = r.Result(ctx)
		if !r.Future().IsReady() {
			return out, errors.New("it waits")
		}
		return append(out, string(agent.CodeOf(err)), string(agent.CodeOf(r.Send(ctx, agent.PauseCommand{})))), nil
	})
	var codes []string
	require.NoError(t, e.GetWorkflowResult(&codes))
	require.Equal(t, []string{"incompatible", "invalid_input", "invalid_input"}, codes)
}
