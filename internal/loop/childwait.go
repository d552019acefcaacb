package loop

import (
	"encoding/json"
	"slices"

	"github.com/fermata-agents/fermata/agent"
)

// subagent_wait waits for news: for what the model has not read yet. A child that rests, as the model has
// read, is waited for, as a call waits for a child in the foreground. What a call of the same turn shows
// counts as unread: the model reads the results of a turn together.

// waitsForNews reports whether the execution began with a build whose waits are for news.
func (s *step) waitsForNews() bool { return s.Revision >= childNewsSince }

// awaitChildren lets a call wait for children; an empty list means all of them. If there is news already,
// or none can come, the call is answered at once.
func (s *step) awaitChildren(i int, sessions []string) {
	if len(sessions) == 0 {
		sessions = s.Children.sessions()
	}
	var on []string // each child once
	seen := map[string]bool{}
	for _, session := range sessions {
		if seen[session] {
			continue
		}
		if s.Children.find(session) < 0 {
			s.setResult(i, agent.CallFailed, s.noChild(session))
			return
		}
		seen[session] = true
		on = append(on, session)
	}
	s.Calls.awaitChildren(i, on, s.At)
	s.answerWaits()
}

// answerWaits answers the calls of subagent_wait that are over.
func (s *step) answerWaits() {
	for i, c := range s.Calls.List {
		if c.State != CallAwaitingChildren || c.Tool != waitTool || slices.ContainsFunc(c.Children, s.Children.isWorking) {
			continue
		}
		news := slices.ContainsFunc(c.Children, s.hasNews)
		if news || !s.waitsForNews() || !slices.ContainsFunc(c.Children, s.mayBringNews) {
			s.showChildren(i, c.Children, news)
		}
	}
}

// showChildren gives a wait its result.
func (s *step) showChildren(i int, sessions []string, news bool) {
	var list []Child
	for _, session := range sessions {
		// A child that ended may be forgotten since the call began (Children.add, trim).
		if n := s.Children.find(session); n >= 0 {
			list = append(list, s.Children.List[n])
		}
	}
	var answers []childAnswer
	for _, c := range list {
		a := c.answer()
		if !news && s.waitsForNews() {
			a.Note = noNews(c)
		}
		answers = append(answers, a)
	}
	c := s.Calls.List[i]
	r := agent.ToolResult{Call: c.ID, Tool: c.Tool, Status: agent.CallOK, Files: fileParts(s.Children.takeFiles(sessions))}
	if len(answers) == 0 {
		r.Text = "There is no agent to wait for."
		s.setResultAs(i, r, 0)
		return
	}
	bytes, shown := s.answersSize(list), 0
	r.Text, shown = s.answersText(i, answers, bytes, r.Files)
	for _, c := range list[:shown] {
		s.Children.shown(s.Children.find(c.Session), s.Turn.N)
	}
	s.setResultAs(i, r, bytes)
}

// noNews says why a wait for a child has nothing to wait for.
func noNews(c Child) string {
	if c.notEnded() {
		return "There is nothing to wait for: this agent waits for you. Use " + resumeTool + " or " + stopTool + "."
	}
	return "There is nothing to wait for: this agent has ended, and you have read its end."
}

// hasNews reports whether the model has not read how a session's child stands.
func (s *step) hasNews(session string) bool {
	i := s.Children.find(session)
	return i >= 0 && !s.Children.List[i].isWorking() && s.Children.List[i].isUnread(s.Turn.N)
}

// mayBringNews reports whether something besides the model lets a session's child go on.
func (s *step) mayBringNews(session string) bool {
	i := s.Children.find(session)
	if i < 0 || !s.Children.List[i].notEnded() {
		return false
	}
	w := s.Children.List[i].Suspension
	return w == nil || w.Owner != agent.OwnerParent
}

// mayWait reports whether a call of subagent_wait waits, or has news to show. Such a call is no loop, however
// often it comes.
func (s *step) mayWait(tool string, arguments json.RawMessage) bool {
	var o lifecycleArguments
	if tool != waitTool || !s.waitsForNews() || !s.hasOwnTool(waitTool) || json.Unmarshal(arguments, &o) != nil {
		return false
	}
	if len(o.Children) == 0 {
		o.Children = s.Children.sessions()
	}
	return slices.ContainsFunc(o.Children, func(session string) bool {
		return s.Children.isWorking(session) || s.hasNews(session) || s.mayBringNews(session)
	})
}

// listChildren gives a call of subagent_list its result. It shows the beginning of an answer; a wait
// shows the whole.
func (s *step) listChildren(i int) {
	list := s.Children.List
	answers := []childAnswer{}
	for _, c := range list {
		answers = append(answers, c.short().answer())
	}
	bytes := s.answersSize(list)
	text, shown := s.answersText(i, answers, bytes, nil)
	for n, c := range list[:shown] {
		if c.notEnded() {
			s.Children.shown(n, s.Turn.N)
		}
	}
	s.setResultSized(i, agent.CallOK, text, bytes)
}
