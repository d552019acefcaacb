package testsuite

import (
	"slices"

	"github.com/fermata-agents/fermata/agent"
)

// withoutNotebook leaves out the agent's notebook, which every request shows.
func withoutNotebook(messages []agent.Message) []agent.Message {
	return slices.DeleteFunc(slices.Clone(messages), func(m agent.Message) bool { return m.Note == agent.NoteNotebook })
}

// withoutNotes leaves out the runtime's notes at the end that the run continues. They are
// sent once and not stored, so a repeated call does not have them.
func withoutNotes(messages []agent.Message) []agent.Message {
	for len(messages) > 0 && messages[len(messages)-1].Note == agent.NoteResumed {
		messages = messages[:len(messages)-1]
	}
	return messages
}
