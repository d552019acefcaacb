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

// part is the SDK's type, without its changes: arguments and signatures stay as they
// came, and a text may be empty if it has a signature.
type part struct {
	Text      *string                 `json:"text,omitempty"`
	Thought   bool                    `json:"thought,omitempty"`
	Signature string                  `json:"thoughtSignature,omitempty"`
	Call      *functionCall           `json:"functionCall,omitempty"`
	Response  *genai.FunctionResponse `json:"functionResponse,omitempty"`
	Inline    *inlineData             `json:"inlineData,omitempty"`
}

// inlineData is a file. Its bytes are written in base64.
type inlineData struct {
	MIMEType string `json:"mimeType"`
	Data     []byte `json:"data"`
}

type functionCall struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitempty"`
}

func textPart(text string) part { return part{Text: &text} }

// event is an event of a stream, or an answer that was not streamed. Other fields are not
// used.
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

	Grounding  json.RawMessage `json:"groundingMetadata"` // see grounding
	Quotations json.RawMessage `json:"citationMetadata"`  // see quotations
}

// usage has the provider's own counts: the prompt includes what was read from the cache,
// and candidates do not include thinking.
type usage struct {
	Prompt     int64 `json:"promptTokenCount"`
	ToolPrompt int64 `json:"toolUsePromptTokenCount"`
	Cached     int64 `json:"cachedContentTokenCount"`
	Candidates int64 `json:"candidatesTokenCount"`
	Thoughts   int64 `json:"thoughtsTokenCount"`
}
