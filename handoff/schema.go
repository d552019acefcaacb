package handoff

import (
	_ "embed" // for the schemas
	"encoding/json"
)

//go:embed handoff.schema.json
var handoffSchema string

//go:embed summary.schema.json
var summarySchema string

// Schema is the JSON Schema (draft 2020-12) of a handoff on the wire. Each call
// returns bytes of its own.
func Schema() json.RawMessage { return json.RawMessage(handoffSchema) }

// SummarySchema is the JSON Schema of what a stopped agent's model may say, see
// [Prompt]. It has no keyword that a provider can't hold a model to, so bounds of
// numbers and of lengths stand in its descriptions only: [Complete] keeps them.
// Each call returns bytes of its own.
func SummarySchema() json.RawMessage { return json.RawMessage(summarySchema) }

// Prompt is what a stopped agent's model is told as the last message of its one
// summary turn.
const Prompt = `You are being stopped. This is your last message of this run, and you have no tools any more: nothing that you begin now will happen. Somebody else, a person or another agent, will carry on from here and knows only what you write down now.

Sum up your work for them. Answer with one JSON object that fits the given schema, and with nothing before or after it. Its field "summary" is required: say what was asked of you, how far you got, what you learned, and what you would do next. Its other fields are "done", "in_flight", "not_started" and "failed" (lists of {"what", "ref"}), "open_questions" and "decisions" (lists of texts), "evidence" (a list of {"kind", "ref", "note"}, where "kind" is "file", "url" or "call") and "confidence" (from 0 to 1). Leave out what you have nothing to say on.

Be honest about what is unfinished. Only what you saw succeed is done. What you began and did not see end is in flight, even if it probably worked. Name what failed, and do not guess: where you do not know, say so.`
