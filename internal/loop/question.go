package loop

import (
	"encoding/json"
	"strings"

	"github.com/fermata-agents/fermata/agent"
)

// readQuestion reads the arguments of a call of ask_user. wrong says what is invalid, for
// the model.
func readQuestion(arguments json.RawMessage) (q agent.ToolQuestion, wrong string) {
	var in struct {
		Question string   `json:"question"`
		Context  string   `json:"context"`
		Choices  []string `json:"choices"`
	}
	if err := json.Unmarshal(arguments, &in); err != nil {
		return q, "The arguments do not fit: " + err.Error()
	}
	q = agent.ToolQuestion{Text: strings.TrimSpace(in.Question), Context: strings.TrimSpace(in.Context), Choices: in.Choices}
	for i, c := range q.Choices {
		q.Choices[i] = strings.TrimSpace(c)
	}
	if err := q.Check(); err != nil {
		return q, "The question can't be asked: " + err.Error()
	}
	return q, ""
}

// causeToolAsks is the cause of a suspension for what a tool asks in the middle of its call.
const causeToolAsks = "tool"

// askInCall lets a call wait for what its tool asks in the middle of it.
func (s *step) askInCall(i int, q agent.ToolQuestion) {
	if q.Until != nil {
		s.waitInCall(i, q)
		return
	}
	s.askPerson(i, q)
}

// askPerson opens a request for what a tool asks in the middle of its call.
func (s *step) askPerson(i int, q agent.ToolQuestion) {
	c, p := s.Calls.List[i], s.Spec.AnswerTimeouts
	if q.Timeouts != nil {
		p = *q.Timeouts
	}
	r := agent.Request{
		Type: agent.RequestQuestion, Text: q.Text, Context: q.Context, Choices: q.Choices, Schema: q.Schema, Call: &agent.RequestCall{ID: c.ID, Tool: c.Tool},
	}
	o := s.timed(Request{Request: r, CallID: c.ID, RetryCall: true, ToolState: q.State, Name: q.Name, QuestionDigest: q.Digest, MustFit: q.MustFit}, p, q.Text)
	if !s.mayKeep(i, o) {
		s.setResult(i, agent.CallFailed, "Not finished: it asked something, and more would wait for people than can be kept.")
		return
	}
	s.Calls.awaitRequest(i, s.openRequest(o, agent.InitiatorSelf, causeToolAsks))
}

// waitInCall lets a running step of a flow wait for an event or a time, in the middle of its call. It
// is called again with what came.
func (s *step) waitInCall(i int, q agent.ToolQuestion) {
	size := conditionsJSONLen(*q.Until) + jsonLen(q.Name) + digestJSONLen(q.Digest)
	switch {
	case !s.isFlow(): // Call.Ask refuses it, and here is the last door
		s.setResult(i, agent.CallFailed, "Not finished: it would wait for an event or a time, and only a step of a flow can.")
	case size+s.Calls.List[i].Size-callFrame-ownWords > s.space():
		s.setResult(i, agent.CallFailed, "Not finished: it would wait for something, and more would wait than can be kept.")
	default:
		s.Calls.awaitEvent(i, &Park{Conditions: absolute(*q.Until, s.now()), Size: size, Again: true, Name: q.Name, Digest: q.Digest}, s.At)
		s.changed = true
	}
}

// retryCall makes the call of a tool's question pending again, with the answer.
func (s *step) retryCall(r Request, a agent.ToolAnswer) {
	a.State, a.Name, a.Digest = r.ToolState, r.Name, r.QuestionDigest
	s.Calls.answer(s.Calls.find(r.CallID), a)
}

// maxAnswers bounds the answers to one call's questions, in bytes. All of them are passed to
// the call each time that it is made. Data counts twice: it is passed as a text, too.
const maxAnswers = 256 << 10

// mayAnswer refuses an answer that would be too long for the call that asked.
func (s *step) mayAnswer(r Request, d decision) error {
	size, path := answersSize(s.Calls.List[s.Calls.find(r.CallID)]), "text"
	switch {
	case d.reject != nil:
		size, path = size+len(d.reject.Reason), "reason"
	case len(d.answer.Data) > 0:
		size, path = size+2*len(d.answer.Data), "data"
	default:
		size += len(r.answerText(d.answer))
	}
	if size > maxAnswers {
		return s.refuseAs(agent.CodeTooLarge, path, "the answers to what call %s asks would have %d bytes; at most %d are taken: shorten this one", r.CallID, size, maxAnswers)
	}
	a := agent.ToolAnswer{By: d.by}
	if d.reject != nil {
		a.Text = d.reject.Reason
	} else {
		a.Text, a.Data = r.answerText(d.answer), d.answer.Data
	}
	// maxAnswers bounds the activity's input; this bounds the state.
	if answerJSONLen(a) > s.space() {
		return s.refuseAs(agent.CodeTooLarge, path, "the answer is too long to be kept beside what else waits: shorten it, or answer other requests first")
	}
	return nil
}
