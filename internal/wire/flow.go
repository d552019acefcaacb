package wire

import (
	"encoding/json"

	"github.com/fermata-agents/fermata/agent"
)

// MaxSteps is how many steps of a flow may be open at once. The function's further steps wait until
// one of these is done.
const MaxSteps = 128

// FlowAnswer is what a flow's function asks for, as the history records it: its next steps,
// or its end.
type FlowAnswer struct {
	// Steps are the new steps, in the order in which the function asked for them.
	Steps []FlowStep `json:"steps,omitempty"`
	// More means that the function asks for further steps, which did not fit.
	More bool `json:"more,omitempty"`
	// Full means that the function asks for further steps, for which the run had no room.
	Full bool `json:"full,omitempty"`
	// Dropped are the paths of open steps whose results the function does not wait for any
	// more, because the steps beside them have decided.
	Dropped []string `json:"dropped,omitempty"`
	// Done means that the function has returned: Text and Output are its result, or Error says
	// why there is none.
	Done   bool            `json:"done,omitempty"`
	Text   string          `json:"text,omitempty"`
	Output json.RawMessage `json:"output,omitempty"`
	Error  *agent.Error    `json:"error,omitempty"`
	// Files are files of the session that the run gives back with its result.
	Files []agent.File `json:"files,omitempty"`
	// ArgumentErrors, RuleMatches, Digests and ParkRequests are those of [Reply], for the calls
	// of Steps.
	ArgumentErrors []string      `json:"argument_errors,omitempty"`
	RuleMatches    [][]int       `json:"rule_matches,omitempty"`
	Digests        []CallDigests `json:"digests,omitempty"`
	ParkRequests   []ParkRequest `json:"park_requests,omitempty"`
}

// FlowStep is a step of a flow: a tool call, whose ProviderID is the step's path.
type FlowStep struct {
	agent.ToolCall
	StepOptions
	// Files are the files of the session that the step passes on.
	Files []agent.File `json:"files,omitempty"`
	// OriginRun is the run that made the step first, if that is another one and nobody knows whether
	// the step had its effect. Its idempotency key stays that run's.
	OriginRun string `json:"origin_run,omitempty"`
}

// StepOptions are how the run treats a step; the zero value is how it treats the tool.
type StepOptions struct {
	// Timeout bounds one attempt; zero means the tool's own.
	Timeout agent.Duration `json:"timeout,omitempty"`
	// Attempts is how often a failing call is made; zero means the tool's own number.
	Attempts int `json:"attempts,omitempty"`
	// ReadOnly means that the step changes nothing, so it may be made again.
	ReadOnly bool `json:"read_only,omitempty"`
	// OnUnknown says what happens if it is unknown whether the step had its effect; empty means
	// [UnknownAsk].
	OnUnknown OnUnknown `json:"on_unknown,omitempty"`
	// Answer says how people are asked, for a question or an approval.
	Answer *agent.AnswerTimeouts `json:"answer,omitempty"`
	// Approvers and Confirm are those of [agent.Rule], for an approval.
	Approvers []string `json:"approvers,omitempty"`
	Confirm   string   `json:"confirm,omitempty"`
	// Temporal is what a step with the tool [agent.TemporalTool] calls.
	Temporal *agent.TemporalCall `json:"temporal,omitempty"`
}

// MayRepeat reports whether a step that calls a tool may be made again if nobody knows whether it
// had its effect.
func (o StepOptions) MayRepeat(t agent.ToolSpec) bool {
	return t.ReadOnly || t.Local || o.ReadOnly || max(t.Attempts, o.Attempts) > 1 || o.OnUnknown == UnknownAgain
}

// Prompt are the arguments of a flow's model call.
type Prompt struct {
	// Model is the model's full name; empty means the first one of the flow.
	Model        string `json:"model,omitempty"`
	Instructions string `json:"instructions,omitempty"`
	Text         string `json:"text"`
	// Output is the schema of the reply; empty means text.
	Output json.RawMessage `json:"output,omitempty"`
	// MaxOutputTokens bounds the reply; zero means the model's own bound.
	MaxOutputTokens int `json:"max_output_tokens,omitempty"`
}

// OnUnknown says what a flow does about a step whose outcome is unknown.
type OnUnknown string

// What a flow can do. A person who is asked chooses again, done or fail.
const (
	UnknownAsk   OnUnknown = "ask"   // asks a person
	UnknownAgain OnUnknown = "again" // makes the step again
	UnknownFail  OnUnknown = "fail"  // the step fails with the status unknown
)
