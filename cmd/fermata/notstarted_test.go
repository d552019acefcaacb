package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/devserver"
	"github.com/fermata-agents/fermata/signals"
)

// What does not fit into a run's history is refused when the file is read.
func TestLongInstructionsAreRefused(t *testing.T) {
	b := setup(t)
	b.write("s.yaml", "replies: [{text: Hello.}]\n")
	for _, size := range []int{1 << 20, 5 << 19} {
		b.write("fermata.yaml", fmt.Sprintf("agents:\n  a:\n    model: script:s.yaml\n    instructions: %s\n", strings.Repeat("x", size)))
		r := b.run("run", "a", "x", "--detach", "--agents", "fermata.yaml")
		require.Equal(t, 2, r.exit, r.err)
		require.Contains(t, r.err, fmt.Sprintf("fermata.yaml:4: agent a: instructions have %d bytes", size))
	}
	b.write("fermata.yaml", fmt.Sprintf("agents:\n  a:\n    model: script:s.yaml\n    instructions: %s\n", strings.Repeat("x", 1000<<10)))
	require.Zero(t, b.run("run", "a", "x").exit, "nearly as long as they may be")
}

// A run whose first task fails hears nothing, and can be ended all the same.
func TestARunThatNeverBeganIsEnded(t *testing.T) {
	alone(t)
	s := devserver.ForTest(t)
	c, err := s.Dial(t.Context(), client.Options{})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	w := sdk.New(c, signals.TaskQueue, sdk.Options{})
	w.RegisterWorkflowWithOptions(func(workflow.Context, any) error { panic("never") }, workflow.RegisterOptions{Name: signals.WorkflowType})
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	at := []string{"--address", s.Addr(), "--namespace", s.Namespace()}
	for _, verb := range []string{"cancel", "stop"} {
		r := inProcess(t, append([]string{"run", "a", "x", "--detach", "--session", verb}, at...)...)
		require.Zero(t, r.exit, r.err)
		require.Eventually(t, func() bool {
			list := inProcess(t, append([]string{verb, verb}, at...)...)
			require.Zero(t, list.exit, list.err)
			r = inProcess(t, append([]string{"wait", verb, "--json", "--timeout", "2s"}, at...)...)
			return r.exit == 4
		}, patience, 1)
		require.Equal(t, agent.StatusCancelled, lastLine[agent.Outcome](t, r.out).Status)
		r = inProcess(t, append([]string{"events", verb, "--data", t.TempDir()}, at...)...)
		require.Zero(t, r.exit, r.err)
		require.Contains(t, r.err, "session "+verb+" has no events: no run of it has begun")
	}
}
