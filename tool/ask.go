package tool

import (
	"errors"

	"github.com/fermata-agents/fermata/agent"
)

// ErrAsked is what a tool returns that waits for an answer, see [Call.Ask].
var ErrAsked = errors.New("a person is asked")

// Ask asks a person, and returns the answer.
//
// Where there is none yet it returns [ErrAsked], which the tool hands on at once. The run
// then asks, and rests: for months, over crashes and deploys. When somebody has answered
// the call is made again, from its beginning and with the same [Call.Key], and this
// Ask returns the answer; the second Ask of a call gets the second answer, and so on.
// So a tool asks before it does anything that must not be done twice. Errors are those of
// [agent.ToolQuestion.Check], and [agent.CodeTooLarge] for the seventeenth question of a call.
func (c *Call) Ask(q agent.ToolQuestion) (agent.ToolAnswer, error) {
	if c.asked < len(c.answers) {
		c.asked++
		return c.answers[c.asked-1], nil
	}
	if err := q.Check(); err != nil {
		return agent.ToolAnswer{}, err
	}
	if len(c.answers) >= MaxAsks {
		return agent.ToolAnswer{}, agent.Errorf(agent.CodeTooLarge, "one call asks at most %d questions", MaxAsks)
	}
	c.question = &q
	return agent.ToolAnswer{}, ErrAsked
}

// MaxAsks is how often one call asks at most.
const MaxAsks = 16

// Answers are those to all that the call has asked so far, in their order; empty for a
// call that is made for the first time. They count as handed out: the next Ask asks
// something new. It is for a tool that goes on from where it was, which it finds in the
// State of the last answer, instead of beginning anew.
func (c *Call) Answers() []agent.ToolAnswer {
	c.asked = len(c.answers)
	return c.answers
}

// WithAnswers returns the call with what its questions were answered with.
func (c Call) WithAnswers(answers []agent.ToolAnswer) *Call { c.answers = answers; return &c }

// Question is what the call has asked and has no answer to; nil if there is none.
func (c *Call) Question() *agent.ToolQuestion { return c.question }
