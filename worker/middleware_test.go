package worker_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
	"github.com/stretchr/testify/require"
)

// run runs the options' first agent.
func run(t *testing.T, o *worker.Options) (*agent.Outcome, error) {
	t.Helper()
	return process(t, o)()
}

// process is one worker's process, in which the options' first agent is run.
func process(t *testing.T, o *worker.Options) func() (*agent.Outcome, error) {
	t.Helper()
	stage := testsuite.New(t, &testsuite.Options{Worker: o})
	return func() (*agent.Outcome, error) {
		out := stage.Start(o.Agents[0].Name, "go", nil).Ended()
		return out, out.Err()
	}
}

// spy notes what it sees of calls, and may change them.
type spy struct {
	model.Model
	name string
	book *book
}

type book struct {
	mu    sync.Mutex
	lines []string
	calls []model.CallInfo
}

func (b *book) note(line string, call model.CallInfo) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines, b.calls = append(b.lines, line), append(b.calls, call)
}

func (s spy) Generate(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
	whole := *req
	whole.Instructions += " " + s.name
	reply, err := s.Model.Generate(ctx, &whole, emit)
	s.book.note(s.name+":"+whole.Instructions, req.Call)
	return reply, err
}

// The host sees every call, whose it is and how often it was tried, and may change
// what the model sees (HA-41, HA-87); a provider that fails is asked again (HA-42).
func TestMiddlewareSeesEveryCall(t *testing.T) {
	seen := &book{}
	with := func(name string) model.Middleware {
		return func(m model.Model) model.Model { return spy{m, name, seen} }
	}
	script := testsuite.NewScript(
		testsuite.Reply{Calls: []testsuite.Call{{Tool: "look"}}, Fail: slices.Repeat([]testsuite.Failure{{Kind: agent.FaultTransient}}, 2)},
		testsuite.Reply{Text: "done"},
	)
	out, err := run(t, &worker.Options{
		Agents: []agent.Definition{{Name: "a", Model: "acme/big", Instructions: "Be brief.", Tools: []string{"look"}, Texts: map[agent.TextName]string{agent.TextLoopContractText: agent.NoText}}},
		Models: map[string]model.Model{"acme": script}, Tools: []tool.Tool{echo("look")},
		Middleware: []model.Middleware{with("outer"), with("inner")},
	})
	require.NoError(t, err)
	require.Equal(t, "done", out.Text)
	require.Equal(t, slices.Repeat([]string{"inner:Be brief. outer inner", "outer:Be brief. outer"}, 4), seen.lines)
	for i, want := range []struct{ turn, attempt int }{{1, 1}, {1, 2}, {1, 3}, {2, 1}} {
		call := model.CallInfo{Session: out.Session, Run: out.Run, Agent: "a", Model: "acme/big", Trace: agent.Trace{Segment: 1, Turn: want.turn}, Turn: want.turn, Attempt: want.attempt}
		require.Equal(t, []model.CallInfo{call, call}, seen.calls[2*i:2*i+2])
	}
	for _, req := range script.Requests() {
		require.Equal(t, "Be brief. outer inner", req.Instructions)
		require.Equal(t, "big", req.Model)
	}
}

// answering answers without the model.
type answering struct{ model.Model }

func (answering) Generate(context.Context, *model.Request, func(model.Delta)) (*model.Reply, error) {
	return &model.Reply{Finish: model.FinishStop, Parts: []agent.Part{{Type: agent.PartText, Text: "from the cache"}}}, nil
}

// refusing refuses every call.
type refusing struct{ model.Model }

func (refusing) Generate(context.Context, *model.Request, func(model.Delta)) (*model.Reply, error) {
	return nil, model.Fault(agent.FaultBadRequest, 0, 0, "not on Sundays")
}

func TestMiddlewareAnswersAndRefuses(t *testing.T) {
	script := testsuite.NewScript()
	o := &worker.Options{
		Agents: []agent.Definition{{Name: "a", Model: "script"}}, Models: map[string]model.Model{"script": script},
		Middleware: []model.Middleware{func(m model.Model) model.Model { return answering{m} }},
	}
	out, err := run(t, o)
	require.NoError(t, err)
	require.Equal(t, "from the cache", out.Text)

	o.Middleware = []model.Middleware{func(m model.Model) model.Model { return refusing{m} }}
	_, err = run(t, o)
	require.ErrorContains(t, err, "script: not on Sundays")
	require.Empty(t, script.Requests())

	o.Middleware = []model.Middleware{nil}
	_, err = o.Resolve()
	require.ErrorContains(t, err, "worker.Options.Middleware[0] is nil")

	o.Middleware, o.Models = nil, map[string]model.Model{"script": nil}
	_, err = o.Resolve()
	require.ErrorIs(t, err, agent.CodeInvalidInput)
	require.ErrorContains(t, err, `worker.Options.Models["script"] is nil`)
}
