package handoff

import (
	_ "embed" // for the schemas
	"encoding/json"
)

//go:embed handoff.schema.json
var handoffSchema string

//go:embed summary.schema.json
var summarySchema string

// Schema returns the JSON Schema (draft 2020-12) of a handoff. The bytes are the caller's
// own.
func Schema() json.RawMessage { return json.RawMessage(handoffSchema) }

// SummarySchema returns the JSON Schema of the answer to [Prompt]. It has no keyword that
// a provider may not support, so limits of numbers and lengths are only in its
// descriptions; [Complete] enforces them. The bytes are the caller's own.
func SummarySchema() json.RawMessage { return json.RawMessage(summarySchema) }

// Prompt is the last message to the model of a stopped run. It asks for a summary.
const Prompt = `You are being stopped. This is your last message of this run, and you have no tools any more: nothing that you begin now will happen. Somebody else, a person or another agent, will carry on from here and knows only what you write down now.

Sum up your work for them. Answer with one JSON object that fits the given schema, and with nothing before or after it. Its field "summary" is required: say what was asked of you, how far you got, what you learned, and what you would do next. Its other fields are "done", "in_flight", "not_started" and "failed" (lists of {"what", "ref"}), "open_questions" and "decisions" (lists of texts), "evidence" (a list of {"kind", "ref", "note"}, where "kind" is "file", "url" or "call") and "confidence" (from 0 to 1). Leave out what you have nothing to say on.

Be honest about what is unfinished. Only what you saw succeed is done. What you began and did not see end is in flight, even if it probably worked. Name what failed, and do not guess: where you do not know, say so.`
