package flow

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/tool"
)

// ErrDeclined is the error of [AskIn] if nobody answers: a person has rejected the question, or its
// deadline has passed without a default.
var ErrDeclined = errors.New("the question is not answered")

// AskIn asks a person in the middle of a step's code, which [Do] runs, and returns the answer. It is for
// code that finds out only while it works that it needs one.
//
// Without an answer yet, the error is [tool.ErrAsked]; the code has to return at once, and what it returns
// is ignored. The step then waits, as one of [Ask] does: its request has the step's path, other branches
// go on, and the run is suspended when nothing else works. With the answer, the same code runs again from
// its beginning, in the same step, with the same [tool.Call.Key], and this AskIn returns the answer. So
// what the code does before it asks is done again: look first, ask, and do what must happen once after
// that; or pass Key to the service that does it. The step has one result. Asking uses up none of
// StepOptions.Attempts (OA-04).
//
// Out, the choices, the schema and the deadline are as in [Ask]. An answer counts only for the question
// that the person has read: for its text, context and choices, and for AskOptions.Name. So the answers
// stay right if the code asks in another order, also in a newer build. If the code finds something else
// when it runs again, and asks about that, the person is asked anew. So a text or a context that is
// different each time (with a time, or in the order of a map) is asked anew each time, up to the limit.
//
// Errors are also [ErrDeclined], and [agent.CodeTooLarge] after [tool.MaxAsks] questions and waits of one
// step. The code may handle them.
func AskIn[Out any](call *tool.Call, question string, o *AskOptions) (out Out, err error) {
	if o == nil {
		o = &AskOptions{}
	}
	q, err := questionIn[Out](question, o)
	if err != nil {
		return out, err
	}
	for {
		if o.Name == "" {
			q.Name = named(q.Text, q.Choices)
		}
		a, err := call.Ask(q)
		switch {
		case err != nil:
			return out, err
		case a.Declined && a.Expired:
			return out, fmt.Errorf("%w: nobody answered in time: %s", ErrDeclined, question)
		case a.Declined:
			return out, fmt.Errorf("%w: %s has rejected it: %s", ErrDeclined, or(a.By, "somebody"), a.Text)
		}
		out, err = accept[Out](a.Text, o)
		if err == nil || isDefault(a.Text, o) {
			return out, err
		}
		q.Text = fmt.Sprintf("%s (The last answer can't be used: %v)", question, err)
		if o.Name != "" {
			q.Name = o.Name + "_again"
		}
	}
}

// questionIn returns what AskIn asks.
func questionIn[Out any](question string, o *AskOptions) (q agent.ToolQuestion, err error) {
	q = agent.ToolQuestion{Text: question, Context: o.Context, Choices: o.Choices, Schema: o.Schema, Name: o.Name, Timeouts: timeouts(o.Remind, o.Deadline, o.Default)}
	switch _, isBool := any(*new(Out)).(bool); {
	case isBool:
		q.Choices, q.Schema, q.MustFit = yesOrNo, nil, true
		return q, checkAsk[Out](question, o, nil)
	case len(q.Schema) == 0:
		if q.Schema, err = schemaOf[Out](nil); err != nil {
			return q, err
		}
	}
	q.MustFit = len(q.Schema) > 0 || len(q.Choices) > 0
	return q, checkAsk[Out](question, o, q.Schema)
}

// WaitIn waits for an event or a time in the middle of a step's code, which [Do] runs. As with [AskIn],
// the error is [tool.ErrAsked] at first, and the code runs again from its beginning when one of the
// conditions is met. An event that is emitted before the step waits for it does not count.
//
// What came belongs to WaitOptions.Name, or else to the events of the conditions: the second wait for the
// same ones gets the second. A wait for a time alone begins when the code first asks for it.
func WaitIn(call *tool.Call, until agent.Conditions, o *WaitOptions) (e Event, err error) {
	var events []*agent.EventCondition
	for _, one := range until.List() {
		events = append(events, one.Event)
	}
	q := agent.ToolQuestion{Text: "wait", Until: &until, Name: named("wait", events)}
	if o != nil && o.Name != "" {
		q.Text, q.Name = o.Name, o.Name
	}
	a, err := call.Ask(q)
	if err != nil {
		return e, err
	}
	if err := json.Unmarshal(a.Data, &e); err != nil {
		return e, fmt.Errorf("what came is no event: %w", err)
	}
	return e, nil
}

// named returns the name of a question that has none of its own.
func named(what ...any) string {
	raw, err := json.Marshal(what)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8])
}
