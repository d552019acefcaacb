package agent

import (
	"encoding/json"
	"strings"

	"github.com/fermata-agents/fermata/internal/rawjson"
)

// ToolQuestion is what a tool asks a person during its call.
type ToolQuestion struct {
	// Text is the question. Context is what a person needs to know to answer it.
	Text    string `json:"text"`
	Context string `json:"context,omitempty"`
	// Choices are the possible answers, at most 16 of at most 200 bytes; empty means any
	// answer.
	Choices []string `json:"choices,omitempty"`
	// Schema is a JSON Schema of the data that is wanted; empty means a text or a choice.
	// It helps people and their clients: the tool has to check the answer itself.
	Schema json.RawMessage `json:"schema,omitempty"`
	// State is JSON that is stored with the question, at most 16 KiB. Neither people nor
	// the model see it. It comes back as [ToolAnswer.State].
	State json.RawMessage `json:"state,omitempty"`
}

// Limits of a question.
const (
	maxChoices  = 16
	maxChoice   = 200
	maxQuestion = 4 << 10  // bytes of the text, and of the context
	maxSchema   = 16 << 10 // bytes
	maxKept     = 16 << 10 // bytes of a question's state
)

// Check returns a [CodeInvalidInput] or [CodeTooLarge] error if the question is invalid.
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

// ToolAnswer is the answer to a [ToolQuestion].
type ToolAnswer struct {
	// Text is the answer's text, or the choice's.
	Text string `json:"text,omitempty"`
	// Choice is the number of the choice, from 0; nil if the answer is no choice.
	Choice *int `json:"choice,omitempty"`
	// Data is the answer as JSON, if it has data.
	Data json.RawMessage `json:"data,omitempty"`
	// By says who answered. It is not authenticated.
	By string `json:"by,omitempty"`
	// Declined means that nobody answers: a person refused, for the reason in Text, or
	// the deadline passed.
	Declined bool `json:"declined,omitempty"`
	// Expired means that nobody answered until the question's deadline. The answer is
	// then the question's default; without a default it is Declined. Only the runtime
	// sets it.
	Expired bool `json:"expired,omitempty"`
	// State is the question's own State. If a call asked several questions, only the last
	// answer has it.
	State json.RawMessage `json:"state,omitempty"`
}
