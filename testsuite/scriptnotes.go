package testsuite

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// recited are the notes that every request shows and that the conversation does not have.
var recited = []agent.Note{agent.NoteNotebook, agent.NoteLessons, agent.NoteReminders}

// withoutRecited leaves out the agent's notebook, lessons and reminders.
func withoutRecited(messages []agent.Message) []agent.Message {
	return slices.DeleteFunc(slices.Clone(messages), func(m agent.Message) bool { return slices.Contains(recited, m.Note) })
}

// withoutNotes leaves out the runtime's notes at the end that the run continues, or that an
// answer came late. They are sent once and not stored, so a repeated call does not have them.
func withoutNotes(messages []agent.Message) []agent.Message {
	for len(messages) > 0 && slices.Contains([]agent.Note{agent.NoteResumed, agent.NoteLateAnswer}, messages[len(messages)-1].Note) {
		messages = messages[:len(messages)-1]
	}
	return messages
}

// summary is the script's own summary of a conversation. It contains how many replies
// were given, so that the next one can be found.
const summary = "Summed up: %d replies of the script were given."

var summed = regexp.MustCompile(`Summed up: (\d+) replies of the script`)

// endsWithQuestion reports whether the last message of a conversation asks for a summary. A summary
// has the same note, but ends only requests that may make calls.
func endsWithQuestion(req *model.Request, said []agent.Message) bool {
	return req.NoCalls && len(said) > 0 && said[len(said)-1].Note == agent.NoteSummary
}

// asksForSummary reports whether the runtime wants a summary to continue from. A request
// for a handoff has an output schema, and does not count.
func asksForSummary(req *model.Request) bool {
	return len(req.Output) == 0 && endsWithQuestion(req, withoutRecited(req.Messages))
}

// placeOf returns which conversation it is, and how many replies the model has given in it. Replies
// that were useless or were summarized count too. A summary that is not the script's own, such as that
// of a custom compaction, does not say how many replies it stands for: then the run's turn says it.
func placeOf(req *model.Request) (place string, turn int) {
	said := withoutRecited(req.Messages)
	if endsWithQuestion(req, said) {
		said = said[:len(said)-1]
	}
	first, lost := "", false
	for _, m := range said {
		if first == "" {
			first = m.Text()
		}
		given := summed.FindStringSubmatch(m.Text())
		switch {
		case m.Role == agent.RoleAssistant, m.Note == agent.NoteRetry:
			turn++
		case m.Note == agent.NoteSummary && given != nil:
			turn, _ = strconv.Atoi(given[1])
			lost = false
		case m.Note == agent.NoteSummary:
			lost = true
		}
	}
	if lost {
		turn = max(0, req.Call.Turn-1)
	}
	// The first message and the turn: retries of one call have the same place.
	return fmt.Sprintf("%s#%d", first, turn), turn
}
