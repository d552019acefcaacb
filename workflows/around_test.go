package workflows_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

// noted puts a mark before every message that the model sees.
type noted struct{ model.Model }

const mark = "[noted] "

func (n noted) Generate(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
	marked := *req
	marked.Messages = slices.Clone(req.Messages)
	for i, m := range marked.Messages {
		m.Parts = append([]agent.Part{{Type: agent.PartText, Text: mark}}, m.Parts...)
		marked.Messages[i] = m
	}
	return n.Model.Generate(ctx, &marked, emit)
}

// What the host changes of what a model sees is seen by the model, once in each
// request, and stands in no transcript (HA-53).
func TestWhatTheHostAddsIsNotKept(t *testing.T) {
	add := tool.New("add", "", func(context.Context, *tool.Call, none) (string, error) { return "3", nil }, nil)
	b := setup(t, agent.Definition{}, testsuite.NewScript(testsuite.Reply{Calls: calls("add")}, testsuite.Reply{Text: "done"}), add)
	b.acts.Model = func(name string) (activities.Model, error) {
		return activities.Model{Model: noted{b.script}, Name: name}, nil
	}
	o := b.run(t, "go")
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	for _, req := range b.script.Requests() {
		for _, m := range req.Messages {
			require.Equal(t, mark, m.Parts[0].Text)
			require.False(t, len(m.Parts) > 1 && m.Parts[1].Text == mark, "twice")
		}
	}
	head, err := b.acts.Log.Store().Head(t.Context(), o.Session)
	require.NoError(t, err)
	view, err := b.acts.Log.View(t.Context(), head.Digest)
	require.NoError(t, err)
	require.Len(t, view.Messages(), 4)
	for _, m := range view.Messages() {
		require.NotContains(t, m.Text(), mark)
	}
}
