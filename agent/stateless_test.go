package agent_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// Options that need a session, or a run below, are refused together with stateless (OA-112).
func TestStatelessNeedsNoSession(t *testing.T) {
	require.NoError(t, agent.Definition{Name: "a", Model: "m/x", Stateless: true, Tools: []string{agent.AskUserTool}, Notebook: &agent.NotebookPolicy{}}.Check())
	byAgent := []agent.Check{{Name: "k", Agent: "b", Task: "Look."}}
	for path, d := range map[string]agent.Definition{
		"model": {Model: agent.FlowModel}, "daemon": {Daemon: &agent.Daemon{}}, "agents": {Agents: []agent.SubAgent{{Agent: "b"}}},
		"retention": {Retention: agent.Duration(time.Hour)}, "persist_state": {PersistState: []string{"k"}}, "state_version": {StateVersion: 1},
		"tools": {Tools: []string{agent.MemoryTool}}, "verify": {Verify: agent.Verify{Checks: byAgent}},
	} {
		d.Name = "a"
		if d.Model == "" {
			d.Model = "m/x"
		}
		require.NoError(t, d.Check(), path)
		d.Stateless = true
		err := d.Check()
		require.ErrorIs(t, err, agent.CodeInvalidInput, path)
		require.ErrorContains(t, err, "stateless")
	}
	require.ErrorContains(t, agent.Definition{Name: "a", Model: "m/x", Stateless: true, Tools: []string{agent.SaveArtifactTool}}.Check(), "the tool save_artifact")
}
