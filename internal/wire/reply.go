package wire

import (
	"encoding/json"

	"github.com/fermata-agents/fermata/agent"
)

// Reply is the result of a model call, as the history records it.
type Reply struct {
	// Parts are text, thinking and tool_call in the model's order. The machine gives the calls
	// their ids later.
	Parts  []agent.Part `json:"parts,omitempty"`
	Finish agent.Finish `json:"finish"`
	Usage  agent.Usage  `json:"usage"`
	// Charges is what the call's failed attempts have used.
	Charges []agent.Charge `json:"charges,omitempty"`
	// Model is the fallback that answered, and Cost what its tokens cost. Both are empty if the
	// Spec's model answered, because the Spec has its price.
	Model string `json:"model,omitempty"`
	// ProviderModel is the provider's name for the model, see [agent.Message.ProviderModel].
	ProviderModel string    `json:"provider_model,omitempty"`
	Cost          agent.USD `json:"cost_usd,omitempty"`
	// Output is the answer as JSON, if the agent has a schema and the answer fits it.
	Output json.RawMessage `json:"output,omitempty"`
	// Returned are the files of the session that the answer gives back.
	Returned []agent.File `json:"returned,omitempty"`
	// OutputError says how the answer does not fit the schema.
	OutputError string `json:"output_error,omitempty"`
	// ArgumentErrors say how each call's arguments do not fit its tool's schema, in the order of
	// the calls in Parts; absent if all fit.
	ArgumentErrors []string `json:"argument_errors,omitempty"`
	// RuleMatches are the numbers of the Spec's rules that each call matches, in the order of
	// the calls in Parts; absent if the Spec has no rules.
	RuleMatches [][]int `json:"rule_matches,omitempty"`
	// Digests are the digests of each call's arguments, in the order of the calls in Parts;
	// absent if all arguments are short.
	Digests []CallDigests `json:"digests,omitempty"`
	// Files are the files of the session that each call passes on, in the order of the calls in
	// Parts; absent if none does.
	Files [][]agent.File `json:"files,omitempty"`
	// ParkRequests are the calls of await_resumption in Parts, in order, with their arguments
	// parsed.
	ParkRequests []ParkRequest `json:"park_requests,omitempty"`
	// ShownFiles are the first calls of show_file in Parts, in order, with the file that each asks
	// for; absent if the model was not offered the tool.
	ShownFiles []ShownFile `json:"shown_files,omitempty"`
	// Skills is what came of the skills that were to be read; nil if none were.
	Skills *SkillResult `json:"skills,omitempty"`
	// Notebook is the notebook's next version, if a call of the tool notebook writes one.
	Notebook *NotebookUpdate `json:"notebook,omitempty"`
	// FoundTools are the answers to the calls of tool_search in Parts, in order; absent if no tool
	// may be hidden.
	FoundTools []FoundTools `json:"found_tools,omitempty"`
	// HiddenTools are tools that Parts call and that the model was not offered.
	HiddenTools []string `json:"hidden_tools,omitempty"`
	// TextCalls means that the calls in Parts were written as text.
	TextCalls bool `json:"text_calls,omitempty"`
	// Compaction says what a summary replaces. It is set if the summary was made because the
	// conversation is too long.
	Compaction *agent.Compaction `json:"compaction,omitempty"`
	// Hold is the hold that stopped the call, which the run itself may not know yet. Finish is
	// [FinishHeld] then, and Parts are what can be kept.
	Hold *agent.HoldRef `json:"hold,omitempty"`
}

// CallDigests are digests of one call's arguments. The activity makes them if the arguments are
// long, because hashing them would take a workflow task too long.
type CallDigests struct {
	Same  string `json:"same"`  // equal for equal calls, however their JSON is written
	Shown string `json:"shown"` // what people compare, see [agent.Request.Digest]
}

// ShownFile is a call of show_file. The activity that called the model finds the file, since it
// has the log.
type ShownFile struct {
	// File is the part with the file, of the run's own session; nil if there is none.
	File *agent.Part `json:"file,omitempty"`
	// Err says why there is none. The model gets it as the call's result.
	Err string `json:"error,omitempty"`
}

// NotebookUpdate is what a call of the tool notebook makes of the notebook. The activity that called
// the model finds it, since it has the log.
type NotebookUpdate struct {
	Call     int            `json:"call"` // its index among the calls in Parts, from 0
	Notebook agent.Notebook `json:"notebook"`
	Size     int            `json:"size"` // the notebook's, in bytes
}

// ParkRequest is a call of await_resumption, parsed by the activity that called the model. It is
// recorded with the reply, so that a later build cannot parse it differently.
type ParkRequest struct {
	Reason     string           `json:"reason,omitempty"`
	Conditions agent.Conditions `json:"conditions,omitzero"`
	// Err says what is wrong with the call. The model gets it as the call's result.
	Err *agent.Error `json:"error,omitempty"`
}

// Finish reasons of the runtime's own, beside the providers'.
const (
	FinishTooLong   agent.Finish = "too_long"  // no request was sent: the conversation exceeds the model's window
	FinishElsewhere agent.Finish = "elsewhere" // no request was sent: the process that has the run may send it
	FinishHeld      agent.Finish = "held"      // the call was cancelled for a hold or an end of the run
)

// FoundTools is the answer to a call of tool_search. The activity that called the model searches,
// since it has the descriptions and the conversation.
type FoundTools struct {
	Names []string `json:"names,omitempty"`
	Text  string   `json:"text,omitempty"`
	// Err says why nothing was looked for; empty if it was. The model gets it as the result.
	Err string `json:"error,omitempty"`
}
