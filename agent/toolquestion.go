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
	// Name says which question of the call it is, at most 64 bytes; empty is a name too. An answer
	// counts for the question with its name, text, context and choices, whatever else the call asks.
	// Equal questions get their answers in order.
	Name string `json:"name,omitempty"`
	// MustFit means that the runtime refuses an answer that does not fit the Schema or, without a
	// Schema, is none of the Choices. The question stays open then.
	MustFit bool `json:"must_fit,omitempty"`
	// Timeouts are how long the question waits; nil means the agent's AnswerTimeouts.
	Timeouts *AnswerTimeouts `json:"timeouts,omitempty"`
	// Until asks nobody: the call waits for an event or a time, and the answer's Data says what came.
	// Only a step of a flow can wait so. It has no fields beside Until but a Text, for listings, and a
	// Name; flow.WaitIn sets it.
	Until *Conditions `json:"until,omitempty"`
	// Digest is that of the text, the context and the choices, or says that it is a wait. tool.Call.Ask
	// sets it. The answer has it too.
	Digest string `json:"digest,omitempty"`
}

// Limits of a question.
const (
	maxChoices      = 16
	maxChoice       = 200
	maxQuestion     = 4 << 10  // bytes of the text, and of the context
	maxSchema       = 16 << 10 // bytes
	maxKept         = 16 << 10 // bytes of a question's state
	maxQuestionName = 64       // bytes of a question's name
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
	return q.checkHow()
}

// checkHow checks how the question waits, and how its answer is found.
func (q ToolQuestion) checkHow() error {
	switch {
	case len(q.Name) > maxQuestionName:
		return Errorf(CodeInvalidInput, "the question's name has %d bytes, and at most %d are taken", len(q.Name), maxQuestionName).WithPath("name")
	case q.Until != nil && (len(q.State) > 0 || len(q.Choices) > 0 || len(q.Schema) > 0 || q.Timeouts != nil):
		return Errorf(CodeInvalidInput, "a wait for an event or a time has no choices, schema, state or timeouts").WithPath("until")
	case q.Timeouts == nil:
		return nil
	case len(q.Timeouts.Default) > maxQuestion:
		return Errorf(CodeTooLarge, "a question's default has at most %d bytes", maxQuestion).WithPath("timeouts")
	}
	return q.Timeouts.check()
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
	// Name is the question's own Name.
	Name string `json:"name,omitempty"`
	// Digest is the question's own Digest. Only the runtime sets it. It is empty if a worker has asked
	// whose build had no digests: such an answer counts for its name.
	Digest string `json:"digest,omitempty"`
}
