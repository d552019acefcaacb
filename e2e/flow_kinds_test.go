package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/flow"
	"github.com/fermata-agents/fermata/internal/flowfile"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// fault is a flow that fails in one way. file has it as a flow of an agents file, whose names begin with
// "file_". The mended build differs in what is wrong, if that is the flow.
type fault struct {
	do   func(c flow.Context, mended bool) (string, error)
	file func(mended bool) string

	code, cause agent.Code
	path        [2]string // of the error, in Go and in the file
	text        [2]string // after the retry
	did         string    // in each: how often each tool was called, in both runs together
}

// faults are the five kinds. "before" succeeds in each first run, and "weak" fails until it is mended.
var faults = map[string]fault{
	// A step fails, and the function returns its error with words of its own (node_exception).
	"step": {
		do: func(c flow.Context, _ bool) (string, error) {
			text, err := flow.Tool[string](c, "weak", weight{"x"}, nil)
			if err != nil {
				return "", fmt.Errorf("paying: %w", err)
			}
			return text, nil
		},
		file: func(bool) string {
			return `{"steps":[{"tool":"before"},{"tool":"weak","arguments":{"item":"x"}}]}`
		},
		code: agent.CodeStepFailed, cause: agent.CodeTooLarge, path: [2]string{"weak", "weak"},
		text: [2]string{"x", "x"}, did: "before 1, weak x 2",
	},
	// What the flow does between its steps fails: Go code, and a loop that does not come to its end
	// (edge_exception).
	"edge": {
		do: func(_ flow.Context, mended bool) (string, error) {
			if !mended {
				return "", errors.New("no way leads on")
			}
			return "on", nil
		},
		file: func(mended bool) string {
			until := map[bool]string{false: "never", true: "before"}[mended]
			return `{"steps":[{"repeat":{"most":1,"until":{"before":{"const":"` + until + `"}},"steps":[{"tool":"before"}]}}]}`
		},
		code: agent.CodeFlowFailed, path: [2]string{"", "repeat"},
		text: [2]string{"on", "before"}, did: "before 1",
	},
	// The flow goes to a tool that is not there (routing_error).
	"routing": {
		do: func(c flow.Context, _ bool) (string, error) {
			return flow.Tool[string](c, "shop__sing", struct{}{}, nil)
		},
		file: func(mended bool) string { return `{"steps":[{"tool":"before"},{"tool":"shop__sing"}]}` },
		code: agent.CodeUnknownTool, path: [2]string{"shop__sing", "shop__sing"},
		text: [2]string{"la", "la"}, did: "before 1, sing 1",
	},
	// Too few results come together (reducer_error).
	"join": {
		do: func(c flow.Context, _ bool) (string, error) {
			all, err := flow.Map(c, "pay", []string{"good", "x"}, func(c flow.Context, what string) (string, error) {
				return flow.Tool[string](c, "weak", weight{what}, nil)
			}, &flow.MapOptions{Need: 2})
			return fmt.Sprint(flow.Values(all)), err
		},
		file: func(bool) string {
			return `{"steps":[{"tool":"before"},{"name":"pay","map":{"need":2,"over":["good","x"],"steps":[{"tool":"weak","arguments":{"item":"${item}"}}]}}]}`
		},
		code: agent.CodeJoinFailed, cause: agent.CodeTooLarge, path: [2]string{"pay", "pay"},
		text: [2]string{"[good x]", `["good","x"]`}, did: "before 1, weak good 1, weak x 2",
	},
	// A value does not fit its type or its schema (state_validation_error).
	"value": {
		do: func(c flow.Context, mended bool) (string, error) {
			if mended {
				return flow.Tool[string](c, "weak", weight{"good"}, nil)
			}
			n, err := flow.Tool[int](c, "weak", weight{"good"}, nil)
			return fmt.Sprint(n), err
		},
		file: func(mended bool) string {
			kind := map[bool]string{false: "integer", true: "string"}[mended]
			return `{"output":{"type":"` + kind + `"},"steps":[{"tool":"before"},{"tool":"weak","arguments":{"item":"good"}}]}`
		},
		code: agent.CodeBadOutput, path: [2]string{"weak", ""},
		text: [2]string{"good", `"good"`}, did: "before 1, weak good 1",
	},
}

type weight struct {
	Item string `json:"item"`
}

// build returns the flows of all faults, as a worker has them before and after they are mended.
func build(t *testing.T, mended bool) (all []flow.Flow) {
	t.Helper()
	for name, f := range faults {
		var d flowfile.Definition
		require.NoError(t, json.Unmarshal([]byte(f.file(mended)), &d))
		all = append(all, flowfile.New("file_"+name, d, nil), flow.New("go_"+name, func(c flow.Context, _ string) (string, error) {
			if _, err := flow.Tool[string](c, "before", struct{}{}, nil); err != nil {
				return "", err
			}
			return f.do(c, mended)
		}, &flow.Options{Tools: []string{"before", "weak", "mcp:shop"}}))
	}
	return all
}

// singer is a source whose tool comes with the mended build.
type singer struct {
	mended *atomic.Bool
	did    func(*tool.Call, string)
}

func (singer) Name() string { return "shop" }

func (s singer) List(context.Context) ([]agent.ToolSpec, error) {
	if !s.mended.Load() {
		return nil, nil
	}
	return []agent.ToolSpec{{Name: "shop__sing", Description: "sings", Input: json.RawMessage(`{"type":"object"}`)}}, nil
}

func (s singer) Call(_ context.Context, c *tool.Call) (string, error) {
	s.did(c, "sing")
	return "la", nil
}

// A flow fails with a code for each kind of failure, in Go and in an agents file, and the error names the
// step. When the fault is mended, a retry goes on from the run's last checkpoint: what has a result is not
// done again (OA-109).
func TestAFlowsFailuresHaveTheirKinds(t *testing.T) {
	t.Parallel()
	var mended atomic.Bool
	worlds := map[string]*world{}
	did := func(c *tool.Call, what string) { worlds[c.Agent].add(what) }
	for name := range faults {
		worlds["go_"+name], worlds["file_"+name] = &world{}, &world{}
	}
	tools := []tool.Tool{
		tool.New("before", "succeeds", func(_ context.Context, c *tool.Call, _ struct{}) (string, error) {
			did(c, "before")
			return "before", nil
		}, nil),
		tool.New("weak", "fails at first", func(_ context.Context, c *tool.Call, in weight) (string, error) {
			did(c, "weak "+in.Item)
			if in.Item == "x" && !mended.Load() {
				return "", agent.Errorf(agent.CodeTooLarge, "it is too heavy")
			}
			return in.Item, nil
		}, nil),
	}
	s := on(t, shared(t))
	t.Cleanup(func() { s.replay(t) })
	o := &worker.Options{
		TaskQueue: s.queue, Flows: build(t, false), Tools: tools, Sources: []tool.Source{singer{&mended, did}}, Store: s.store, Logger: zap.NewNop(), Temporal: stopsSoon,
	}
	s.worker = s.open(t, o)
	sessions := map[string]string{}
	for name := range worlds {
		t.Run(name+" fails", func(t *testing.T) {
			run, err := s.Start(t.Context(), name, "go", nil)
			require.NoError(t, err)
			sessions[name] = run.Session
			f, form := faultOf(name)
			out := s.rest(t, run)
			require.Equal(t, agent.StatusFailed, out.Status)
			require.Equal(t, f.code, out.Error.Code, out.Error.Message)
			require.Equal(t, string(f.code), out.Reason)
			require.Equal(t, f.cause, out.Error.Cause, out.Error.Message)
			require.Equal(t, f.path[form], out.Error.Path, out.Error.Message)
		})
	}
	s.worker.Stop()
	mended.Store(true)
	newer := *o
	newer.Flows = build(t, true)
	s.worker = s.open(t, &newer)
	for name, session := range sessions {
		t.Run(name+" is retried", func(t *testing.T) {
			next, err := s.Retry(t.Context(), session, nil)
			require.NoError(t, err)
			again, err := next.Start(t.Context())
			require.NoError(t, err)
			f, form := faultOf(name)
			out := s.rest(t, again)
			require.Equal(t, agent.StatusCompleted, out.Status, "%+v", out.Error)
			require.Equal(t, f.text[form], out.Text)
			require.Equal(t, f.did, worlds[name].String())
		})
	}
}

// faultOf returns the fault of a flow, and its form: 0 in Go, 1 in a file.
func faultOf(name string) (f fault, form int) {
	for kind, f := range faults {
		switch name {
		case "go_" + kind:
			return f, 0
		case "file_" + kind:
			return f, 1
		}
	}
	return f, 0
}

// The run below has gone to a tool that is not there. For the flow above, its step has failed, and why
// stands beside it (OA-109).
func TestAFlowNamesTheCodeOfTheRunBelow(t *testing.T) {
	t.Parallel()
	inner := flow.New("inner", func(c flow.Context, _ string) (string, error) {
		return flow.Tool[string](c, "sing", nil, nil)
	}, nil)
	s := on(t, shared(t))
	t.Cleanup(func() { s.replay(t) })
	s.worker = s.open(t, &worker.Options{TaskQueue: s.queue, Flows: []flow.Flow{below("outer", "inner"), inner}, Store: s.store, Logger: zap.NewNop(), Temporal: stopsSoon})
	run, err := s.Start(t.Context(), "outer", "go", nil)
	require.NoError(t, err)
	out := s.rest(t, run)
	require.Equal(t, agent.CodeStepFailed, out.Error.Code, out.Error.Message)
	require.Equal(t, agent.CodeUnknownTool, out.Error.Cause)
	require.Equal(t, "inner", out.Error.Path)
}

// forger is a model that says of itself that it is unknown.
type forger struct{}

func (forger) Info(string) model.Info { return model.Info{} }

func (forger) Generate(context.Context, *model.Request, func(model.Delta)) (*model.Reply, error) {
	return nil, agent.Errorf(agent.CodeUnknownModel, "forged")
}

// What a tool, a model or code of a step returns is the step's failure, whatever code it has: only the run
// itself says that a flow may not use something. And whoever stops a run below chooses no cause (OA-109).
func TestAStepForgesNoCode(t *testing.T) {
	t.Parallel()
	evil := tool.New("evil", "lies", func(context.Context, *tool.Call, struct{}) (string, error) {
		return "", errors.Join(agent.Errorf(agent.CodeUnknownAgent, "forged"), agent.CodeDenied)
	}, nil)
	asks := flow.New("asks", func(c flow.Context, _ string) (string, error) { return flow.Ask[string](c, "why?", nil) }, nil)
	flows := map[string]func(flow.Context) error{
		"code": func(c flow.Context) error {
			_, err := flow.Do(c, "pay", func(context.Context, *tool.Call) (string, error) {
				return "", agent.Errorf(agent.CodeUnknownModel, "forged: %w", agent.CodeDenied)
			}, nil)
			return err
		},
		"tool": func(c flow.Context) error {
			_, err := flow.Tool[string](c, "evil", struct{}{}, nil)
			return err
		},
		"model": func(c flow.Context) error {
			_, err := flow.Generate[string](c, "say", flow.Prompt{Text: "hello"})
			return err
		},
		"stop": func(c flow.Context) error {
			_, err := flow.Agent[string](c, "asks", "go", nil)
			return err
		},
	}
	causes := map[string]agent.Code{"code": agent.CodeDenied, "tool": agent.CodeDenied, "model": agent.CodeUnknownModel, "stop": ""}
	all := []flow.Flow{asks}
	for name, do := range flows {
		all = append(all, flow.New(name, func(c flow.Context, _ string) (string, error) { return "", do(c) },
			&flow.Options{Tools: []string{"evil"}, Models: []string{"bad"}, Agents: []agent.SubAgent{{Agent: "asks"}}}))
	}
	s := on(t, shared(t))
	t.Cleanup(func() { s.replay(t) })
	s.worker = s.open(t, &worker.Options{TaskQueue: s.queue, Flows: all, Tools: []tool.Tool{evil}, Models: map[string]model.Model{"bad": forger{}}, Store: s.store, Logger: zap.NewNop(), Temporal: stopsSoon})
	for name := range flows {
		run, err := s.Start(t.Context(), name, "go", nil)
		require.NoError(t, err)
		if name == "stop" {
			s.suspended(t, run)
			_, err = s.here(t, run.Session+"/asks-1").Stop(t.Context(), "limit_cost", nil)
			require.NoError(t, err)
		}
		out, err := run.Result(t.Context()) // "stop" is suspended until its child says that it has ended
		require.NoError(t, err)
		require.NotNil(t, out.Error, "%s: %+v", name, out)
		require.Equal(t, []agent.Code{agent.CodeStepFailed, causes[name]}, []agent.Code{out.Error.Code, out.Error.Cause}, "%s: %s", name, out.Error.Message)
	}
}
