package anthropic_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/anthropic"
	"github.com/fermata-agents/fermata/testsuite/conformance"
)

func TestConformance(t *testing.T) {
	conformance.Model(t, conformance.HTTPProvider{
		New: func(url, key string) model.Model {
			return anthropic.New(&anthropic.Options{BaseURL: url, APIKey: key})
		},
		Read:  readRequest,
		Reply: writeReply,
		Refuse: func(kind agent.FaultKind, message string) (int, string) {
			return kinds[kind].status, problemOf(kind, message)
		},
		Break: func(kind agent.FaultKind, message string) string { return stream(problemOf(kind, message)) },
		Ping:  stream(ping),
	}, &conformance.ModelOptions{Provider: "anthropic", Model: "claude-opus-4-6"})
}

// kinds are the provider's words for kinds of failures.
var kinds = map[agent.FaultKind]struct {
	status int
	name   string
}{
	agent.FaultRateLimit:  {429, "rate_limit_error"},
	agent.FaultOverload:   {529, "overloaded_error"},
	agent.FaultTransient:  {500, "api_error"},
	agent.FaultAuth:       {401, "authentication_error"},
	agent.FaultQuota:      {402, "billing_error"},
	agent.FaultBadRequest: {400, "invalid_request_error"},
	agent.FaultContext:    {400, "invalid_request_error"},
}

func problemOf(kind agent.FaultKind, message string) string {
	if kind == agent.FaultContext {
		message = "prompt is too long: " + message
	}
	return problem(kinds[kind].name, message)
}

var stops = map[model.Finish]string{
	model.FinishStop: "end_turn", model.FinishToolCalls: "tool_use", model.FinishLength: "max_tokens", model.FinishContentFilter: "refusal",
}

// writeReply streams a response. Usage comes twice, and the output grows.
func writeReply(s conformance.ProviderResponse) []string {
	u := s.Usage
	read := fmt.Sprintf(`"input_tokens":%d,"cache_creation_input_tokens":%d,"cache_read_input_tokens":%d`,
		u.Input-u.CacheRead-u.CacheWrite, u.CacheWrite, u.CacheRead)
	events := []string{fmt.Sprintf(`{"type":"message_start","message":{"type":"message","role":"assistant","content":[],"usage":{%s,"output_tokens":3}}}`, read)}
	for i, b := range s.Blocks {
		switch b.Type {
		case agent.PartText:
			events = append(events, open(i, textBlock))
		case agent.PartThinking:
			events = append(events, open(i, `{"type":"thinking","thinking":"","signature":""}`))
		case agent.PartToolCall:
			events = append(events, open(i, use(b.ID, b.Tool)))
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
	events = append(events, fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q},"usage":{%s,"output_tokens":%d,"output_tokens_details":{"thinking_tokens":%d}}}`,
		stops[s.Finish], read, u.Output, u.Reasoning), end)
	for i, e := range events {
		events[i] = stream(e)
	}
	return events
}

// readRequest reads what the provider is asked.
func readRequest(r *http.Request, body []byte) (conformance.ProviderRequest, error) {
	type block struct {
		Type, Text, Thinking, Signature, ID, Name string
		Input                                     json.RawMessage
		ToolUseID                                 string `json:"tool_use_id"`
		IsError                                   bool   `json:"is_error"`
		Content                                   []struct{ Text string }
	}
	var in struct {
		Model       string
		System      []struct{ Text string }
		Temperature *float64
		MaxTokens   int `json:"max_tokens"`
		Tools       []struct {
			Name, Description string
			InputSchema       json.RawMessage `json:"input_schema"`
		}
		Messages []struct {
			Role    agent.Role
			Content []block
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return conformance.ProviderRequest{}, err
	}
	asked := conformance.ProviderRequest{Model: in.Model, Temperature: in.Temperature, MaxOutputTokens: in.MaxTokens, Key: r.Header.Get("x-api-key")}
	for _, s := range in.System {
		asked.Instructions += s.Text
	}
	for _, t := range in.Tools {
		asked.Tools = append(asked.Tools, agent.ToolSpec{Name: t.Name, Description: t.Description, Input: t.InputSchema})
	}
	for _, m := range in.Messages {
		msg := agent.Message{Role: m.Role}
		for _, b := range m.Content {
			switch b.Type {
			case "text":
				msg.Parts = append(msg.Parts, said(b.Text))
			case "thinking":
				msg.Parts = append(msg.Parts, thought(b.Thinking, b.Signature))
			case "tool_use":
				msg.Parts = append(msg.Parts, agent.Part{Type: agent.PartToolCall, Call: &agent.ToolCall{ID: b.ID, Tool: b.Name, Arguments: b.Input}})
			case "tool_result":
				status, text := agent.CallOK, ""
				if b.IsError {
					status = agent.CallFailed
				}
				for _, c := range b.Content {
					text += c.Text
				}
				msg.Parts = append(msg.Parts, result(b.ToolUseID, "", status, text))
			}
		}
		asked.Messages = append(asked.Messages, msg)
	}
	return asked, nil
}
