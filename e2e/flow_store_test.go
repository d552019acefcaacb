package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/flow"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/worker"
)

// refusing is a store that never stores the head of one session.
type refusing struct {
	store.Store
	session string // its end
}

func (r *refusing) PutHead(ctx context.Context, h store.Head) error {
	if h.Run != "" && strings.HasSuffix(h.Session, r.session) { // a run may begin
		return agent.Errorf(agent.CodeChunkDamaged, "the disk has errors")
	}
	return r.Store.PutHead(ctx, h)
}

// An agent below a flow asks, and its suspension can't be stored. That is an error, which the flow's
// function finds by its code and handles. A suspension that is stored is none: the function
// waits for the second agent, and gets its answer (OA-08, OA-61).
func TestAFlowHandlesASuspensionThatCantBeStored(t *testing.T) {
	t.Parallel()
	s := on(t, shared(t))
	t.Cleanup(func() { s.replay(t) })
	book := flow.New("book", func(c flow.Context, _ string) (string, error) {
		var handled []string
		for {
			city, err := flow.Agent[string](c, "asker", "ask", nil)
			if !errors.Is(err, agent.CodeChunkDamaged) {
				return fmt.Sprintf("%s; handled: %s", city, handled), err
			}
			handled = append(handled, err.Error())
		}
	}, &flow.Options{Agents: []agent.SubAgent{{Agent: "asker"}}})
	s.open(t, &worker.Options{
		TaskQueue: s.queue, Store: &refusing{s.dir, "/asker-1"}, Logger: zap.NewNop(), Temporal: stopsSoon, Flows: []flow.Flow{book},
		Models: map[string]model.Model{"script": testsuite.NewScript(asks("Where to?"), testsuite.Reply{Text: "Rome"})},
		Agents: []agent.Definition{{Name: "asker", Model: "script", Tools: []string{agent.AskUserTool}}},
	})
	run, err := s.Start(t.Context(), "book", "go", nil)
	require.NoError(t, err)
	require.Equal(t, agent.SuspensionAwaitingChildren, s.suspended(t, run).Kind)

	lost, err := s.Get(t.Context(), run.Session+"/asker-1")
	require.NoError(t, err)
	o := s.rest(t, lost)
	require.Equal(t, agent.StatusFailed, o.Status, "it was never suspended")
	require.ErrorIs(t, o.Err(), agent.CodeChunkDamaged)
	_, err = lost.Resume(t.Context(), nil)
	require.ErrorIs(t, err, agent.CodeClosed)

	second, err := s.Get(t.Context(), run.Session+"/asker-2")
	require.NoError(t, err)
	s.say(t, second, agent.AnswerCommand{Request: s.suspended(t, second).Requests[0].ID, Text: "to Rome"})
	o, err = run.Result(t.Context())
	require.NoError(t, err)
	require.Equal(t, agent.StatusCompleted, o.Status, "%v", o.Err())
	require.True(t, strings.HasPrefix(o.Text, "Rome; handled: [step asker (subagent__asker): failed: "), o.Text)
	require.Equal(t, 1, strings.Count(o.Text, "step "), "the stored suspension was no error: %s", o.Text)
	require.Contains(t, o.Text, "the disk has errors")
}
