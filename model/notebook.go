package model

import "github.com/fermata-agents/fermata/agent"

// SplitNotebook splits the agent's notebook from the end of a conversation; notebook is empty if it
// does not end with one. The notebook changes from request to request, and nobody says it. So an
// adapter that marks a conversation for its provider's cache sends the notebook behind the marks, and
// one that looks for the user's last words looks before it.
func SplitNotebook(messages []agent.Message) (conversation, notebook []agent.Message) {
	end := len(messages)
	for end > 0 && messages[end-1].Note == agent.NoteNotebook {
		end--
	}
	return messages[:end:end], messages[end:]
}
