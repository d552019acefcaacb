package workflows_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

// noted puts a mark before every message that the model sees, and hides a number.
type noted struct{ model.Model }

const mark = "[noted] "

func (n noted) Generate(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
	marked := *req
	marked.Messages = slices.Clone(req.Messages)
	for i, m := range marked.Messages {
		m.Parts = append([]agent.Part{{Type: agent.PartText, Text: mark}}, m.Parts...)
		for j := range m.Parts {
			m.Parts[j].Text = strings.ReplaceAll(m.Parts[j].Text, "1234", "****")
		}
		marked.Messages[i] = m
	}
	return n.Model.Generate(ctx, &marked, emit)
}

// What the host changes of what a model sees is seen by the model, once in each
// request, and stands in no transcript: that has what was said (HA-53, HA-87).
func TestWhatTheHostAddsIsNotKept(t *testing.T) {
	add := tool.New("add", "", func(context.Context, *tool.Call, none) (string, error) { return "3", nil }, nil)
	b := setup(t, agent.Definition{}, testsuite.NewScript(testsuite.Reply{Calls: calls("add")}, testsuite.Reply{Text: "done"}), add)
	b.acts.Model = func(name string) (activities.Model, error) {
		return activities.Model{Model: noted{b.script}, Name: name}, nil
	}
	o := b.run(t, "pay with 1234")
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	require.Len(t, b.script.Requests(), 2)
	for _, req := range b.script.Requests() {
		require.Equal(t, mark+"pay with ****", req.Messages[0].Text())
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
	require.Equal(t, "pay with 1234", view.Messages()[0].Text())
	require.Equal(t, "3", view.Messages()[2].Parts[0].Result.Text)
	for _, m := range view.Messages() {
		require.NotContains(t, m.Text(), mark)
	}
}
