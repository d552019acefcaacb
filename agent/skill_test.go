package agent

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What a skill leaves out is not offered, but for tools without which the run could not end well, and
// the runtime's own.
func TestSkillsKeepWhatTheRunNeeds(t *testing.T) {
	s := Spec{Definition: Definition{StopAfter: []string{"publish"}, Require: []OneOf{{"check", "test"}}}}
	s.Skillset = []Skill{{Name: "notes", Tools: []string{"fs_*"}}}
	for _, name := range []string{"fs_read", "publish", "check", "test", MemoryTool, TodoTool, SaveArtifactTool, "pay"} {
		s.Toolset = append(s.Toolset, ToolSpec{Name: name})
	}
	s.Toolset = append(s.Toolset, ToolSpec{Name: AskUserTool, Executor: ExecutorRuntime})
	_, removed := s.Offered([]string{"notes"})
	require.Equal(t, []string{"pay"}, removed)
}
