package handoff

import (
	_ "embed" // for the schemas
	"encoding/json"

	"github.com/fermata-agents/fermata/agent"
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

// Prompt is the last message to the model of a stopped run, if its agent has no other
// [agent.Definition.Texts]. It asks for a summary.
var Prompt = new(agent.Definition).Text(agent.TextSummaryHandoff)
