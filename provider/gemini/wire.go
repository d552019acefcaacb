package gemini

import (
	"encoding/json"

	"google.golang.org/genai"
)

// request is the body of a request.
type request struct {
	System     *content                `json:"systemInstruction,omitempty"`
	Contents   []content               `json:"contents"`
	Tools      []genai.Tool            `json:"tools,omitempty"`
	ToolConfig *genai.ToolConfig       `json:"toolConfig,omitempty"`
	Config     *genai.GenerationConfig `json:"generationConfig,omitempty"`
	Tier       genai.ServiceTier       `json:"serviceTier,omitempty"`
}

type content struct {
	Role  string `json:"role,omitempty"`
	Parts []part `json:"parts"`
}

// part is the SDK's, except for what that would change: arguments stay as they were
// written, signatures as they came, and a text may be empty where a signature
// stands on it.
type part struct {
	Text      *string                 `json:"text,omitempty"`
	Thought   bool                    `json:"thought,omitempty"`
	Signature string                  `json:"thoughtSignature,omitempty"`
	Call      *functionCall           `json:"functionCall,omitempty"`
	Response  *genai.FunctionResponse `json:"functionResponse,omitempty"`
}

type functionCall struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitempty"`
}

func textPart(text string) part { return part{Text: &text} }

// event is one of a stream, and an answer that does not stream. What is not named
// here is of no use to us.
type event struct {
	Candidates []candidate `json:"candidates"`
	Feedback   struct {
		Reason  genai.BlockedReason `json:"blockReason"`
		Message string              `json:"blockReasonMessage"`
	} `json:"promptFeedback"`
	Usage usage    `json:"usageMetadata"`
	Error *problem `json:"error"`
}

type candidate struct {
	Index   int                `json:"index"`
	Content content            `json:"content"`
	Finish  genai.FinishReason `json:"finishReason"`
	Message string             `json:"finishMessage"`
}

// usage is in the provider's own counts: the prompt includes what was read from
// the cache, and candidates do not include thoughts.
type usage struct {
	Prompt     int64 `json:"promptTokenCount"`
	ToolPrompt int64 `json:"toolUsePromptTokenCount"`
	Cached     int64 `json:"cachedContentTokenCount"`
	Candidates int64 `json:"candidatesTokenCount"`
	Thoughts   int64 `json:"thoughtsTokenCount"`
}
