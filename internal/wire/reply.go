package wire

import (
	"encoding/json"

	"github.com/fermata-agents/fermata/agent"
)

// Reply is a model's whole answer as it is recorded: a model call's result.
type Reply struct {
	// Parts are text, thinking and tool_call in the model's order. Calls have no id of ours yet.
	Parts  []agent.Part `json:"parts,omitempty"`
	Finish agent.Finish `json:"finish"`
	Usage  agent.Usage  `json:"usage"`
	// Charges is what other attempts at the call have used: those that failed.
	Charges []agent.Charge `json:"charges,omitempty"`
	// Model is the fallback that answered, and Cost what its tokens cost; empty
	// where the Spec's model did, whose price the Spec has.
	Model string `json:"model,omitempty"`
	// ProviderModel is for [agent.Message.ProviderModel].
	ProviderModel string    `json:"provider_model,omitempty"`
	Cost          agent.USD `json:"cost_usd,omitempty"`
	// Output is the answer as JSON where the agent has a schema and the answer fits it.
	Output json.RawMessage `json:"output,omitempty"`
	// OutputError says how an answer does not fit.
	OutputError string `json:"output_error,omitempty"`
	// ArgumentErrors say, for each call of Parts in order, how its arguments do not fit its tool's
	// schema; absent if all fit.
	ArgumentErrors []string `json:"argument_errors,omitempty"`
	// RuleMatches are, for each call of Parts in order, the numbers of the Spec's rules
	// that it matches; absent if the Spec has no rules.
	RuleMatches [][]int `json:"rule_matches,omitempty"`
	// Digests are, for each call of Parts in order, those of its arguments; absent if the
	// arguments of all calls are short.
	Digests []CallDigests `json:"digests,omitempty"`
	// ParkRequests are the calls of await_resumption in Parts, in order, as they were read.
	ParkRequests []ParkRequest `json:"park_requests,omitempty"`
	// Compaction is what a summary stands for; set where one was asked for since the
	// conversation is too long.
	Compaction *agent.Compaction `json:"compaction,omitempty"`
	// Hold is set where the call was given up for a hold that the run itself may
	// not have heard of yet; Finish is held then, and Parts are what can be kept.
	Hold *agent.HoldRef `json:"hold,omitempty"`
}

// CallDigests are digests of a call's arguments that would take a workflow too long.
type CallDigests struct {
	Same  string `json:"same"`  // equal for calls that ask for the same thing
	Shown string `json:"shown"` // what people compare, see [agent.Request.Digest]
}

// ParkRequest is what a model says to await_resumption, as the step read it that asked the
// model: recorded with the reply, so that no later build reads it otherwise.
type ParkRequest struct {
	Reason     string           `json:"reason,omitempty"`
	Conditions agent.Conditions `json:"conditions,omitzero"`
	// Err says what is wrong with the call; the model is told.
	Err *agent.Error `json:"error,omitempty"`
}

// Reasons to stop of a model that was not asked, or was interrupted.
const (
	FinishTooLong   agent.Finish = "too_long"  // it was not asked: the conversation is too long for its window
	FinishElsewhere agent.Finish = "elsewhere" // it was not asked: it may be, by the process that has the run
	FinishHeld      agent.Finish = "held"      // it was given up for a hold or an end of the run
)
