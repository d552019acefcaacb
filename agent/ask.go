package agent

import (
	"encoding/json"
	"strings"
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
}

// Bounds of a question.
const (
	maxChoices  = 16
	maxChoice   = 200
	maxQuestion = 4 << 10  // bytes of the text, and of the context
	maxSchema   = 16 << 10 // bytes
)

// Check tells what is wrong with a question: [InvalidInput] or [TooLarge].
func (q ToolQuestion) Check() error {
	switch {
	case strings.TrimSpace(q.Text) == "":
		return Errorf(InvalidInput, "a question without a text").At("text")
	case len(q.Text) > maxQuestion || len(q.Context) > maxQuestion || len(q.Schema) > maxSchema:
		return Errorf(TooLarge, "a question has at most %d bytes of text and of context, and %d of schema", maxQuestion, maxSchema).At("text")
	case len(q.Choices) > maxChoices:
		return Errorf(InvalidInput, "there are %d choices; %d are enough", len(q.Choices), maxChoices).At("choices")
	case len(q.Schema) > 0 && (!json.Valid(q.Schema) || JSONDepth(q.Schema) > MaxJSONDepth):
		return Errorf(InvalidInput, "the schema is not JSON, or nested more than %d levels deep", MaxJSONDepth).At("schema")
	}
	for _, c := range q.Choices {
		if strings.TrimSpace(c) == "" || len(c) > maxChoice {
			return Errorf(InvalidInput, "a choice is blank, or longer than %d bytes", maxChoice).At("choices")
		}
	}
	return nil
}

// ToolAnswer is what came of a [ToolQuestion].
type ToolAnswer struct {
	// Text is what was answered, or the choice.
	Text string `json:"text,omitempty"`
	// Choice is the number of the choice, from 0; nil where it is none.
	Choice *int `json:"choice,omitempty"`
	// Data is JSON, where such was given.
	Data json.RawMessage `json:"data,omitempty"`
	// By is who answered: a claim.
	By string `json:"by,omitempty"`
	// Declined tells that nobody answers: it was rejected, for the reason in Text, or its
	// time was over.
	Declined bool `json:"declined,omitempty"`
}
