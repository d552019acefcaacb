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
	h := c.connected()
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

// MaxAsks is how often one call asks at most.
const MaxAsks = 16

// Answers are those to all that the call has asked so far, in their order; empty for a
// call that is made for the first time. They count as handed out: the next Ask asks
// something new. It is for a tool that goes on from where it was, which it finds in the
// State of the last answer, instead of beginning anew.
func (c *Call) Answers() []agent.ToolAnswer {
	answers := c.connected().Answers
	c.asked = len(answers)
	return answers
}
