package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	temporal "go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/agents"
	"github.com/fermata-agents/fermata/testsuite"
)

// A run below a workflow of the user's own is a run like any other for every command.
func TestARunOfAWorkflow(t *testing.T) {
	asker := role{agent.Definition{Name: "asker", Tools: []string{agent.AskUserTool}}, []testsuite.Reply{asksFor("How do you travel?"), {Text: "By train."}}}
	s := scripted(t, asker)
	session := s.session("a")
	s.options.Register = func(r sdk.Registry) {
		r.RegisterWorkflowWithOptions(func(ctx workflow.Context) (string, error) {
			return agents.Execute[string](ctx, "asker", "go", &agents.Options{TaskQueue: s.options.TaskQueue, Session: session})
		}, workflow.RegisterOptions{Name: "travel"})
	}
	s.works()
	waiting, err := s.temporal.ExecuteWorkflow(t.Context(), temporal.StartWorkflowOptions{TaskQueue: s.options.TaskQueue}, "travel")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		r := s.run("inbox", "--session", session)
		return r.exit == 0 && r.out != ""
	}, patience, 20*time.Millisecond)
	r := s.run("show", session)
	require.Contains(t, r.out, "How do you travel?")
	require.Contains(t, s.run("ls").out, session)
	require.Contains(t, s.run("tree", session).out, session)
	require.Zero(t, s.run("interrupt", session).exit)
	require.Zero(t, s.run("resume", session).exit)
	r = s.run("answer", session, "By train", "--request", "q-1")
	require.Zero(t, r.exit, r.err)
	var text string
	require.NoError(t, waiting.Get(t.Context(), &text))
	require.Equal(t, "By train.", text)
}
