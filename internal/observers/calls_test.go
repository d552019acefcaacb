package observers

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/observe"
	"github.com/fermata-agents/fermata/tool"
)

// wrapper is an observer of calls, made of functions.
type wrapper struct {
	keeper
	model func(model.Model) model.Model
	tool  func(context.Context) (context.Context, func(agent.CallStatus))
}

func (w *wrapper) Model(next model.Model) model.Model { return w.model(next) }

func (w *wrapper) Tool(ctx context.Context, _ *tool.Call, _ agent.Trace) (context.Context, func(agent.CallStatus)) {
	return w.tool(ctx)
}

// generate is a model with this Generate.
type generate func(context.Context) (*model.Reply, error)

func (generate) Info(string) model.Info { return model.Info{Window: 7} }

func (g generate) Generate(ctx context.Context, _ *model.Request, _ func(model.Delta)) (*model.Reply, error) {
	return g(ctx)
}

// A model call whose observer panics is made once, and has the model's reply (OA-110).
func TestAModelCallOutlivesItsObserver(t *testing.T) {
	fails := errors.New("the provider is away")
	for name, c := range map[string]struct {
		around func(model.Model) model.Model
		err    error
	}{
		"as it is made": {func(model.Model) model.Model { panic("no") }, nil},
		"nil":           {func(model.Model) model.Model { return nil }, nil},
		"before the call": {func(model.Model) model.Model {
			return generate(func(context.Context) (*model.Reply, error) { panic("no") })
		}, nil},
		"after the call": {func(next model.Model) model.Model {
			return generate(func(ctx context.Context) (*model.Reply, error) {
				_, _ = next.Generate(ctx, &model.Request{}, nil)
				panic("no")
			})
		}, fails},
		"with a context of its own": {func(next model.Model) model.Model {
			return generate(func(context.Context) (*model.Reply, error) {
				return next.Generate(context.Background(), &model.Request{}, nil)
			})
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			calls, want := 0, &model.Reply{}
			w := &wrapper{model: c.around}
			m := New([]observe.Observer{&keeper{}, w}, quiet).Model(generate(func(context.Context) (*model.Reply, error) {
				calls++
				return want, c.err
			}))
			got, err := m.Generate(t.Context(), &model.Request{}, nil)
			require.Same(t, want, got)
			require.Equal(t, c.err, err)
			require.Equal(t, 1, calls)
			require.Equal(t, 7, m.Info("").Window)
		})
	}
}

// A panic of the model itself is the model's, as without an observer.
func TestAPanicOfTheModelIsItsOwn(t *testing.T) {
	w := &wrapper{model: func(next model.Model) model.Model {
		return generate(func(ctx context.Context) (*model.Reply, error) { return next.Generate(ctx, &model.Request{}, nil) })
	}}
	m := New([]observe.Observer{w}, quiet).Model(generate(func(context.Context) (*model.Reply, error) { panic("the model's") }))
	require.PanicsWithValue(t, "the model's", func() { _, _ = m.Generate(t.Context(), &model.Request{}, nil) })
}

// A tool is called within the contexts of all observers of calls. One that panics is passed
// over, and the others learn the end, the last one first (OA-110).
func TestAToolCallOutlivesItsObserver(t *testing.T) {
	type key string
	var ends []string
	named := func(name key) *wrapper {
		return &wrapper{tool: func(ctx context.Context) (context.Context, func(agent.CallStatus)) {
			return context.WithValue(ctx, name, true), func(s agent.CallStatus) { ends = append(ends, string(name)+" "+string(s)) }
		}}
	}
	s := New([]observe.Observer{
		named("a"),
		&wrapper{tool: func(context.Context) (context.Context, func(agent.CallStatus)) { panic("no") }},
		&wrapper{tool: func(context.Context) (context.Context, func(agent.CallStatus)) { return nil, nil }},
		&wrapper{tool: func(ctx context.Context) (context.Context, func(agent.CallStatus)) {
			return ctx, func(agent.CallStatus) { panic("no") }
		}},
		&keeper{},
		named("b"),
	}, quiet)
	ctx, over := s.Tool(t.Context(), &tool.Call{}, agent.Trace{})
	for _, name := range []key{"a", "b"} {
		require.Equal(t, true, ctx.Value(name))
	}
	over(agent.CallOK)
	require.Equal(t, []string{"b ok", "a ok"}, slices.Clone(ends))

	none, over := New(nil, quiet).Tool(t.Context(), &tool.Call{}, agent.Trace{})
	over(agent.CallOK)
	require.Equal(t, t.Context(), none)
}
