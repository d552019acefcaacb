package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/testsuite"
)

// withWorkspace is a run whose sub-agent has a directory of its own, and waits in it for ten minutes.
func withWorkspace(t *testing.T) *bench {
	b := setup(t, agent.Definition{Agents: []agent.SubAgent{{Agent: "scout", Tools: []string{agent.AwaitResumptionTool}, Workspace: &agent.OwnWorkspace{Kind: agent.WorkspaceDirectory, AtEnd: agent.WorkspaceDrop}}}},
		testsuite.NewScript(
			testsuite.Reply{Match: `\Ago`, Calls: []testsuite.Call{{Tool: "subagent__scout", Arguments: map[string]any{"task": "look around"}}}},
			testsuite.Reply{Match: "look around", Calls: []testsuite.Call{{Tool: agent.AwaitResumptionTool, Arguments: map[string]any{"reason": "wait", "conditions": map[string]any{"after": "10m"}}}}},
			testsuite.Reply{Text: "done", Repeat: 9}))
	scout := agent.Definition{Name: "scout", Model: "script", Tools: []string{agent.AwaitResumptionTool}}
	b.acts.Agents["scout"] = activities.Agent{Spec: agent.Spec{V: 1, Definition: scout.WithDefaults()}}
	return b
}

// A stopped sub-agent's workspace is ended by a worker that has it, also if the first one asked has
// not (HA-103).
func TestStoppedWorkspaceFindsItsWorker(t *testing.T) {
	b := withWorkspace(t)
	b.OnActivity(activities.MakeWorkspace.Name, mock.Anything, mock.Anything).Return(struct{}{}, nil)
	ended := 0
	b.OnActivity(activities.EndWorkspace.Name, mock.Anything, mock.Anything).Return(func(context.Context, loop.EndWorkspaceArgs) (agent.WorkspaceOutcome, error) {
		if ended++; ended == 1 {
			return agent.WorkspaceOutcome{}, notInTheBuild
		}
		return agent.WorkspaceOutcome{Result: agent.WorkspaceDropped}, nil
	})
	b.after(time.Minute, func() { b.signal("stop", `{"deadline":"5m"}`) })
	b.start(t, agent.Start{})
	require.Equal(t, 2, ended)
}

// A sub-agent that is paused while its workspace is made waits for a worker that can make it (HA-103).
func TestPausedWorkspaceFindsItsWorker(t *testing.T) {
	b := withWorkspace(t)
	made := 0
	b.OnActivity(activities.MakeWorkspace.Name, mock.Anything, mock.Anything).Return(func(context.Context, loop.MakeWorkspaceArgs) (struct{}, error) {
		if made++; made == 1 {
			b.signal("pause", `{}`)
			return struct{}{}, notInTheBuild
		}
		return struct{}{}, nil
	})
	b.OnActivity(activities.EndWorkspace.Name, mock.Anything, mock.Anything).Return(agent.WorkspaceOutcome{Result: agent.WorkspaceDropped}, nil)
	b.after(5*time.Minute, func() { b.signal("resume", `{}`) })
	o := b.start(t, agent.Start{})
	require.Equal(t, []any{agent.StatusCompleted, 2}, []any{o.Status, made})
}
