package loop

import (
	"encoding/json"
	"slices"

	"github.com/fermata-agents/fermata/agent"
)

// causeWaitForUser is the cause of a suspension that the user's next message ends.
const causeWaitForUser = agent.WaitForUserTool

var waitForUserTool = agent.ToolSpec{
	Name: agent.WaitForUserTool, Executor: agent.ExecutorRuntime,
	Input: json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`),
}

// takeHandovers lets the calls of wait_for_user wait for the user's next message, and reports whether
// one does. A message that waits already ends the wait at once.
func (s *step) takeHandovers() (waits bool) {
	if !s.hasOwnTool(agent.WaitForUserTool) {
		return false
	}
	for i, c := range s.Calls.List {
		switch {
		case c.State != CallPending || c.Tool != agent.WaitForUserTool:
		case s.messagesWait():
			s.Messages.steerAll()
			s.setResult(i, agent.CallOK, userWrote)
		default:
			r := agent.Request{Type: agent.RequestQuestion, Text: waitsForMessage, Call: &agent.RequestCall{ID: c.ID, Tool: c.Tool}}
			waits = s.openCallRequest(i, r, "", s.Spec.AnswerTimeouts, agent.InitiatorSelf, causeWaitForUser) || waits
		}
	}
	return waits
}

const (
	waitsForMessage = "The agent waits for your next message."   // what people read
	userWrote       = "The user has written: see their message." // the result of wait_for_user
)

// handsOver reports whether a request is that of a call of wait_for_user.
func handsOver(r agent.Request) bool {
	return r.Type == agent.RequestQuestion && r.Call != nil && r.Call.Tool == agent.WaitForUserTool
}

// handedOver returns the open requests of wait_for_user.
func (s *State) handedOver() []Request {
	return slices.DeleteFunc(slices.Clone(s.Requests.Open), func(r Request) bool { return !handsOver(r.Request) })
}

// takeBack ends the waits for the user's next message, since it has come.
func (s *step) takeBack(by string) {
	for _, r := range s.handedOver() {
		s.closeRequest(r, decision{request: r.ID, by: by}, "answered")
		s.setResult(s.Calls.find(r.CallID), agent.CallOK, userWrote)
	}
}
