package loop

import (
	"slices"

	"github.com/fermata-agents/fermata/agent"
)

// withoutTexts returns a Spec without what only the model and activities read: instructions,
// descriptions and schemas. The state keeps it so; the log has the whole Spec.
func withoutTexts(s agent.Spec) agent.Spec {
	s.Instructions, s.Description, s.ClientTools = "", "", nil
	s.Rules = slices.Clone(s.Rules)
	for i := range s.Rules {
		s.Rules[i].Arguments = nil
	}
	s.Skillset = slices.Clone(s.Skillset)
	for i := range s.Skillset {
		s.Skillset[i].Description, s.Skillset[i].WhenToUse, s.Skillset[i].Paths = "", "", nil
	}
	tools := make([]agent.ToolSpec, len(s.Toolset))
	for i, t := range s.Toolset {
		t.Description, t.Input = "", nil
		tools[i] = t
	}
	s.Toolset = tools
	return s
}
