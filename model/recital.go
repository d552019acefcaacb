package model

import (
	"slices"

	"github.com/fermata-agents/fermata/agent"
)

// recited are the notes of messages that a request ends with and that no log has.
var recited = []agent.Note{agent.NoteNotebook, agent.NoteLessons, agent.NoteReminders, agent.NoteResumed, agent.NoteLateAnswer}

// SplitRecital splits what a request adds by itself from the end of its conversation: the agent's
// notebook, its lessons, its reminders, the notes of a resume and of late answers. recital is empty if there is nothing of the kind. It
// changes from request to request, and nobody says it. So an adapter that marks a conversation for its
// provider's cache sends the recital behind the marks, and one that looks for the user's last words
// looks before it. A conversation is never all recital: its first message stays.
func SplitRecital(messages []agent.Message) (conversation, recital []agent.Message) {
	end := len(messages)
	for end > 1 && slices.Contains(recited, messages[end-1].Note) {
		end--
	}
	return messages[:end:end], messages[end:]
}
