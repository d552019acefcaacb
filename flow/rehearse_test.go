package flow_test

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/flow"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

// A flow is rehearsed without a worker: each step gets a result, and paths name them.
func TestRehearse(t *testing.T) {
	f := flow.New("review", review, nil)
	r := testsuite.Rehearse(t, f, change{Files: []string{"a", "b"}}, func(s testsuite.RehearsedStep) (any, error) {
		switch s.Path {
		case "file.1/look":
			return "one", nil
		case "ask":
			return "yes", nil
		case "count":
			return s.Do(context.Background())
		}
		return "another", nil
	})
	require.NoError(t, r.Err)
	require.JSONEq(t, `{"found":["one","another"],"merge":true}`, string(r.Output))
	require.Len(t, r.Steps, 4)

	r = testsuite.Rehearse(t, f, change{Files: []string{"a"}}, func(s testsuite.RehearsedStep) (any, error) {
		if s.Name == "ask" {
			return nil, testsuite.ErrOpen
		}
		return "fine", nil
	})
	require.Equal(t, []string{"ask"}, r.Open)
}

// Agents, approvals, waits and failures of a rehearsal are read as a run's are.
func TestRehearseEveryKind(t *testing.T) {
	f := flow.New("all", func(c flow.Context, _ string) (string, error) {
		v, err := flow.Agent[report](c, "reviewer", "x", nil)
		if err != nil {
			return "", err
		}
		d, err := flow.Approve(c, "Merge?", v, nil)
		if err != nil || !d.Approved {
			return "no", err
		}
		e, err := flow.Wait(c, agent.Conditions{}, nil)
		if err != nil {
			return "", err
		}
		_, err = flow.Tool[string](c, "look", look{"bad"}, nil)
		var failed *flow.StepError
		if !errors.As(err, &failed) {
			return "", errors.New("it should fail")
		}
		return v.Found[0] + " " + d.By + " " + e.Topic + " " + failed.Path, nil
	}, &flow.Options{Agents: []agent.SubAgent{{Agent: "reviewer"}}})
	r := testsuite.Rehearse(t, f, "go", func(s testsuite.RehearsedStep) (any, error) {
		switch s.Tool {
		case "subagent__reviewer":
			return report{Found: []string{"it"}}, nil
		case agent.ApproveTool:
			return flow.Decision{Approved: true, By: "ana"}, nil
		case agent.AwaitResumptionTool:
			return flow.Event{Topic: "news"}, nil
		}
		return nil, errors.New("torn")
	})
	require.Equal(t, "it ana news look", r.Text, "%v", r.Err)
}

// recorder is a test that is told of a failure and goes on.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Errorf(string, ...any) { r.failed = true }
func (r *recorder) FailNow()              { panic(r) }

// What is not the same each time is found.
func TestRehearseFindsWhatIsNotTheSame(t *testing.T) {
	n := 0
	many := map[string]int{} // a few keys have the same order too often
	for i := range 500 {
		many[strconv.Itoa(i)] = i
	}
	for name, f := range map[string]flow.Flow{
		"the time": flow.New("f", func(c flow.Context, _ string) (string, error) {
			return flow.Do(c, time.Now().Format(time.RFC3339Nano), func(context.Context, *tool.Call) (string, error) { return "", nil }, nil)
		}, nil),
		"a variable outside": flow.New("f", func(c flow.Context, _ string) (string, error) {
			n++
			if _, err := flow.Ask[string](c, "Go on?", nil); err != nil {
				return "", err
			}
			return flow.Tool[string](c, "look", map[string]int{"n": n}, nil)
		}, nil),
		"the order of a map": flow.New("f", func(c flow.Context, _ string) (string, error) {
			for key := range many {
				if _, err := flow.Ask[string](c, key, &flow.AskOptions{Name: key}); err != nil {
					return "", err
				}
			}
			return "", nil
		}, nil),
	} {
		t.Run(name, func(t *testing.T) {
			r := &recorder{TB: t}
			func() {
				defer func() { _ = recover() }()
				testsuite.Rehearse(r, f, "go", func(testsuite.RehearsedStep) (any, error) { return "x", nil })
			}()
			require.True(t, r.failed)
		})
	}
}

// An answer that is of no use makes the flow ask again; it does not fail it.
func TestAPersonIsAskedAgain(t *testing.T) {
	f := flow.New("asks", func(c flow.Context, _ string) (int, error) { return flow.Ask[int](c, "How many?", nil) }, nil)
	answers := map[string]string{"ask": "many", "ask_again": "a few", "ask_again#2": "7"}
	r := testsuite.Rehearse(t, f, "go", func(s testsuite.RehearsedStep) (any, error) { return answers[s.Path], nil })
	require.NoError(t, r.Err)
	require.Equal(t, "7", string(r.Output))
	require.Contains(t, string(r.Steps[1].Arguments), `"question":"How many? (The last answer can't be used: \"many\" is no int`)
}

// Schemas that are known only when the program runs go with results that are JSON as it is.
func TestRehearseGivenSchemas(t *testing.T) {
	schema := json.RawMessage(`{"type":"integer"}`)
	f := flow.New("given", func(c flow.Context, _ string) (json.RawMessage, error) {
		n, err := flow.Agent[json.RawMessage](c, "counter", "x", &flow.AgentOptions{Output: schema})
		if err != nil {
			return nil, err
		}
		m, err := flow.Ask[json.RawMessage](c, "How many?", &flow.AskOptions{Schema: schema})
		if err != nil {
			return nil, err
		}
		own, err := flow.Agent[json.RawMessage](c, "own", "x", nil)
		return json.RawMessage(`[` + string(n) + `,` + string(m) + `,` + string(own) + `]`), err
	}, &flow.Options{Output: json.RawMessage(`{"type":"array"}`), Agents: []agent.SubAgent{{Agent: "counter"}, {Agent: "own"}}})
	require.JSONEq(t, `{"type":"array"}`, string(f.Definition().Output))
	r := testsuite.Rehearse(t, f, "go", func(testsuite.RehearsedStep) (any, error) { return 7, nil })
	require.NoError(t, r.Err)
	require.Equal(t, `[7,7,7]`, string(r.Output))
	require.JSONEq(t, `{"task":"x","output":{"type":"integer"}}`, string(r.Steps[0].Arguments))
	require.JSONEq(t, `{"question":"How many?","context":"","choices":null,"schema":{"type":"integer"}}`, string(r.Steps[1].Arguments))
	require.JSONEq(t, `{"task":"x"}`, string(r.Steps[2].Arguments), "the agent has its own schema")
}

// Two items whose keys are the same in paths fail the flow: their steps would be the same ones.
func TestKeysThatAreTheSameInPaths(t *testing.T) {
	for _, keys := range [][]string{{"a", "a"}, {"a/b", "a b"}} {
		f := flow.New("keys", func(c flow.Context, _ string) (string, error) {
			_, err := flow.Map(c, "m", keys, func(c flow.Context, k string) (string, error) { return flow.Agent[string](c, "x", k, nil) }, &flow.MapOptions{Key: func(i int) string { return keys[i] }})
			return "", err
		}, nil)
		r := testsuite.Rehearse(t, f, "go", func(testsuite.RehearsedStep) (any, error) { return "done", nil })
		require.ErrorContains(t, r.Err, "m: two items have the key", "%q", keys)
	}
}

// Activities and workflows of the user's own are rehearsed as other steps are.
func TestRehearseActivitiesAndWorkflows(t *testing.T) {
	f := flow.New("buy", func(c flow.Context, n int) (string, error) {
		paid, err := flow.Activity[report](c, "Pay", look{"a"}, &flow.ActivityOptions{TaskQueue: "house"})
		if err != nil {
			return "", err
		}
		return flow.Workflow[string](c, "Ship", paid.Found, &flow.WorkflowOptions{TaskQueue: "house", StepOptions: flow.StepOptions{Name: "ship"}})
	}, nil)
	r := testsuite.Rehearse(t, f, 1, func(s testsuite.RehearsedStep) (any, error) {
		require.Equal(t, agent.TemporalTool, s.Tool)
		if s.Path == "Pay" {
			require.JSONEq(t, `{"file":"a"}`, string(s.Arguments))
			return report{Found: []string{"it"}}, nil
		}
		require.JSONEq(t, `["it"]`, string(s.Arguments))
		return "shipped", nil
	})
	require.NoError(t, r.Err)
	require.Equal(t, "shipped", r.Text)

	nowhere := flow.New("nowhere", func(c flow.Context, _ int) (string, error) { return flow.Workflow[string](c, "Ship", nil, nil) }, nil)
	r = testsuite.Rehearse(t, nowhere, 1, func(testsuite.RehearsedStep) (any, error) { return nil, nil })
	require.ErrorIs(t, r.Err, agent.CodeInvalidInput)
}

// An agent that the flow does not have would be rejected in a run.
func TestRehearseFindsAMisspeltAgent(t *testing.T) {
	f := flow.New("f", func(c flow.Context, _ string) (string, error) { return flow.Agent[string](c, "reviwer", "x", nil) },
		&flow.Options{Agents: []agent.SubAgent{{Agent: "reviewer"}}})
	r := &recorder{TB: t}
	require.Panics(t, func() { testsuite.Rehearse(r, f, "go", func(testsuite.RehearsedStep) (any, error) { return "x", nil }) })
	require.True(t, r.failed)
}

// A test whose answers can't be used fails, and does not ask for ever.
func TestRehearseEndsWhereNoAnswerFits(t *testing.T) {
	f := flow.New("buy", func(c flow.Context, _ string) (int, error) {
		return flow.Ask[int](c, "How many?", &flow.AskOptions{Name: "many"})
	}, nil)
	r, asked := &recorder{TB: t}, 0
	require.Panics(t, func() {
		testsuite.Rehearse(r, f, "", func(testsuite.RehearsedStep) (any, error) { asked++; return "some", nil })
	})
	require.True(t, r.failed)
	require.Less(t, asked, 20)
}
