package grade

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/excerpt"
)

// Facts are what a trial did, as graders see it.
type Facts struct {
	Case string `json:"case"`
	// N is the trial's number within its case, from 1.
	N    int    `json:"trial"`
	Task string `json:"task"`
	// Status and Reason are those of the outcome. A trial that waits for an answer that its
	// person does not give is suspended.
	Status agent.Status `json:"status"`
	Reason string       `json:"reason,omitempty"`
	// Text is the last answer, and Output the answer as JSON if the agent has an output
	// schema.
	Text   string          `json:"text"`
	Output json.RawMessage `json:"output,omitempty"`
	// Calls are the tool calls of the run and of all runs below it, in their order.
	Calls []Call `json:"calls,omitempty"`
	// CallsLeft counts further calls, beyond [MaxCalls]. Then no grader of the path can
	// decide.
	CallsLeft int       `json:"calls_left,omitempty"`
	Requests  []Request `json:"requests,omitempty"`
	// Turns, Tokens and Cost include all runs below.
	Turns  int       `json:"turns"`
	Tokens int64     `json:"tokens"`
	Cost   agent.USD `json:"cost_usd"`
	// Duration is the time from the start to the end, with the time that people took.
	Duration agent.Duration `json:"duration,omitempty"`
}

// Bounds of what graders see and say.
const (
	MaxCalls  = 2_000 // calls, and requests, of one trial
	maxReason = 1_000 // bytes of a verdict's reason
)

// Call is a tool call of a trial.
type Call struct {
	// Session is that of the run which made it.
	Session   string           `json:"session"`
	Tool      string           `json:"tool"`
	Arguments json.RawMessage  `json:"arguments,omitempty"`
	Status    agent.CallStatus `json:"status,omitempty"`
}

// Request is something that a trial asked its person.
type Request struct {
	Type agent.RequestType `json:"type"`
	Tool string            `json:"tool,omitempty"`
	Text string            `json:"text,omitempty"`
	// Decision is how it was decided; empty while it is open.
	Decision string `json:"decision,omitempty"`
}

// Verdict is what a grader says of a trial.
type Verdict struct {
	Grader string `json:"grader"`
	Pass   bool   `json:"pass"`
	// Reason says why it did not pass. A judge gives reasons for a pass, too.
	Reason string `json:"reason,omitempty"`
	// Model, Cost and Tokens are those of a judge.
	Model  string    `json:"model,omitempty"`
	Cost   agent.USD `json:"cost_usd,omitempty"`
	Tokens int64     `json:"tokens,omitempty"`
	// Error means that the grader itself failed: the trial is neither good nor bad.
	Error *agent.Error `json:"error,omitempty"`
}

// Pure is a grader that decides by the facts alone.
type Pure interface {
	// Check returns why nothing can be graded like this ([agent.CodeInvalidInput]), or nil.
	Check() error
	// Grade returns why the trial does not pass; empty if it passes.
	Grade(f *Facts) string
}

// Spec names one grader, by exactly one of its fields beside Name.
type Spec struct {
	// Name is shown in reports; empty means the grader's kind.
	Name string `json:"name,omitempty"`

	// Exact is the whole answer, without white space around it. If both are JSON, they have
	// to be the same value.
	Exact Exact `json:"exact,omitempty"`
	// Contains are texts that all are in the answer, and Lacks texts that are not.
	Contains Contains `json:"contains,omitempty"`
	Lacks    Lacks    `json:"lacks,omitempty"`
	// Regex is a regular expression (RE2) that matches somewhere in the answer.
	Regex Regex `json:"regex,omitempty"`
	// Schema is a JSON Schema that the answer fits, as JSON.
	Schema json.RawMessage `json:"schema,omitempty"`
	// Status is the status of the run: completed, failed, suspended, stopped or cancelled.
	Status Status `json:"status,omitempty"`
	// Calls are the tool calls that were made, or not made.
	Calls *Calls `json:"calls,omitempty"`
	// Asked is what the person was asked, or not asked.
	Asked *Asked `json:"asked,omitempty"`
	// AtMost is how much the run may have used.
	AtMost *AtMost `json:"at_most,omitempty"`

	// Judge is a model that decides by a rubric.
	Judge *Judge `json:"judge,omitempty"`
	// Command is a program that decides by its exit status.
	Command *Command `json:"command,omitempty"`
	// Function is a Go function of the worker that evaluates.
	Function *Function `json:"function,omitempty"`
}

// kind returns the kinds that a Spec has.
func (s *Spec) kinds() (list []string) {
	for _, k := range []struct {
		name string
		is   bool
	}{
		{"exact", s.Exact != ""},
		{"contains", len(s.Contains) > 0},
		{"lacks", len(s.Lacks) > 0},
		{"regex", s.Regex != ""},
		{"schema", len(s.Schema) > 0},
		{"status", s.Status != ""},
		{"calls", s.Calls != nil},
		{"asked", s.Asked != nil},
		{"at_most", s.AtMost != nil},
		{"judge", s.Judge != nil},
		{"command", s.Command != nil},
		{"function", s.Function != nil},
	} {
		if k.is {
			list = append(list, k.name)
		}
	}
	return list
}

// Called returns the grader's name.
func (s *Spec) Called() string {
	if kinds := s.kinds(); s.Name == "" && len(kinds) > 0 {
		return kinds[0]
	}
	return s.Name
}

// Pure returns the grader if it decides by the facts alone; nil otherwise.
func (s *Spec) Pure() Pure {
	switch {
	case s.Exact != "":
		return s.Exact
	case len(s.Contains) > 0:
		return s.Contains
	case len(s.Lacks) > 0:
		return s.Lacks
	case s.Regex != "":
		return s.Regex
	case len(s.Schema) > 0:
		return Schema(s.Schema)
	case s.Status != "":
		return s.Status
	case s.Calls != nil:
		return s.Calls
	case s.Asked != nil:
		return s.Asked
	case s.AtMost != nil:
		return s.AtMost
	}
	return nil
}

// Check returns an [agent.CodeInvalidInput] error if the Spec does not name one grader that
// can decide.
func (s *Spec) Check() error {
	kinds := s.kinds()
	if len(kinds) != 1 {
		return agent.Errorf(agent.CodeInvalidInput, "a grader needs exactly one of exact, contains, lacks, regex, schema, status, calls, asked, at_most, judge, command and function; this one has %d", len(kinds))
	}
	if err := s.check(); err != nil {
		return agent.Errorf(agent.CodeInvalidInput, "%s: %w", kinds[0], err)
	}
	return nil
}

func (s *Spec) check() error {
	switch {
	case s.Judge != nil:
		return s.Judge.check()
	case s.Command != nil:
		return s.Command.check()
	case s.Function != nil:
		return s.Function.check()
	}
	return s.Pure().Check()
}

// Verdict returns the verdict of a pure grader.
func (s *Spec) Verdict(f *Facts) Verdict {
	reason := s.Pure().Grade(f)
	return Verdict{Grader: s.Called(), Pass: reason == "", Reason: cut(reason)}
}

// cut bounds a reason: it may quote a model or a program.
func cut(text string) string { return excerpt.Of(text, maxReason, len(text)) }

// quote quotes a part of an answer in a reason.
func quote(text string) string { return fmt.Sprintf("%.200q", text) }

// seconds writes a time for people.
func seconds(d agent.Duration) string { return time.Duration(d).Round(time.Millisecond).String() }
