package loop

import (
	"regexp"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
)

// childRequest splits the name of a request of a run below this one into the run's session and the
// request's id. The name is "trip-42/pay-1/q-7", or "pay-1/q-7" for short.
func (s *step) childRequest(request string) (session, id string, ok bool) {
	i := strings.LastIndexByte(request, '/')
	if i < 0 {
		return "", "", false
	}
	session, id = request[:i], request[i+1:]
	if !strings.HasPrefix(session, s.Session+"/") {
		session = s.Session + "/" + session
	}
	return session, id, true
}

// addressedToChild reports whether a decision is about a request of a run below this one, and returns
// the command for that run. Run and token are removed: they belong to this session.
func (s *step) addressedToChild(c agent.Command) (session, id string, _ agent.Command, ok bool) {
	switch c := c.(type) {
	case agent.AnswerCommand:
		if session, id, ok = s.childRequest(c.Request); ok {
			c.Request, c.Run, c.Token = id, "", ""
		}
		return session, id, c, ok
	case agent.ApproveCommand:
		if session, id, ok = s.childRequest(c.Request); ok {
			c.Request, c.Run, c.Token = id, "", ""
		}
		return session, id, c, ok
	case agent.RejectCommand:
		if session, id, ok = s.childRequest(c.Request); ok {
			c.Request, c.Run, c.Token = id, "", ""
		}
		return session, id, c, ok
	}
	return "", "", nil, false
}

// childPath matches the path from this run to a run below, in the names that nextChild makes.
var childPath = regexp.MustCompile(`^[a-z][a-z0-9_]*-[1-9][0-9]*(/[a-z][a-z0-9_]*-[1-9][0-9]*)*$`)

// forward sends a decision to the run below that asked for it. A signal has no answer, so the run
// refuses here whatever it can know here.
func (s *step) forward(session, id string, c agent.Command) error {
	if s.End.Stopping != nil {
		return s.refuseAs(agent.CodeStale, "request", "%s, and with it those below it", s.End.doing())
	}
	below := strings.TrimPrefix(session, s.Session+"/")
	first, _, _ := strings.Cut(below, "/")
	i := s.Children.find(s.Session + "/" + first)
	// The name comes from outside. Without this check a signal could go to any workflow.
	if i < 0 || id == "" || !childPath.MatchString(below) {
		return s.refuseAs(agent.CodeNotFound, "request", "there is no run %s below this one", session)
	}
	child := s.Children.List[i]
	if !child.notEnded() {
		return s.refuseAs(agent.CodeStale, "request", "run %s has ended (%s)", child.Session, child.Status)
	}
	if child.Session == session { // of runs further below this run knows nothing
		if err := s.checkOpenInChild(child, id); err != nil {
			return err
		}
	}
	if a, ok := c.(agent.AnswerCommand); ok {
		if bad := ownFiles(session, "parts", a.Parts); bad != nil {
			return bad
		}
	}
	s.record(agent.Event{Type: agent.EventRequestForwarded, Answer: &agent.Answered{Request: session + "/" + id, Decision: string(c.Verb()), By: c.Header().By}})
	s.do(ForwardCommand{Session: session, Command: c})
	return nil
}

// checkOpenInChild refuses an answer for a direct child if the request is known not to be open, or if
// a signal can't answer it. If this run doesn't know, the child decides.
func (s *step) checkOpenInChild(child Child, id string) error {
	n := child.Suspension
	if n == nil {
		return s.refuseAs(agent.CodeStale, "request", "run %s waits for nothing, as far as is known here", child.Session)
	}
	i := slices.IndexFunc(n.Requests, func(r agent.RequestSummary) bool { return r.ID == id })
	switch {
	case i < 0 && n.Open <= len(n.Requests): // a summary that lists all; one with many requests does not
		return s.refuseAs(agent.CodeStale, "request", "request %s of %s is not open, as far as is known here", id, child.Session)
	case i >= 0 && len(n.Requests[i].Approvers) > 0:
		return s.refuseAs(agent.CodeDenied, "request", "request %s takes the decision of an approver: say it to session %s itself", id, child.Session)
	}
	return nil
}
