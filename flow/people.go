package flow

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// AskOptions say more of a question. Nil has the defaults.
type AskOptions struct {
	// Name is the step's name; empty means "ask". For [AskIn] it is the question's name in its step, at
	// most 58 bytes, and empty means its text and choices. It tells questions with equal words apart.
	Name string
	// Context is what the person has to know beside the question.
	Context string
	// Choices are the only answers that are taken, by number or by text; Default may be another. Empty
	// allows any text, and yes or no for a bool. If Out is no string, each choice is JSON that fits its
	// schema; else the error is [agent.CodeInvalidInput].
	Choices []string
	// Schema is a JSON Schema of the answer. Nil means the schema of Out. Out is json.RawMessage, or
	// a type that the schema describes; a string has no Schema ([agent.CodeInvalidInput]).
	Schema json.RawMessage
	// Remind is after how long the question shows itself again, and Deadline after how long
	// Default answers it. Zero durations mean never; then the flow's AnswerTimeouts apply. An
	// empty Default means that a deadline fails the step.
	Remind, Deadline time.Duration
	Default          string
}

// Ask asks a person and waits for the answer. The question is in the inbox at once, and other
// branches go on. Out is a string, a bool (yes or no), a number, or any other type: then the
// answer is JSON that fits its schema, and one that does not is refused. If an answer that was
// taken is no Out, as a default may be, the person is asked again, in a step with "_again" behind
// its name.
func Ask[Out any](c Context, question string, o *AskOptions) (out Out, err error) {
	if o == nil {
		o = &AskOptions{}
	}
	_, isBool := any(out).(bool)
	schema, choices := o.Schema, o.Choices
	switch {
	case isBool:
		schema, choices = nil, yesOrNo
	case len(schema) == 0:
		if schema, err = schemaOf[Out](nil); err != nil {
			return out, err
		}
	}
	if err := checkAsk[Out](question, o, schema); err != nil {
		return out, err
	}
	return out, ask(c, question, o, choices, schema, func(text string) error {
		out, err = accept[Out](text, o)
		return err
	})
}

// ask asks until an answer is taken. take gets each answer, and its error says why it can't be used.
func ask(c Context, question string, o *AskOptions, choices []string, schema json.RawMessage, take func(string) error) error {
	arguments := map[string]any{"question": question, "context": o.Context, "choices": choices}
	if len(choices) > 0 {
		arguments["only_choices"] = true
	}
	if len(schema) > 0 {
		arguments["schema"] = schema
	}
	for name := or(o.Name, "ask"); ; name = or(o.Name, "ask") + "_again" {
		s, err := call(agent.AskUserTool, arguments, nil)
		if err != nil {
			return err
		}
		s.Answer = timeouts(o.Remind, o.Deadline, o.Default)
		r, err := c.step(name, s)
		if err != nil {
			return err
		}
		if err = take(r.Text); err == nil || isDefault(r.Text, o) {
			return at(r.Path, err)
		}
		arguments["question"] = fmt.Sprintf("%s (The last answer can't be used: %v)", question, err)
	}
}

var yesOrNo = []string{"yes", "no"}

// answerOf reads an answer.
func answerOf[Out any](text string) (out Out, err error) {
	p, ok := any(&out).(*bool)
	if !ok {
		return read[Out](text, nil)
	}
	switch said := strings.ToLower(strings.TrimSpace(text)); {
	case slices.Contains([]string{"yes", "y", "true", "ok"}, said):
		*p = true
	case !slices.Contains([]string{"no", "n", "false"}, said):
		return out, fmt.Errorf("%.40q is neither yes nor no", text)
	}
	return out, nil
}

func timeouts(remind, deadline time.Duration, byDefault string) *agent.AnswerTimeouts {
	if remind == 0 && deadline == 0 {
		return nil
	}
	return &agent.AnswerTimeouts{Remind: agent.Duration(remind), Deadline: agent.Duration(deadline), Default: byDefault}
}

// ApproveOptions say more of an approval. Nil has the defaults.
type ApproveOptions struct {
	// Name is the step's name; empty means "approve".
	Name string
	// Context is what the person has to know beside the subject.
	Context string
	// Approvers are the only people whose decision counts; nil means anybody. Confirm makes a
	// decision name the digest of the subject.
	Approvers []string
	Confirm   bool
	// Remind is after how long the request shows itself again, and Deadline after how long it is
	// decided without a person: rejected, or approved with ApproveAtDeadline. Zero means never.
	Remind, Deadline  time.Duration
	ApproveAtDeadline bool
}

// Decision is what came of an approval.
type Decision struct {
	Approved bool
	// By is who decided; empty if the deadline did. Reason is what they said.
	By, Reason string
	// Expired means that the deadline has decided.
	Expired bool
	// Subject is the subject as the approver has changed it; nil if it is unchanged.
	Subject json.RawMessage
}

// Approve asks a person to approve something, with a value that the decision is about. Both
// decisions are results, and no error.
func Approve(c Context, what string, subject any, o *ApproveOptions) (Decision, error) {
	if o == nil {
		o = &ApproveOptions{}
	}
	if o.Approvers != nil && len(o.Approvers) == 0 {
		return Decision{}, agent.Errorf(agent.CodeInvalidInput, "the approval %.40q has an empty list of approvers: nobody could approve it; nil means anybody", what)
	}
	s, err := call(agent.ApproveTool, map[string]any{"what": what, "context": o.Context, "subject": subject}, nil)
	if err != nil {
		return Decision{}, err
	}
	byDefault := agent.DefaultReject
	if o.ApproveAtDeadline {
		byDefault = agent.DefaultApprove
	}
	s.Answer, s.Approvers = timeouts(o.Remind, o.Deadline, byDefault), o.Approvers
	if o.Confirm {
		s.Confirm = agent.ConfirmDigest
	}
	r, err := c.step(or(o.Name, "approve"), s)
	if err != nil {
		return Decision{}, err
	}
	var d struct {
		Approved bool   `json:"approved"`
		By       string `json:"by"`
		Reason   string `json:"reason"`
		Expired  bool   `json:"expired"`
		Subject  *struct {
			Subject json.RawMessage `json:"subject"`
		} `json:"subject"`
	}
	if err := json.Unmarshal([]byte(r.Text), &d); err != nil {
		return Decision{}, misfit(r.Path, err)
	}
	out := Decision{Approved: d.Approved, By: d.By, Reason: d.Reason, Expired: d.Expired}
	if d.Subject != nil && len(d.Subject.Subject) == 0 {
		return Decision{}, &StepError{Path: r.Path, Tool: agent.ApproveTool, Status: agent.CallRejected, Text: "the approver's changed arguments have no subject"}
	}
	if d.Subject != nil {
		out.Subject = d.Subject.Subject
	}
	return out, nil
}

// Event is what ended a wait.
type Event struct {
	// Topic and Payload are the event's, and By is who emitted it. They are empty after a time or
	// a resume.
	Topic   string          `json:"topic"`
	Payload json.RawMessage `json:"payload"`
	By      string          `json:"by"`
	// TimedOut means that the time of the conditions has come.
	TimedOut bool `json:"timed_out"`
	// Message is what a resume said, for a wait without conditions.
	Message string `json:"message"`
}

// WaitOptions say more of a wait. Nil has the defaults.
type WaitOptions struct {
	// Name is the step's name; empty means "wait", or "sleep" for [Sleep]. For [WaitIn] it is the wait's
	// name in its step, at most 64 bytes, and empty means the events of the conditions.
	Name string
}

// Wait waits until one of the conditions is met: an event that is emitted, or a time. Other
// branches go on. An event ends each wait that it matches. Without a condition, only a resume of
// the suspended run ends the wait. OnTimeout of the conditions has no meaning here.
func Wait(c Context, until agent.Conditions, o *WaitOptions) (Event, error) {
	return wait(c, "wait", until, o)
}

// WaitMany waits for several conditions at once, and returns what ended each wait, in the same
// order. need says how many have to be met: [All], or a number, after which the others are dropped.
// The run is suspended once, with all that it still waits for. A wait whose time comes has not been
// met: its Err has the code [agent.CodeTimeout]. The steps have the names NAME.1/wait, NAME.2/wait …
// The error says that too few were met, as for [Map]; the result has those that were.
func WaitMany(c Context, name string, until []agent.Conditions, need Need) ([]Item[Event], error) {
	return Map(c, name, until, func(c Context, until agent.Conditions) (Event, error) {
		e, err := Wait(c, until, nil)
		if err == nil && e.TimedOut {
			err = agent.Errorf(agent.CodeTimeout, "nothing came in its time")
		}
		return e, err
	}, &MapOptions{Need: need})
}

// Sleep waits for a time. A sleep of months costs nothing.
func Sleep(c Context, d time.Duration) error {
	_, err := wait(c, "sleep", agent.Conditions{After: agent.Duration(d)}, nil)
	return err
}

func wait(c Context, name string, until agent.Conditions, o *WaitOptions) (e Event, err error) {
	if o != nil {
		name = or(o.Name, name)
	}
	s, err := call(agent.AwaitResumptionTool, map[string]any{"reason": name, "conditions": until}, nil)
	if err != nil {
		return e, err
	}
	r, err := c.step(name, s)
	if err != nil {
		return e, err
	}
	return decodeStep[Event](r, r.Text)
}
