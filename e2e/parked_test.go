package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// parkable are the options of a worker whose runs come to rest in every way, by what
// they are told to do.
func (s *stage) parkable() *worker.Options {
	asks := func(q string) testsuite.Call {
		return testsuite.Call{Tool: agent.AskUserTool, Arguments: map[string]any{"question": q}}
	}
	script := testsuite.NewScript(
		testsuite.Reply{Match: "^ask", Calls: []testsuite.Call{asks("Where to?")}},
		testsuite.Reply{Match: "^pay", Calls: call("echo", map[string]any{"text": "a"})},
		testsuite.Reply{Match: "^share", Calls: call("subagent__helper", map[string]any{"task": "ask for me", "background": true})},
		testsuite.Reply{Match: "helper-1", Calls: []testsuite.Call{asks("And then?")}},
		testsuite.Reply{Match: ".*", Text: "done"},
	)
	return &worker.Options{
		TaskQueue: s.queue, Store: s.store, Logger: zap.NewNop(), Temporal: stopsSoon, Live: s,
		Models: map[string]model.Model{"script": script}, Tools: []tool.Tool{echo(nil)},
		Agents: []agent.Definition{
			{Name: "tester", Model: "script", Tools: []string{agent.AskUserTool, "echo"}, Rules: []agent.Rule{{Do: agent.RulingAsk, Tools: []string{"echo"}}}, Agents: []agent.SubAgent{{Agent: "helper"}}, Lifecycle: true},
			{Name: "helper", Model: "script", Tools: []string{agent.AskUserTool}},
			{Name: "desk", Model: "script", Tools: []string{"echo"}, Daemon: &agent.Daemon{}},
		},
	}
}

// open starts a worker with some options, which stops with the test at the latest.
func (s *stage) open(t *testing.T, o *worker.Options) *worker.Worker {
	t.Helper()
	w, err := worker.New(s.temporal, o)
	require.NoError(t, err)
	require.NoError(t, w.Start(t.Context()))
	t.Cleanup(w.Stop)
	return w
}

// park brings a run to rest in every way in which one can, and returns them by it.
func (s *stage) park(t *testing.T) map[string]*client.Run {
	t.Helper()
	until := &agent.Conditions{Any: []agent.Condition{{After: agent.Duration(time.Hour)}}}
	runs := map[string]*client.Run{
		"question": s.begin(t, "ask me", nil),
		"approval": s.begin(t, "pay it", nil),
		"time":     s.begin(t, "later", &client.StartOptions{Park: until}),
		"held":     s.begin(t, "ask me, too", nil),
		"tree":     s.begin(t, "share it", nil),
	}
	var err error
	runs["daemon"], err = s.Start(t.Context(), "desk", "", nil)
	require.NoError(t, err)
	for _, run := range runs {
		s.suspended(t, run)
	}
	s.say(t, runs["held"], agent.PauseCommand{Reason: "not now"})
	var nodes []agent.Node
	require.Eventually(t, func() bool {
		nodes, err = runs["tree"].Tree(t.Context())
		require.NoError(t, err)
		return len(nodes) == 2 && nodes[1].Status == agent.StatusSuspended
	}, patience, 10*time.Millisecond)
	runs["below"], err = s.Get(t.Context(), nodes[1].Session)
	require.NoError(t, err)
	return runs
}
