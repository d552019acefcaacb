package worker_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/observe"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// deaf is an observer of calls that panics at each of them.
type deaf struct{ events int }

func (d *deaf) Event(context.Context, observe.RunEvent) { d.events++ }
func (d *deaf) Gap(context.Context, observe.Gap)        {}

func (d *deaf) Model(model.Model) model.Model { panic("no") }

func (d *deaf) Tool(context.Context, *tool.Call, agent.Trace) (context.Context, func(agent.CallStatus)) {
	panic("no")
}

// A run completes whose observer panics at each model and tool call, each of which is made
// once (OA-110).
func TestCallsOutliveTheirObserver(t *testing.T) {
	d, calls := &deaf{}, 0
	stage := testsuite.New(t, &testsuite.Options{
		Worker: &worker.Options{
			Agents: []agent.Definition{{Name: "a", Model: "script", Tools: []string{"count"}}}, Observers: []observe.Observer{d},
			Tools: []tool.Tool{tool.New("count", "", func(context.Context, *tool.Call, struct{}) (string, error) { calls++; return "", nil }, nil)},
		},
		Model: testsuite.NewScript(testsuite.Reply{Calls: []testsuite.Call{{Tool: "count"}}}, testsuite.Reply{Text: "done"}),
	})
	out := stage.Start("a", "go", nil).Completed()
	stage.Drain()
	require.EqualValues(t, out.Seq, d.events)
	require.Equal(t, 2, out.Turns)
	require.Equal(t, 1, calls)
}

// A worker without observers has nothing to drain, and a nil observer is refused when the
// worker is made.
func TestObserversAreChecked(t *testing.T) {
	dir, err := store.OpenDir(t.TempDir(), nil)
	require.NoError(t, err)
	o := &worker.Options{
		Store: dir, Agents: []agent.Definition{{Name: "a", Model: "script"}}, Models: map[string]model.Model{"script": testsuite.NewScript()},
	}
	parts, err := o.Components()
	require.NoError(t, err)
	require.NoError(t, parts.Drain(t.Context()))
	o.Observers = []observe.Observer{&deaf{}, nil}
	_, err = o.Components()
	require.ErrorIs(t, err, agent.CodeInvalidInput)
	require.ErrorContains(t, err, "worker.Options.Observers[1] is nil")
}
