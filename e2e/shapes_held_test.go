package e2e

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

// heldShape is a story of a run to which something is said.
type heldShape struct {
	def     agent.Definition
	replies []testsuite.Reply
	tools   []tool.Tool
	start   client.StartOptions
	drive   func(*testing.T, *stage, *client.Run)
	ends    agent.Status
}

func heldShapes() map[string]heldShape {
	begun := make(chan string, 1)
	asks := []testsuite.Reply{{Calls: call(agent.AskUserTool, map[string]any{"question": "Where to?"})}, {Text: "done"}}
	return map[string]heldShape{
		"interrupted": {replies: []testsuite.Reply{{Calls: call("block", map[string]any{})}, {Text: "done"}}, tools: []tool.Tool{block(begun)}, ends: agent.StatusCompleted,
			drive: func(t *testing.T, s *stage, run *client.Run) {
				<-begun
				s.say(t, run, agent.InterruptCommand{Reason: "the client rings"})
				s.suspended(t, run)
				s.say(t, run, agent.ResumeCommand{Message: "go on"})
			}},
		"signalled": {def: agent.Definition{Tools: []string{agent.AskUserTool}}, replies: asks, ends: agent.StatusCompleted,
			drive: func(t *testing.T, s *stage, run *client.Run) {
				q := s.suspended(t, run).Requests[0]
				for _, c := range []struct{ name, payload string }{
					{"pause", `{}`}, {"interupt", `{}`}, {"cancel", `{"gently":true}`}, {signals.ParentOrder, `{"verb":"cancel","gently":true}`}, {"resume", `{"suspension":"s-9"}`}, {"answer", `{"request":"` + q.ID + `","text":"Rome"}`}, {"resume", `{}`},
				} {
					require.NoError(t, s.temporal.SignalWorkflow(t.Context(), run.Session, "", c.name, json.RawMessage(c.payload)))
				}
			}},
		"approved": {def: agent.Definition{Rules: []agent.Rule{{Do: agent.RulingAsk}}}, replies: []testsuite.Reply{{Calls: call("echo", map[string]any{"text": "a"})}, {Text: "done"}},
			tools: []tool.Tool{echo(nil)}, ends: agent.StatusCompleted,
			drive: func(t *testing.T, s *stage, run *client.Run) {
				q := s.suspended(t, run).Requests[0]
				s.say(t, run, agent.ApproveCommand{Request: q.ID, Arguments: json.RawMessage(`{"text":"b"}`), Always: true})
			}},
		"deadline": {def: agent.Definition{Tools: []string{agent.AskUserTool}, AnswerTimeouts: agent.AnswerTimeouts{Deadline: agent.Duration(100 * time.Millisecond), Default: "Rome"}}, replies: asks, ends: agent.StatusCompleted},
		"parked": {start: client.StartOptions{Park: &agent.Conditions{Any: []agent.Condition{{After: agent.Duration(time.Hour)}, {Event: &agent.EventCondition{Topic: "orders.paid"}}}}},
			replies: []testsuite.Reply{{Text: "done"}}, ends: agent.StatusCompleted,
			drive: func(t *testing.T, s *stage, run *client.Run) {
				s.suspended(t, run)
				s.say(t, run, agent.EmitCommand{Topic: "orders.paid", Payload: json.RawMessage(`{"order":118}`)})
			}},
		"stopped": {replies: []testsuite.Reply{{Text: `{"summary":"nothing yet"}`, Delay: time.Second}}, ends: agent.StatusStopped,
			drive: func(t *testing.T, s *stage, run *client.Run) {
				s.until(t, run, agent.EventTurnStarted)
				s.say(t, run, agent.StopCommand{Reason: "budget meeting", Deadline: agent.Duration(10 * time.Second)})
			}},
	}
}

// Runs that are held, answered and stopped end as they should, and their histories
// are kept as those of the other shapes.
func TestHeldShapes(t *testing.T) {
	t.Parallel()
	for name, sh := range heldShapes() {
		t.Run(name, func(t *testing.T) {
			s := setup(t, sh.def, testsuite.NewScript(sh.replies...), sh.tools...)
			run := s.begin(t, "go", &sh.start)
			if sh.drive != nil {
				sh.drive(t, s, run)
			}
			o := s.result(t, run)
			require.Equal(t, sh.ends, o.Status, "%+v", o.Error)
			s.keep(t, name, run.Session, run.ID)
		})
	}
}

// A start that no revision knows is refused.
func TestRefusedShape(t *testing.T) {
	t.Parallel()
	s := setup(t, agent.Definition{}, testsuite.NewScript(testsuite.Reply{Text: "done"}))
	run, err := s.start(t, json.RawMessage(`{"v":1,"agent":"tester","input":{"text":"go"},"gently":true}`))
	require.NoError(t, err)
	require.Equal(t, agent.StatusFailed, s.result(t, run).Status)
	s.keep(t, "refused", run.Session, run.ID)
}

// A tree that was interrupted, resumed and stopped keeps the histories of its root,
// of a node and of a leaf.
func TestTreeShape(t *testing.T) {
	t.Parallel()
	f := plant(t, 1, 1)
	run := f.grown(t, 3, 2)
	f.say(t, run, agent.InterruptCommand{})
	f.suspended(t, run)
	f.still(t, run, 3, agent.StatusSuspended)
	f.say(t, run, agent.StopCommand{Deadline: agent.Duration(12 * time.Second)})
	require.Equal(t, agent.StatusStopped, f.result(t, run).Status)
	tree, err := run.Tree(t.Context())
	require.NoError(t, err)
	for i, name := range []string{"tree-root", "tree-node", "tree-leaf"} {
		f.keep(t, name, tree[i].Session, tree[i].Run)
	}
}

// result waits for the run's end.
func (s *stage) result(t *testing.T, run *client.Run) *agent.Outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	o, err := run.Result(ctx)
	require.NoError(t, err)
	return o
}
