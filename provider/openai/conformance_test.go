package openai_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/openai"
	"github.com/fermata-agents/fermata/testsuite/conformance"
)

func TestConformanceChat(t *testing.T) {
	conformance.Model(t, conformance.HTTPProvider{
		New: func(url, key string) model.Model {
			return openai.New(&openai.Options{BaseURL: url + "/v1", APIKey: key, API: openai.ChatCompletions})
		},
		Read: readChat, Reply: writeChat, Refuse: refuse,
		Break: func(kind agent.FaultKind, message string) string { return stream(problemOf(kind, message)) },
		Ping:  ": PROCESSING\n\n",
	}, &conformance.ModelOptions{Provider: "openai", Unsupported: conformance.Unsupported{Signatures: true, FailedResults: true}})
}

func TestConformanceResponses(t *testing.T) {
	conformance.Model(t, conformance.HTTPProvider{
		New: func(url, key string) model.Model {
			return openai.New(&openai.Options{BaseURL: url + "/v1", APIKey: key, API: openai.Responses})
		},
		Read: readResponse, Reply: writeResponse, Refuse: refuse,
		Break: func(kind agent.FaultKind, message string) string {
			return "data: " + problemOf(kind, message) + "\n\n"
		},
		Ping: ": keep-alive\n\n",
	}, &conformance.ModelOptions{Provider: "openai", Unsupported: conformance.Unsupported{FailedResults: true}})
}

// kinds are the words of servers for kinds of failures.
var kinds = map[agent.FaultKind]struct {
	status int
	code   string
}{
	agent.FaultRateLimit:  {429, "rate_limit_exceeded"},
	agent.FaultOverload:   {503, "service_unavailable"},
	agent.FaultTransient:  {500, "server_error"},
	agent.FaultAuth:       {401, "invalid_api_key"},
	agent.FaultQuota:      {429, "insufficient_quota"},
	agent.FaultBadRequest: {400, "invalid_request_error"},
	agent.FaultContext:    {400, "context_length_exceeded"},
}

func problemOf(kind agent.FaultKind, message string) string {
	return fmt.Sprintf(`{"error":{"message":%q,"type":"error","code":%q}}`, message, kinds[kind].code)
}

func refuse(kind agent.FaultKind, message string) (int, string) {
	return kinds[kind].status, problemOf(kind, message)
}

// writeChat streams a response as Chat Completions.
func writeChat(s conformance.ProviderResponse) []string {
	chunks, call := []string{begin}, -1
	for _, b := range s.Blocks {
		name := map[agent.PartType]string{agent.PartText: "content", agent.PartThinking: "reasoning_content"}[b.Type]
		if s.Finish == model.FinishContentFilter {
			name = "refusal"
		}
		if b.Type == agent.PartToolCall {
			call++
			chunks = append(chunks, calls(piece(call, b.ID, b.Tool, "")))
		}
		for _, p := range b.Pieces {
			if b.Type == agent.PartToolCall {
				chunks = append(chunks, calls(piece(call, "", "", p)))
			} else {
				chunks = append(chunks, field(name, p))
			}
		}
	}
	because := because(string(s.Finish))
	if s.Finish == model.FinishContentFilter {
		because = strings.Replace(because, string(s.Finish), "stop", 1)
	}
	u := s.Usage
	chunks = append(chunks, because, fmt.Sprintf(`{"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,
		"prompt_tokens_details":{"cached_tokens":%d,"cache_write_tokens":%d},"completion_tokens_details":{"reasoning_tokens":%d}}}`,
		u.Input, u.Output, u.Total(), u.CacheRead, u.CacheWrite, u.Reasoning), end)
	for i, c := range chunks {
		chunks[i] = stream(strings.ReplaceAll(c, "\n", ""))
	}
	return chunks
}

// writeResponse streams a response as Responses.
func writeResponse(s conformance.ProviderResponse) []string {
	list := []string{created}
	for i, b := range s.Blocks {
		whole := strings.Join(b.Pieces, "")
		item, kind := message(whole), "output_text"
		switch {
		case s.Finish == model.FinishContentFilter:
			kind, item = "refusal", fmt.Sprintf(`{"type":"message","id":"m","role":"assistant","content":[{"type":"refusal","refusal":%q}]}`, whole)
		case b.Type == agent.PartThinking:
			kind, item = "reasoning_summary_text", fmt.Sprintf(`{"type":"reasoning","id":"r","summary":[{"type":"summary_text","text":%q}],"encrypted_content":%q}`, whole, b.Signature)
		case b.Type == agent.PartToolCall:
			kind, item = "function_call_arguments", functionCall(b.ID, b.Tool, whole)
		}
		for _, p := range b.Pieces {
			list = append(list, written(kind, i, p))
		}
		list = append(list, done(i, item))
	}
	status, more := "completed", ""
	if s.Finish == model.FinishLength {
		status, more = "incomplete", `"incomplete_details":{"reason":"max_output_tokens"},`
	}
	u := s.Usage
	list = append(list, fmt.Sprintf(`{"type":"response.%s","response":{"status":%q,%s"usage":{"input_tokens":%d,"output_tokens":%d,"total_tokens":%d,
		"input_tokens_details":{"cached_tokens":%d,"cache_write_tokens":%d},"output_tokens_details":{"reasoning_tokens":%d}}}}`,
		status, status, more, u.Input, u.Output, u.Total(), u.CacheRead, u.CacheWrite, u.Reasoning))
	for i, e := range list {
		list[i] = events(e)
	}
	return list
}

// basics are what both forms have under one name.
type basics struct {
	Model       string
	Temperature *float64
	Tools       []struct {
		wireFunction
		Function wireFunction
	}
}

type wireFunction struct {
	Name, Description string
	Parameters        json.RawMessage
}

func (b basics) asked(r *http.Request) conformance.ProviderRequest {
	asked := conformance.ProviderRequest{Model: b.Model, Temperature: b.Temperature, Key: strings.TrimPrefix(r.Header.Get("authorization"), "Bearer ")}
	for _, t := range b.Tools {
		f := t.Function
		if f.Name == "" {
			f = t.wireFunction
		}
		asked.Tools = append(asked.Tools, agent.ToolSpec{Name: f.Name, Description: f.Description, Input: f.Parameters})
	}
	return asked
}

func askedCall(id, name, arguments string) agent.Part {
	return agent.Part{Type: agent.PartToolCall, Call: &agent.ToolCall{ID: id, Tool: name, Arguments: json.RawMessage(arguments)}}
}

func readChat(r *http.Request, body []byte) (conformance.ProviderRequest, error) {
	var in struct {
		basics
		MaxTokens int `json:"max_tokens"`
		Messages  []struct {
			Role       agent.Role
			Content    string
			ToolCallID string `json:"tool_call_id"`
			ToolCalls  []struct {
				ID       string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return conformance.ProviderRequest{}, err
	}
	asked := in.asked(r)
	asked.MaxOutputTokens = in.MaxTokens
	for _, m := range in.Messages {
		msg := agent.Message{Role: m.Role}
		switch {
		case m.Role == "system":
			asked.Instructions = m.Content
			continue
		case m.Role == agent.RoleTool:
			msg.Parts = append(msg.Parts, result(m.ToolCallID, "", agent.CallOK, m.Content))
		case m.Content != "":
			msg.Parts = append(msg.Parts, said(m.Content))
		}
		for _, c := range m.ToolCalls {
			msg.Parts = append(msg.Parts, askedCall(c.ID, c.Function.Name, c.Function.Arguments))
		}
		asked.Messages = append(asked.Messages, msg)
	}
	return asked, nil
}

func readResponse(r *http.Request, body []byte) (conformance.ProviderRequest, error) {
	var in struct {
		basics
		Instructions string
		MaxTokens    int `json:"max_output_tokens"`
		Input        []struct {
			Type, Content, Name, Arguments, Output string
			Role                                   agent.Role
			CallID                                 string `json:"call_id"`
			Encrypted                              string `json:"encrypted_content"`
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return conformance.ProviderRequest{}, err
	}
	asked := in.asked(r)
	asked.Instructions, asked.MaxOutputTokens = in.Instructions, in.MaxTokens
	for _, i := range in.Input {
		msg := agent.Message{Role: agent.RoleAssistant}
		switch i.Type {
		case "function_call":
			msg.Parts = []agent.Part{askedCall(i.CallID, i.Name, i.Arguments)}
		case "function_call_output":
			msg.Role, msg.Parts = agent.RoleTool, []agent.Part{result(i.CallID, "", agent.CallOK, i.Output)}
		case "reasoning":
			msg.Parts = []agent.Part{thought("", i.Encrypted)}
		default:
			msg.Role, msg.Parts = i.Role, []agent.Part{said(i.Content)}
		}
		asked.Messages = append(asked.Messages, msg)
	}
	return asked, nil
}
