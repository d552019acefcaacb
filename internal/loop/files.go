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

// waitingFiles returns how many files the waiting messages, the turn's results and the log's tail
// have.
func (s *State) waitingFiles() (n int) {
	for _, p := range s.Messages.Pending {
		n += len(p.Message.Files())
	}
	for _, c := range s.Calls.List {
		if c.Result != nil {
			n += len(c.Result.Files)
		}
	}
	for _, e := range s.Log.Tail {
		if e.Message != nil {
			n += len(e.Message.Files())
		}
	}
	return n
}

// haveFiles reports whether a message or a result has a file that the log does not have yet.
func (s *State) haveFiles() bool {
	return slices.ContainsFunc(s.Messages.Pending, func(p PendingMessage) bool { return len(p.Message.Files()) > 0 }) ||
		slices.ContainsFunc(s.Calls.List, func(c Call) bool { return c.Result != nil && len(c.Result.Files) > 0 })
}

// takeFiles returns a result with the files that it may show: those of the run's own session for
// which there is room. Whoever makes the call, the run decides. left counts the others.
func (s *step) takeFiles(i int, r agent.ToolResult) (_ agent.ToolResult, left int) {
	room, space := min(agent.MaxFiles, maxWaitingFiles-s.waitingFiles()), s.resultSpace(i)-ownWords
	var taken []agent.Part
	for _, p := range r.Files {
		p = agent.Part{Type: agent.PartFile, Text: fit(p.Text, agent.MaxFileText), File: p.File}
		if n := partJSONLen(p); len(taken) < room && n <= space && p.File != nil && p.File.Session == s.Session && p.File.Check() == nil {
			taken, space = append(taken, p), space-n
		}
	}
	left, r.Files = len(r.Files)-len(taken), taken
	return r, left
}

// partsJSONLen and partJSONLen return how long parts with texts and files are in JSON at most.
func partsJSONLen(parts []agent.Part) (n int) {
	for _, p := range parts {
		n += partJSONLen(p)
	}
	return n
}

func partJSONLen(p agent.Part) int {
	n := partFrame + jsonLen(p.Text)
	if p.File != nil {
		n += fileFrame + jsonLen(p.File.Session) + jsonLen(p.File.MediaType) + jsonLen(p.File.Name)
	}
	return n
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
