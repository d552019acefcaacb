package bedrock

import "encoding/json"

// request is the body of a request. Its fields are those of the SDK's types, which would
// decode JSON values into Go's.
type request struct {
	Messages   []message    `json:"messages"`
	System     []block      `json:"system,omitempty"`
	Inference  *inference   `json:"inferenceConfig,omitempty"`
	Tools      *tools       `json:"toolConfig,omitempty"`
	Output     *output      `json:"outputConfig,omitempty"`
	Additional *additional  `json:"additionalModelRequestFields,omitempty"`
	Tier       *serviceTier `json:"serviceTier,omitempty"`
}

type serviceTier struct {
	Type string `json:"type"`
}

type inference struct {
	MaxTokens   int      `json:"maxTokens,omitempty"`
	Temperature *float64 `json:"temperature,omitempty"`
}

type message struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

// block is a content block: one of its fields is set.
type block struct {
	Text       *string        `json:"text,omitempty"`
	Image      *imageBlock    `json:"image,omitempty"`
	Document   *documentBlock `json:"document,omitempty"`
	Reasoning  *reasoning     `json:"reasoningContent,omitempty"`
	Use        *toolUse       `json:"toolUse,omitempty"`
	Result     *toolResult    `json:"toolResult,omitempty"`
	CachePoint *cachePoint    `json:"cachePoint,omitempty"`
}

type reasoning struct {
	Text     *reasoningText `json:"reasoningText,omitempty"`
	Redacted string         `json:"redactedContent,omitempty"` // in base64, as it came
}

type reasoningText struct {
	Text      string `json:"text"`
	Signature string `json:"signature,omitempty"`
}

type toolUse struct {
	ID    string          `json:"toolUseId"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

type toolResult struct {
	ID      string       `json:"toolUseId"`
	Content []resultText `json:"content"`
	Status  string       `json:"status,omitempty"`
}

type resultText struct {
	Text string `json:"text"`
}

type cachePoint struct {
	Type string `json:"type"`
	TTL  string `json:"ttl,omitempty"`
}

type tools struct {
	Tools []tool `json:"tools"`
}

type tool struct {
	Spec       *toolSpec   `json:"toolSpec,omitempty"`
	CachePoint *cachePoint `json:"cachePoint,omitempty"`
}

type toolSpec struct {
	Name        string      `json:"name"`
	Description string      `json:"description,omitempty"`
	Input       inputSchema `json:"inputSchema"`
}

type inputSchema struct {
	JSON json.RawMessage `json:"json"`
}

type output struct {
	Effort string `json:"effort,omitempty"`
}

// additional has fields that only some makers' models have.
type additional struct {
	Thinking *thinking  `json:"thinking,omitempty"`         // Claude
	Nova     *novaThink `json:"reasoningConfig,omitempty"`  // Nova
	Effort   string     `json:"reasoning_effort,omitempty"` // OpenAI's open models
}

type thinking struct {
	Type   string `json:"type"`
	Budget int    `json:"budget_tokens,omitempty"`
}

type novaThink struct {
	Type   string `json:"type"`
	Effort string `json:"maxReasoningEffort,omitempty"`
}

// event is an event of a stream, of any type. Other fields are not used.
type event struct {
	Index int `json:"contentBlockIndex"`
	Start struct {
		Use *struct {
			ID   string `json:"toolUseId"`
			Name string `json:"name"`
		} `json:"toolUse"`
	} `json:"start"`
	Delta struct {
		Text string `json:"text"`
		Use  *struct {
			Input string `json:"input"`
		} `json:"toolUse"`
		Citation  json.RawMessage `json:"citation"` // see source
		Reasoning *struct {
			Text      string `json:"text"`
			Signature string `json:"signature"`
			Redacted  string `json:"redactedContent"`
		} `json:"reasoningContent"`
	} `json:"delta"`
	Stop  string `json:"stopReason"`
	Usage usage  `json:"usage"`
}

// usage has the provider's own counts: input is what was neither read from the cache nor
// written to it.
type usage struct {
	Input      int64 `json:"inputTokens"`
	Output     int64 `json:"outputTokens"`
	CacheRead  int64 `json:"cacheReadInputTokens"`
	CacheWrite int64 `json:"cacheWriteInputTokens"`
}
