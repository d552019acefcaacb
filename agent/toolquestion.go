package agent

import (
	"encoding/json"
	"strings"

	"github.com/fermata-agents/fermata/internal/rawjson"
)

// ToolQuestion is what a tool asks a person in the middle of its call.
type ToolQuestion struct {
	// Text is the question; Context is what a person has to know for an answer.
	Text    string `json:"text"`
	Context string `json:"context,omitempty"`
	// Choices are at most 16, of at most 200 bytes; empty means any answer.
	Choices []string `json:"choices,omitempty"`
	// Schema is a JSON Schema of the data that is wanted; empty means a text or a choice.
	// It is for people and their clients: the tool itself looks at what it gets.
	Schema json.RawMessage `json:"schema,omitempty"`
	// State is JSON that the tool keeps with its question, of at most 16 KiB. Neither
	// people nor the model are shown it; it comes back as [ToolAnswer.State].
	State json.RawMessage `json:"state,omitempty"`
}

// Bounds of a question.
const (
	maxChoices  = 16
	maxChoice   = 200
	maxQuestion = 4 << 10  // bytes of the text, and of the context
	maxSchema   = 16 << 10 // bytes
	maxKept     = 16 << 10 // bytes of a question's state
)

// Check reports what is wrong with a question: [CodeInvalidInput] or [CodeTooLarge].
func (q ToolQuestion) Check() error {
	switch {
	case strings.TrimSpace(q.Text) == "":
		return Errorf(CodeInvalidInput, "a question without a text").WithPath("text")
	case len(q.Text) > maxQuestion || len(q.Context) > maxQuestion || len(q.Schema) > maxSchema:
		return Errorf(CodeTooLarge, "a question has at most %d bytes of text and of context, and %d of schema", maxQuestion, maxSchema).WithPath("text")
	case len(q.State) > maxKept:
		return Errorf(CodeTooLarge, "the state that is kept with a question has %d bytes; at most %d are taken", len(q.State), maxKept).WithPath("state")
	case len(q.Choices) > maxChoices:
		return Errorf(CodeInvalidInput, "there are %d choices; %d are enough", len(q.Choices), maxChoices).WithPath("choices")
	case len(q.Schema) > 0 && (!json.Valid(q.Schema) || rawjson.Depth(q.Schema) > MaxJSONDepth):
		return Errorf(CodeInvalidInput, "the schema is not JSON, or nested more than %d levels deep", MaxJSONDepth).WithPath("schema")
	case len(q.State) > 0 && (!json.Valid(q.State) || rawjson.Depth(q.State) > MaxJSONDepth):
		return Errorf(CodeInvalidInput, "the state is not JSON, or nested more than %d levels deep", MaxJSONDepth).WithPath("state")
	}
	for _, c := range q.Choices {
		if strings.TrimSpace(c) == "" || len(c) > maxChoice {
			return Errorf(CodeInvalidInput, "a choice is blank, or longer than %d bytes", maxChoice).WithPath("choices")
		}
	}
	return nil
}

// ToolAnswer is what came of a [ToolQuestion].
type ToolAnswer struct {
	// Text is what was answered, or the choice.
	Text string `json:"text,omitempty"`
	// Choice is the number of the choice, from 0; nil if it is none.
	Choice *int `json:"choice,omitempty"`
	// Data is JSON, where such was given.
	Data json.RawMessage `json:"data,omitempty"`
	// By is who answered: a claim.
	By string `json:"by,omitempty"`
	// Declined means that nobody answers: it was rejected, for the reason in Text, or its
	// time was over.
	Declined bool `json:"declined,omitempty"`
	// Expired means that nobody answered until the question's deadline. The answer is
	// then the question's default, or Declined where it has none. The runtime alone sets it.
	Expired bool `json:"expired,omitempty"`
	// State is what the question had as its own. Of the answers of a call only the
	// last has it.
	State json.RawMessage `json:"state,omitempty"`
}
