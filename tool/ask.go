package tool

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

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
// same [Call.Key]. Then this Ask returns the answer. So ask before you do anything that must not
// be done twice.
//
// An answer counts only for the question that the person has read: for its name, text, context and
// choices. If one of them is another one when the call runs again, the person is asked anew. Equal
// questions get their answers in order.
//
// Errors are those of [agent.ToolQuestion.Check], [agent.CodeTooLarge] if a call asks more
// than [MaxAsks] questions, and [agent.CodeInvalidInput] for a question with Until outside of a
// flow's step.
func (c *Call) Ask(q agent.ToolQuestion) (agent.ToolAnswer, error) {
	h := c.connected()
	if h.Question != nil { // the tool went on after it had asked: the first question counts
		return agent.ToolAnswer{}, ErrAsked
	}
	// The call runs again from its beginning, so earlier questions get their answers
	// here.
	q.Digest = digestOf(q)
	if a, ok := c.answered(q); ok {
		return a, nil
	}
	if err := q.Check(); err != nil {
		return agent.ToolAnswer{}, err
	}
	if q.Until != nil && !h.Waits {
		return agent.ToolAnswer{}, agent.Errorf(agent.CodeInvalidInput, "only a step of a flow can wait for an event or a time").WithPath("until")
	}
	if len(h.Answers) >= MaxAsks {
		return agent.ToolAnswer{}, agent.Errorf(agent.CodeTooLarge, "one call asks at most %d questions", MaxAsks)
	}
	h.Question = &q
	return agent.ToolAnswer{}, ErrAsked
}

// answered returns the first answer to a question that no equal question of this attempt has taken.
func (c *Call) answered(q agent.ToolQuestion) (a agent.ToolAnswer, ok bool) {
	if c.used == nil {
		c.used = make([]bool, len(c.hooks.Answers))
	}
	for i, a := range c.hooks.Answers {
		// An older build keeps no digest.
		if !c.used[i] && a.Name == q.Name && (a.Digest == q.Digest || a.Digest == "") {
			c.used[i] = true
			return a, true
		}
	}
	return a, false
}

// digestOf returns the digest of what a person reads of a question. All waits have one digest: their
// names tell them apart, and it keeps what came from being the answer of a person. The schema is left
// out: another build may write it otherwise, and MustFit checks the answer.
func digestOf(q agent.ToolQuestion) string {
	h := sha256.New()
	texts := append([]string{q.Text, q.Context}, q.Choices...)
	if q.Until != nil {
		texts = nil
	}
	for _, text := range texts {
		fmt.Fprintf(h, "%d:%s", len(text), text) // the length: else a text could end in the next one
	}
	return hex.EncodeToString(h.Sum(nil))
}

// MaxAsks is the most questions that one call may ask.
const MaxAsks = 16

// Answers returns the answers to all questions of this call so far, in order; none at the
// first attempt. They count as used: the next Ask asks a new question. It is for a tool
// that continues where it was, instead of starting over: the State of the last answer
// says where.
func (c *Call) Answers() []agent.ToolAnswer {
	answers := c.connected().Answers
	c.used = make([]bool, len(answers))
	for i := range c.used {
		c.used[i] = true
	}
	return answers
}
