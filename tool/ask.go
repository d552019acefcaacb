package tool

import (
	"errors"

	"github.com/fermata-agents/fermata/agent"
)

// ErrAsked is what [Call.Ask] returns while it waits for an answer. Return it from the
// tool.
var ErrAsked = errors.New("a person is asked")

// Ask asks a person, and returns the answer.
//
// If there is no answer yet, it returns [ErrAsked], which the tool has to return at once.
// The run then opens a request and is suspended, if need be for months, over crashes and
// deploys. After the answer the runtime calls the tool again from its beginning, with the
// same [Call.Key]. Then this Ask returns the answer. The second Ask of a call gets the
// second answer, and so on. So ask before you do anything that must not be done twice.
//
// Errors are those of [agent.ToolQuestion.Check], and [agent.CodeTooLarge] if a call asks
// more than [MaxAsks] questions.
func (c *Call) Ask(q agent.ToolQuestion) (agent.ToolAnswer, error) {
	h := c.connected()
	// The call runs again from its beginning, so earlier questions get their answers
	// here.
	if c.asked < len(h.Answers) {
		c.asked++
		return h.Answers[c.asked-1], nil
	}
	if err := q.Check(); err != nil {
		return agent.ToolAnswer{}, err
	}
	if len(h.Answers) >= MaxAsks {
		return agent.ToolAnswer{}, agent.Errorf(agent.CodeTooLarge, "one call asks at most %d questions", MaxAsks)
	}
	h.Question = &q
	return agent.ToolAnswer{}, ErrAsked
}

// MaxAsks is the most questions that one call may ask.
const MaxAsks = 16

// Answers returns the answers to all questions of this call so far, in order; none at the
// first attempt. They count as used: the next Ask asks a new question. It is for a tool
// that continues where it was, instead of starting over: the State of the last answer
// says where.
func (c *Call) Answers() []agent.ToolAnswer {
	answers := c.connected().Answers
	c.asked = len(answers)
	return answers
}
