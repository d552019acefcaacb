package flowfile

import (
	"encoding/json"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/flow"
)

// The comments of these types and their fields are the texts of docs/agents-file.md and of the
// agents file's schema.

// Definition is a flow: steps that agents, tools and people do. In a text, "${PATH}" stands for a
// value: the input, or the result of a step before. A text that is only "${PATH}" is the value
// itself. "$${" stands for "${". A value that is missing is null, and nothing in a text.
type Definition struct {
	// Description says what the flow is for. People and other agents read it.
	Description string `json:"description"`
	// Input is a JSON Schema of the input; empty means that the input is a text.
	Input json.RawMessage `json:"input"`
	// Steps are the steps, in this order. A step sees the results of the steps before it, in its
	// own list and in the lists around it.
	Steps []Step `json:"steps"`
	// Result is what the flow returns; empty means the result of the last step.
	Result Value `json:"result"`
	// Output is a JSON Schema of the result; empty means that the result is a text.
	Output json.RawMessage `json:"output"`
	// Rules are the rules for calls of tools and agents, as an agent has them.
	Rules []agent.Rule `json:"rules"`
	// Default decides about calls that no rule matches.
	Default agent.Ruling `json:"default"`
	// AnswerTimeouts are how long questions wait for an answer, if their steps do not say it.
	AnswerTimeouts agent.AnswerTimeouts `json:"answer_timeouts"`
	// Limits are how much a run may use, together with all runs below it.
	Limits agent.Limits `json:"limits"`
	// OnLimit is what happens when a run reaches a limit: it fails, or it asks what to do.
	OnLimit agent.LimitAction `json:"on_limit"`
	// ResumeWithin is how long after its suspension a run can be resumed or answered; zero means
	// forever.
	ResumeWithin agent.Duration `json:"resume_within"`
	// Redact keeps the task, and the texts of requests, out of listings.
	Redact bool `json:"redact"`
}

// Value is any value. Its texts may have "${PATH}".
type Value json.RawMessage

// MarshalJSON returns the value.
func (v Value) MarshalJSON() ([]byte, error) { return json.RawMessage(v).MarshalJSON() }

// UnmarshalJSON keeps the value.
func (v *Value) UnmarshalJSON(raw []byte) error { return (*json.RawMessage)(v).UnmarshalJSON(raw) }

// Conditions are JSON Schemas by the paths of values. They hold if every value fits its schema.
// The keywords are those of events' conditions.
type Conditions map[string]json.RawMessage

// Step is a step of a flow. Its kind is one of agent, tool, generate, ask, approve, wait, map,
// parallel, choose, repeat, steps and fail. The other keys belong to some kinds only.
type Step struct {
	// Name is what other steps call the result by, and the step's name in paths; empty means the
	// name of the agent or tool, or the kind.
	Name string `json:"name"`
	// If skips the step unless every value that a path names here fits its JSON Schema. The result
	// is null then.
	If Conditions `json:"if"`

	// Agent is the agent or flow of this file that does the step; the result is its output, or its
	// last text.
	Agent string `json:"agent"`
	// Task is the agent's task: a text, or a value that becomes JSON.
	Task Value `json:"task"`
	// Context is what the agent or the person has to know beside the rest.
	Context string `json:"context"`
	// Output is a JSON Schema of the agent's answer, or of the model's reply; empty means the
	// agent's own, and for a model that the reply is a text.
	Output json.RawMessage `json:"output"`

	// Tool is the tool that does the step; the result is its text. A path may lead into a text
	// that is JSON.
	Tool string `json:"tool"`
	// Arguments are the tool's arguments.
	Arguments Value `json:"arguments"`
	// Timeout bounds one attempt of the tool; zero means the tool's own.
	Timeout agent.Duration `json:"timeout"`
	// Attempts is how often a failing tool is called; zero means the tool's own number. More than
	// once is only for what is safe to do again.
	Attempts int `json:"attempts,omitempty"`
	// OnUnknown says what happens if nobody knows whether the tool had its effect: a person is
	// asked, the tool is called again, or the step fails.
	OnUnknown flow.OnUnknown `json:"on_unknown"`

	// Generate is the prompt of one call of a model, without tools and without a run of its own;
	// the result is the reply. A reply that does not fit the output is asked for again.
	Generate string `json:"generate"`
	// Model is the model that is called, by a name that agents may have as their model.
	Model string `json:"model"`
	// Instructions are the model's system prompt.
	Instructions string `json:"instructions"`
	// MaxOutputTokens bounds the reply; zero means the model's own bound.
	MaxOutputTokens int `json:"max_output_tokens,omitempty"`

	// Ask is a question to a person; the result is the answer.
	Ask string `json:"ask"`
	// Choices are answers to choose from; empty means any text.
	Choices []string `json:"choices"`
	// Answer is a JSON Schema of the answer; empty means that the answer is a text.
	Answer json.RawMessage `json:"answer"`

	// Approve is what a person has to approve or reject; the result has approved, by, reason,
	// expired and subject.
	Approve string `json:"approve"`
	// Subject is the value that the decision is about.
	Subject Value `json:"subject"`
	// Approvers are the only people whose decision counts; nil means anybody.
	Approvers []string `json:"approvers"`
	// Confirm makes a decision name the digest of the subject.
	Confirm string `json:"confirm"`
	// Remind is after how long the question or approval shows itself again.
	Remind agent.Duration `json:"remind"`
	// Deadline is after how long the default decides.
	Deadline agent.Duration `json:"deadline"`
	// Default is what the deadline decides: reject or approve for an approval, a text for a
	// question. A question without it fails at its deadline.
	Default string `json:"default"`

	// Wait is what the step waits for; the result has topic, payload, by, timed_out and message.
	Wait *Wait `json:"wait"`
	// Map does steps with each item of a list, at the same time; the result is the list of the
	// items' results.
	Map *Map `json:"map"`
	// Parallel are steps that are done at the same time; the result has their results by their
	// names.
	Parallel []Step `json:"parallel"`
	// Choose does the first of these steps whose if holds; the result is that step's, or null.
	Choose []Step `json:"choose"`
	// Repeat does steps several times; the result is that of the last round.
	Repeat *Repeat `json:"repeat"`
	// Steps are steps that belong together, as a branch of parallel or choose.
	Steps []Step `json:"steps"`
	// Result is the result of steps; empty means the result of the last one.
	Result Value `json:"result"`
	// Fail ends the flow with this error.
	Fail string `json:"fail"`
}

// Wait is what a step waits for: an event, a time, or what comes first of them. Without a key, it
// waits for a resume. If the time is over, the wait ends after a second.
type Wait struct {
	// Topic is the topic of an event.
	Topic string `json:"topic"`
	// Match is a JSON Schema of the event's payload; empty means any payload.
	Match json.RawMessage `json:"match"`
	// After is a time from when the step begins.
	After agent.Duration `json:"after"`
	// At is a time such as 2027-01-31T09:00:00+01:00, a day such as 2027-01-31 (from 0:00 UTC), or
	// a text with paths that becomes one.
	At string `json:"at"`
}

// Map does steps with each item of a list, in branches that go on independently.
type Map struct {
	// Over is the list.
	Over Value `json:"over"`
	// As is what the steps call their item.
	As string `json:"as" default:"item"`
	// Key names an item in paths, so that it keeps its steps if the list changes; empty means
	// its place in the list, from 1.
	Key string `json:"key"`
	// Width is how many items are in progress at once; zero means all.
	Width int `json:"width,omitempty"`
	// Need is how many items must succeed; nil means all, and the first failure ends the flow.
	// The others are dropped when so many have succeeded, and the result has those alone. With 0
	// every item comes to its end.
	Need *int `json:"need"`
	// Steps are what is done with an item.
	Steps []Step `json:"steps"`
	// Result is an item's result; empty means the result of the last step.
	Result Value `json:"result"`
}

// Repeat does steps several times. The steps see the results of the round before as last.STEP; in
// the first round these are null. The result is that of the last round.
type Repeat struct {
	// Most is how often the steps are done at most.
	Most int `json:"most"`
	// Until ends the repeat after a round in which every value that a path names here fits its
	// JSON Schema; nil means that there are most rounds.
	Until Conditions `json:"until"`
	// OnMost is what happens if until does not hold after the last round: the flow fails, or it
	// goes on.
	OnMost OnMost `json:"on_most" default:"fail"`
	// Steps are the steps of a round.
	Steps []Step `json:"steps"`
	// Result is a round's result; empty means the result of the last step.
	Result Value `json:"result"`
}

// OnMost says what a repeat does when its last round was not enough.
type OnMost string

// The values of OnMost.
const (
	OnMostFail     OnMost = "fail"
	OnMostContinue OnMost = "continue"
)

// The kinds of steps.
const (
	kindAgent    = "agent"
	kindTool     = "tool"
	kindGenerate = "generate"
	kindAsk      = "ask"
	kindApprove  = "approve"
	kindWait     = "wait"
	kindMap      = "map"
	kindParallel = "parallel"
	kindChoose   = "choose"
	kindRepeat   = "repeat"
	kindSteps    = "steps"
	kindFail     = "fail"
)

// Keys are the keys that belong to each kind of step, beside the kind itself, name and if.
var Keys = map[string][]string{
	kindAgent: {"task", "context", "output"}, kindTool: {"arguments", "timeout", "attempts", "on_unknown"}, kindGenerate: {"model", "instructions", "output", "max_output_tokens"},
	kindAsk: {"context", "choices", "answer", "remind", "deadline", "default"}, kindApprove: {"subject", "context", "approvers", "confirm", "remind", "deadline", "default"},
	kindWait: {}, kindMap: {}, kindParallel: {}, kindChoose: {}, kindRepeat: {}, kindSteps: {"result"}, kindFail: {},
}

// set lists the keys that a step has, without name and if.
func (s *Step) set() (keys []string) {
	for _, k := range []struct {
		key string
		has bool
	}{
		{kindAgent, s.Agent != ""}, {kindTool, s.Tool != ""}, {kindGenerate, s.Generate != ""}, {kindAsk, s.Ask != ""}, {kindApprove, s.Approve != ""}, {kindWait, s.Wait != nil}, {kindMap, s.Map != nil},
		{kindParallel, s.Parallel != nil}, {kindChoose, s.Choose != nil}, {kindRepeat, s.Repeat != nil}, {kindSteps, s.Steps != nil}, {kindFail, s.Fail != ""},
		{"task", len(s.Task) > 0}, {"context", s.Context != ""}, {"output", len(s.Output) > 0}, {"arguments", len(s.Arguments) > 0}, {"timeout", s.Timeout != 0}, {"attempts", s.Attempts != 0},
		{"model", s.Model != ""}, {"instructions", s.Instructions != ""}, {"max_output_tokens", s.MaxOutputTokens != 0},
		{"on_unknown", s.OnUnknown != ""}, {"choices", s.Choices != nil}, {"answer", len(s.Answer) > 0}, {"subject", len(s.Subject) > 0}, {"approvers", s.Approvers != nil},
		{"confirm", s.Confirm != ""}, {"remind", s.Remind != 0}, {"deadline", s.Deadline != 0}, {"default", s.Default != ""}, {"result", len(s.Result) > 0},
	} {
		if k.has {
			keys = append(keys, k.key)
		}
	}
	return keys
}

// kinds lists the kinds that a step has; a valid one has one.
func (s *Step) kinds() (kinds []string) {
	for _, k := range s.set() {
		if _, is := Keys[k]; is {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// kind is the kind of a valid step.
func (s *Step) kind() string { return s.kinds()[0] }

// name is the step's name.
func (s *Step) name() string {
	switch {
	case s.Name != "":
		return s.Name
	case s.Agent != "":
		return s.Agent
	case s.Tool != "":
		return s.Tool
	}
	return s.kind()
}

// Approvals reports whether the flow asks for approvals that anybody may give, and for some that
// only named people may.
func (d Definition) Approvals() (anybody, named bool) {
	d.each(func(s *Step) {
		anybody = anybody || s.Approve != "" && len(s.Approvers) == 0
		named = named || len(s.Approvers) > 0
	})
	return anybody, named
}
