package wire

import "github.com/fermata-agents/fermata/agent"

// SkillOrder says which skills the activity that calls the model reads before it does so.
type SkillOrder struct {
	// Match asks which skills fit the task, and reads the best. Files are the start's working
	// files.
	Match bool     `json:"match,omitempty"`
	Files []string `json:"files,omitempty"`
	// Load are skills to be read, with their digests and why.
	Load []agent.SkillUpdate `json:"load,omitempty"`
}

// SkillResult is what came of a [SkillOrder]. The request of the model had it already.
type SkillResult struct {
	// Matching is nil if no skills were matched.
	Matching *agent.SkillMatching `json:"matching,omitempty"`
	// Read has each skill that was to be read, with its instructions or an error.
	Read []agent.SkillUpdate `json:"read,omitempty"`
}
