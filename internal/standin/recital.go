package standin

import "github.com/fermata-agents/fermata/agent"

// Recital returns what a request says by itself behind its conversation: a notebook, the note of a
// resume, and lessons.
func Recital() []agent.Message {
	notebook, resumed, lessons := agent.TextMessage(agent.RoleUser, "Your notebook."), agent.TextMessage(agent.RoleUser, "You were resumed."), agent.TextMessage(agent.RoleUser, "What has failed.")
	notebook.Note, resumed.Note, lessons.Note = agent.NoteNotebook, agent.NoteResumed, agent.NoteLessons
	return []agent.Message{notebook, resumed, lessons}
}
