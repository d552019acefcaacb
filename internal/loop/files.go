package loop

import (
	"fmt"
	"slices"

	"github.com/fermata-agents/fermata/agent"
)

// ownFiles returns an error for a part with another session's file. Whoever knows the digest of
// somebody's file must not get it shown by a run of their own, and a file is kept, collected and
// deleted with the session that it is stored with.
func ownFiles(session, path string, parts []agent.Part) *agent.Error {
	for i, p := range parts {
		if p.File != nil && p.File.Session != session {
			at := fmt.Sprintf("%s[%d].file.session", path, i)
			return agent.Errorf(agent.CodeInvalidInput, "%s is %s, another session: store it for %s (client.PutFiles, or --file)", at, p.File.Session, session).WithPath(at)
		}
	}
	return nil
}

// maxWaitingFiles is how many files the messages may have that wait for the model, together with
// those that are not stored yet. All of them may come into one chunk of the log, which names 256
// at most.
const maxWaitingFiles = 200

// waitingFiles returns how many files the waiting messages and the log's tail have.
func (s *State) waitingFiles() (n int) {
	for _, p := range s.Messages.Pending {
		n += len(p.Message.Files())
	}
	for _, e := range s.Log.Tail {
		if e.Message != nil {
			n += len(e.Message.Files())
		}
	}
	return n
}

// haveFiles reports whether a waiting message has a file.
func (m Messages) haveFiles() bool {
	return slices.ContainsFunc(m.Pending, func(p PendingMessage) bool { return len(p.Message.Files()) > 0 })
}

// saidIn returns a message's text, or else the names of its files.
func saidIn(m agent.Message) string {
	text := m.Text()
	for _, f := range m.Files() {
		if m.Text() == "" {
			text += f.Name + " "
		}
	}
	return text
}
