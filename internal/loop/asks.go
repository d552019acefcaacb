package loop

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
)

// readQuestion reads a call of ask_user; the text says what is wrong with it.
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

// askFor asks a person what a tool wants to know in the middle of its call.
func (s *step) askFor(i int, q agent.ToolQuestion) {
	c := s.Calls[i]
	s.openCall(i, agent.Request{
		Type: agent.Question, Text: q.Text, Context: q.Context, Choices: q.Choices, Schema: q.Schema, Call: &agent.RequestCall{ID: c.ID, Tool: c.Tool},
	}, s.Spec.Asking, agent.BySelf, "tool")
	s.Requests[len(s.Requests)-1].Again = true
}

// callAgain lets a call be made again that has asked for it itself.
func (s *step) callAgain(r Request, a agent.ToolAnswer) {
	c := &s.Calls[s.callIndex(r.CallID)]
	c.State, c.Request, c.Answers = Waiting, "", append(slices.Clip(c.Answers), a)
}
