package loop

import (
	"slices"

	"github.com/fermata-agents/fermata/agent"
)

// withoutTexts returns a Spec without what only the model and activities read: instructions,
// descriptions and schemas. The state keeps it so; the log has the whole Spec.
func withoutTexts(s agent.Spec) agent.Spec {
	s.Instructions, s.SourceInstructions, s.Description, s.ClientTools = "", 0, "", nil
	s.InheritedReminders, s.InheritedCeilings, s.Workspace = nil, nil, nil // Parent has them
	s.Rules = slices.Clone(s.Rules)
	for i := range s.Rules {
		s.Rules[i].Arguments = nil
	}
	s.Skillset = slices.Clone(s.Skillset)
	for i := range s.Skillset {
		s.Skillset[i].Description, s.Skillset[i].WhenToUse, s.Skillset[i].Paths = "", "", nil
	}
	s.EditChecks(func(_ agent.CheckPoint, _ int, k *agent.Check) { // tasks stay: the run itself gives them to agents
		k.Arguments, k.Command = nil, fit(k.Command, maxName)
		if k.Judge != nil {
			k.Judge = &agent.Judge{Model: k.Judge.Model}
		}
	})
	tools := make([]agent.ToolSpec, len(s.Toolset))
	for i, t := range s.Toolset {
		t.Description, t.Input = "", nil
		tools[i] = t
	}
	s.Toolset = tools
	return s
}
