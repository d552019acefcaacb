package loop

import (
	"fmt"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
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
	n = len(s.Messages.Files()) + len(s.Calls.Files())
	for _, e := range s.Log.Tail {
		n += len(e.Files())
	}
	return n
}

// takeFiles returns a result with the files that it may show: those of the run's own session for
// which there is room. Whoever makes the call, the run decides. left counts the others.
func (s *step) takeFiles(i int, r agent.ToolResult) (_ agent.ToolResult, left int) {
	if len(r.Files) == 0 { // as nearly all: what waits is not counted for them
		return r, 0
	}
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

// showFiles gives the calls of show_file their results. They change nothing, and their files are in
// the store, so nobody is asked and no activity makes them.
func (s *step) showFiles(shown []wire.ShownFile) {
	if len(shown) == 0 { // the tool was not offered; if the Spec has one with the name, a worker makes the call
		return
	}
	n := 0
	for i, c := range s.Calls.List {
		if c.Tool != agent.ShowFileTool {
			continue
		}
		f := wire.ShownFile{Err: fmt.Sprintf("Not executed: one reply may ask for %d files. Ask for the others in the next.", len(shown))}
		if n < len(shown) {
			f = shown[n]
		}
		n++ // counts rejected calls too: shown has an entry for each call
		switch {
		case c.State != CallPending:
		case f.File == nil:
			s.setResult(i, agent.CallFailed, fit(f.Err, maxNotFound))
		default: // of what can't be shown, the request says why
			s.setResultAs(i, agent.ToolResult{Call: c.ID, Tool: c.Tool, Status: agent.CallOK, Files: []agent.Part{*f.File}}, 0)
		}
	}
}

// maxNotFound bounds the text that says which files there are, in bytes.
const maxNotFound = 4 << 10

// MaxNamedFiles is how many files a summary names.
const MaxNamedFiles = 20

// named returns the files of a conversation that a summary names, the newest. A chunk of the log
// names only so many. Whoever has asked the model, only files of the run's own session are taken: the
// activity has made copies of those that a fork shares.
func (s *step) named(parts []agent.Part) (files []agent.Part) {
	for _, p := range parts {
		if p.File != nil && p.File.Session == s.Session && p.File.Check() == nil {
			files = append(files, agent.Part{Type: agent.PartFile, Text: fit(p.Text, agent.MaxFileText), File: p.File})
		}
	}
	room := max(0, min(MaxNamedFiles, maxWaitingFiles-s.waitingFiles()))
	return files[max(0, len(files)-room):]
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

// mayShow refuses files that come with a verb, if the run can't show them to its model.
func (s *step) mayShow(parts []agent.Part) error {
	n := len(agent.Message{Parts: parts}.Files())
	if bad := ownFiles(s.Session, "parts", parts); bad != nil {
		return bad
	}
	switch {
	case n > 0 && s.isFlow():
		return s.refuseFlowFiles()
	case n > 0 && s.Log.Unstored:
		return s.refuseAs(agent.CodeInvalidInput, "parts", "agent %s is stateless, and keeps no files: send text alone", s.agent())
	case n > 0 && s.waitingFiles()+n > maxWaitingFiles:
		return s.refuseAs(agent.CodeTooLarge, "parts", "more than %d files would wait for the model, or for the store: send when it has read some", maxWaitingFiles)
	}
	return nil
}

func (s *step) refuseFlowFiles() error {
	return s.refuseAs(agent.CodeInvalidInput, "parts", "a flow takes files only with its start: send them to the session of an agent that it starts")
}

// mayShowAnswer refuses the files of an answer that the model would not get.
func (s *step) mayShowAnswer(r Request, d decision) error {
	if len(d.answer.Parts) == 0 {
		return nil
	}
	switch {
	case r.RetryCall:
		return s.refuseAs(agent.CodeInvalidInput, "parts", "request %s is asked by a tool, which takes no files: answer without, and send them as a message", r.ID)
	case r.Type == agent.RequestLimit && r.answerText(d.answer) == choiceStop:
		return s.refuseAs(agent.CodeInvalidInput, "parts", "no model gets files with an answer that stops the run")
	case len(s.Messages.Pending) >= maxPending || !s.sizeFits(r.answerJSONLen(d)):
		return s.checkRoom("parts")
	}
	return s.mayShow(d.answer.Parts)
}

// maxQuoted is how much of a question is quoted with the files of its answer, in bytes.
const maxQuoted = 200

// withAnswer returns the message with the files of an answer. The answer itself is the result of a
// call, which is text.
func (r Request) withAnswer(d decision) agent.Message {
	about := fmt.Sprintf("Files with the answer to: %s", fit(r.Text, maxQuoted))
	if r.Type == agent.RequestClientTool {
		about = "Files with the result of " + r.Call.Tool
	}
	m := agent.TextMessage(agent.RoleUser, about)
	m.By, m.Parts = d.by, append(m.Parts, d.answer.Parts...)
	return m
}

// answerBytes and answerJSONLen return how much the message withAnswer counts. They don't count the
// runtime's own words, which may change in a later build.
func (r Request) answerBytes(d decision) int {
	return len(r.quoted()) + agent.Message{Parts: d.answer.Parts}.Size()
}

func (r Request) answerJSONLen(d decision) int {
	return messageFrame + partFrame + ownWords + jsonLen(r.quoted()) + jsonLen(d.by) + partsJSONLen(d.answer.Parts)
}

// quoted returns the part of the message withAnswer that the runtime did not write.
func (r Request) quoted() string {
	if r.Type == agent.RequestClientTool {
		return r.Call.Tool
	}
	return fit(foreignText(r.Request), maxQuoted)
}

// Files returns the files of the messages that wait. No chunk of the log names them yet.
func (m Messages) Files() (files []*agent.File) {
	for _, p := range m.Pending {
		files = append(files, p.Message.Files()...)
	}
	return files
}

// Files returns the files of results that are not in the log yet.
func (c Calls) Files() (files []*agent.File) {
	for _, k := range c.List {
		if k.Result != nil {
			files = append(files, agent.Message{Parts: k.Result.Files}.Files()...)
		}
	}
	return files
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
