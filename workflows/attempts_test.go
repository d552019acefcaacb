package workflows_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

// A tool that fails in every attempt is told to the model as failed, with what it said last. If that is
// what the agent's recovery is about, the run hands off (PA-58).
func TestAToolThatUsesUpItsAttempts(t *testing.T) {
	for name, recovery := range map[string]agent.Recovery{"told": nil, "handed off": {agent.FailureToolError: {Do: agent.RecoverHandoff}}} {
		t.Run(name, func(t *testing.T) {
			made := 0
			broken := tool.New("broken", "", func(context.Context, *tool.Call, none) (string, error) {
				made++
				return "", fmt.Errorf("failure %d", made)
			}, &tool.Options{Attempts: 2})
			b := setup(t, agent.Definition{Recovery: recovery}, testsuite.NewScript(testsuite.Reply{Calls: calls("broken")}, testsuite.Reply{Text: "It is broken."}), broken)
			o := b.run(t, "go")
			require.Equal(t, 2, made)
			require.Equal(t, []agent.ToolCount{{Tool: "broken", Calls: 1, Failed: 1}}, o.Tools)
			told := b.script.Requests()[1].Messages[2].Parts[0].Result
			require.Equal(t, agent.CallFailed, told.Status)
			require.Equal(t, "failure 2", told.Text)
			if recovery == nil {
				require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
				require.Nil(t, o.Handoff)
				return
			}
			require.ErrorIs(t, o.Err(), agent.CodeToolFailed)
			require.Equal(t, agent.StatusFailed, o.Handoff.Status)
			require.Contains(t, o.Handoff.Blockers[0], "failure 2")
		})
	}
}
