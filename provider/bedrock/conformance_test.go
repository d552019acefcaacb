package bedrock_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/bedrock"
	"github.com/fermata-agents/fermata/testsuite/conformance"
)

func TestConformance(t *testing.T) {
	for _, name := range []string{"us.anthropic.claude-opus-4-6-v1", "amazon.nova-pro-v1:0", "meta.llama4-maverick-17b-instruct-v1:0"} {
		t.Run(name, func(t *testing.T) {
			conformance.Model(t, conformance.HTTPProvider{
				New:   func(url, key string) model.Model { return bedrock.New(options(url, key, nil)) },
				Read:  readRequest,
				Reply: writeReply,
				Refuse: func(kind agent.FaultKind, message string) (int, string) {
					return kinds[kind].status, fmt.Sprintf(`{"message":%q}`, kinds[kind].words+message)
				},
				Break: func(kind agent.FaultKind, message string) string {
					return exception(kinds[kind].name, kinds[kind].words+message)
				},
				ContentType: "application/vnd.amazon.eventstream",
			}, &conformance.ModelOptions{Provider: "bedrock", Model: name, Unsupported: conformance.Unsupported{Pings: true, Reasoning: true}})
		})
	}
}

// kinds are the provider's words for kinds of failures.
var kinds = map[agent.FaultKind]struct {
	status      int
	name, words string
}{
	agent.FaultRateLimit:  {429, "throttlingException", ""},
	agent.FaultOverload:   {503, "serviceUnavailableException", ""},
	agent.FaultTransient:  {500, "internalServerException", ""},
	agent.FaultAuth:       {403, "accessDeniedException", ""},
	agent.FaultQuota:      {429, "throttlingException", "Too many tokens per day, please wait before trying again. "},
	agent.FaultBadRequest: {400, "validationException", ""},
	agent.FaultContext:    {400, "validationException", "Input is too long for requested model. "},
}

var stops = map[model.Finish]string{
	model.FinishStop: "end_turn", model.FinishToolCalls: "tool_use", model.FinishLength: "max_tokens", model.FinishContentFilter: "content_filtered",
}

// writeReply streams a response.
func writeReply(s conformance.ProviderResponse) []string {
	events := []string{begin}
	for i, b := range s.Blocks {
		if b.Type == agent.PartToolCall {
			events = append(events, use(i, b.ID, b.Tool))
		}
		for _, p := range b.Pieces {
			events = append(events, map[agent.PartType]func(int, string) string{
				agent.PartText: text, agent.PartThinking: thinking, agent.PartToolCall: input,
			}[b.Type](i, p))
		}
		if b.Signature != "" {
			events = append(events, signature(i, b.Signature))
		}
		events = append(events, stop(i))
	}
	u := s.Usage
	return append(events, because(stops[s.Finish]), frame("metadata", fmt.Sprintf(
		`{"usage":{"inputTokens":%d,"outputTokens":%d,"totalTokens":%d,"cacheReadInputTokens":%d,"cacheWriteInputTokens":%d},"metrics":{"latencyMs":7}}`,
		u.Input-u.CacheRead-u.CacheWrite, u.Output, u.Input+u.Output, u.CacheRead, u.CacheWrite)))
}

type wireBlock struct {
	Text             string
	ReasoningContent *struct {
		ReasoningText struct{ Text, Signature string }
	}
	ToolUse *struct {
		ToolUseID, Name string
		Input           json.RawMessage
	}
	ToolResult *struct {
		ToolUseID, Status string
		Content           []struct{ Text string }
	}
}

// readRequest reads what the provider is asked, and demands that it is signed.
func readRequest(r *http.Request, body []byte) (conformance.ProviderRequest, error) {
	var in struct {
		Messages []struct {
			Role    agent.Role
			Content []wireBlock
		}
		System          []struct{ Text string }
		InferenceConfig struct {
			MaxTokens   int
			Temperature *float64
		}
		ToolConfig struct {
			Tools []struct {
				ToolSpec *struct {
					Name, Description string
					InputSchema       struct{ JSON json.RawMessage }
				}
			}
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return conformance.ProviderRequest{}, err
	}
	name, ok := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/model/"), "/converse-stream")
	if !ok || r.Method != http.MethodPost {
		return conformance.ProviderRequest{}, fmt.Errorf("%s %s", r.Method, r.URL.Path)
	}
	if err := checkSignature(r, body); err != nil {
		return conformance.ProviderRequest{}, err
	}
	asked := conformance.ProviderRequest{Model: name, MaxOutputTokens: in.InferenceConfig.MaxTokens, Temperature: in.InferenceConfig.Temperature, Key: r.Header.Get("X-Amz-Security-Token")}
	for _, s := range in.System {
		asked.Instructions += s.Text
	}
	for _, t := range in.ToolConfig.Tools {
		if s := t.ToolSpec; s != nil {
			asked.Tools = append(asked.Tools, agent.ToolSpec{Name: s.Name, Description: s.Description, Input: s.InputSchema.JSON})
		}
	}
	for _, m := range in.Messages {
		msg := agent.Message{Role: m.Role}
		for _, b := range m.Content {
			msg.Parts = append(msg.Parts, partOf(b)...)
		}
		asked.Messages = append(asked.Messages, msg)
	}
	return asked, nil
}

func partOf(b wireBlock) []agent.Part {
	switch {
	case b.Text != "":
		return []agent.Part{standin.Said(b.Text)}
	case b.ReasoningContent != nil:
		return []agent.Part{standin.Thought(b.ReasoningContent.ReasoningText.Text, b.ReasoningContent.ReasoningText.Signature)}
	case b.ToolUse != nil:
		return []agent.Part{{Type: agent.PartToolCall, Call: &agent.ToolCall{ID: b.ToolUse.ToolUseID, Tool: b.ToolUse.Name, Arguments: b.ToolUse.Input}}}
	case b.ToolResult != nil:
		status, text := agent.CallOK, ""
		if b.ToolResult.Status == "error" {
			status = agent.CallFailed
		}
		for _, c := range b.ToolResult.Content {
			text += c.Text
		}
		return []agent.Part{standin.Result(b.ToolResult.ToolUseID, "", status, text)}
	}
	return nil // a mark for the cache
}
