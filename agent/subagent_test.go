package agent

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What a call does when its sub-agent is suspended has two values, and is for models.
func TestOnChildSuspend(t *testing.T) {
	def := Definition{Name: "a", Model: "m"}
	for _, a := range []ChildSuspendAction{"", ChildSuspendWait, ChildSuspendReturn} {
		def.OnChildSuspend = a
		require.NoError(t, def.Check(), a)
	}
	def.Model = FlowModel
	require.ErrorContains(t, def.Check(), "on_child_suspend: return is for a model")
	def.OnChildSuspend = "resume"
	require.ErrorContains(t, def.Check(), `agent a: on_child_suspend must be wait or return, not "resume"`)
	require.ErrorIs(t, def.Check(), CodeInvalidInput)
}
