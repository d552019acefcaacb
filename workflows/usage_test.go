package workflows_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/testsuite"
)

// silent is a model whose provider tells no usage.
type silent struct{ model.Model }

func (s silent) Generate(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
	reply, err := s.Model.Generate(ctx, req, func(d model.Delta) { emit(model.Delta{Text: d.Text, Thinking: d.Thinking}) })
	if reply != nil {
		reply.Usage, reply.ProviderModel = agent.Usage{}, "house/silent"
	}
	return reply, err
}

// Usage that no provider tells is estimated, marked so, and held against the limits.
func TestUnknownUsageIsEstimated(t *testing.T) {
	b := setup(t, agent.Definition{Instructions: "Be brief."}, testsuite.NewScript(testsuite.Reply{Text: "It is mild in Rome, and it will stay so."}))
	b.acts.Model = func(name string) (activities.Model, error) {
		return activities.Model{Model: silent{b.script}, Name: name}, nil
	}
	o := b.run(t, "How is Rome?")
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	require.Positive(t, o.Tree.Usage.Input)
	require.GreaterOrEqual(t, o.Tree.Usage.Output, int64(10))
	require.Equal(t, o.Tree.Usage.Total(), o.Tree.Estimated.Tokens)
}

// A model knows its own messages again by the name that its adapter has for it.
func TestAMessageSaysWhoMadeIt(t *testing.T) {
	b := setup(t, agent.Definition{Output: json.RawMessage(`{"type":"object"}`)}, testsuite.NewScript(testsuite.Reply{Text: "no"}, testsuite.Reply{Text: "{}"}))
	b.acts.Model = func(name string) (activities.Model, error) {
		return activities.Model{Model: silent{b.script}, Name: name, Full: "brain"}, nil
	}
	o := b.run(t, "How is Rome?")
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	require.Equal(t, "house/silent", b.script.Requests()[1].Messages[1].ModelName())
}
